"""Writes tiny random checkpoints with transformers, and what transformers computes from them in float64.

    pip install torch transformers safetensors
    python internal/model/modeltest/golden_hf.py      # at the root of the repository

Each folder has config.json, model.safetensors in bf16 and golden.safetensors: for case i the prompt ids_i [T],
logits_i [T, V], the residual stream tap_i_l [T, H] after layer l, greedy_i [48] that follows, and gap_i [48], the distance
of the best logit from the next. A config may be spelled as older exporters did it.
"""
import json, pathlib, shutil
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

SMALL = dict(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=64, max_position_embeddings=2048, bos_token_id=1, eos_token_id=7, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)


def older_rope(c):
    rope = c.pop("rope_parameters")
    c["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    if kind != "default":
        c["rope_scaling"] = {"type": kind, **rope}


def older_lfm2(c):
    older_rope(c)
    c["full_attn_idxs"] = [i for i, kind in enumerate(c.pop("layer_types")) if kind == "full_attention"]
    c["num_heads"], c["block_norm_eps"] = c.pop("num_attention_heads"), c.pop("norm_eps")
    c["block_dim"] = c["hidden_size"]
    c["tie_embedding"] = c.pop("tie_word_embeddings")
    c["theta"] = c.pop("rope_theta")


def raw_moe(c):
    c["num_experts"] = c.pop("num_local_experts", c.get("num_experts"))


FOLDERS = {  # model_type, config, spelling of it
    "llama/testdata/variants/llama3": ("llama", SMALL | dict(
        rope_parameters=LLAMA3, tie_word_embeddings=False, attention_bias=True, mlp_bias=True), None),
    "llama/testdata/variants/linear": ("llama", SMALL | dict(
        rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.5), tie_word_embeddings=True), older_rope),
    "qwen3/testdata/variants/biased": ("qwen3", SMALL | dict(
        head_dim=16, attention_bias=True, tie_word_embeddings=True, rope_parameters=LLAMA3), older_rope),
    "lfm2/testdata/variants/older": ("lfm2", SMALL | dict(
        num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"], conv_bias=True, block_auto_adjust_ff_dim=True,
        block_ff_dim=100, intermediate_size=100, block_multiple_of=32, block_ffn_dim_multiplier=1.0,
        rope_parameters=dict(rope_type="default", rope_theta=5e5), tie_word_embeddings=True), older_lfm2),
    "qwen3moe/testdata": ("qwen3_moe", SMALL | dict(
        vocab_size=256, hidden_size=64, head_dim=16, num_hidden_layers=6, num_experts=8, num_experts_per_tok=3,
        moe_intermediate_size=32, decoder_sparse_step=2, mlp_only_layers=[3], norm_topk_prob=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), tie_word_embeddings=False), None),
    "qwen3moe/testdata/variants/raw": ("qwen3_moe", SMALL | dict(
        head_dim=8, num_experts=12, num_experts_per_tok=2, moe_intermediate_size=16, norm_topk_prob=False,
        rope_parameters=dict(rope_type="default", rope_theta=1e6), tie_word_embeddings=True), raw_moe),
}


def fill(model):
    """Gains about 1 and matrices that keep activations near 1, all of them numbers of bf16."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            x = torch.randn(p.shape, dtype=torch.float64)
            if "norm" in name:
                x = 1 + 0.3 * x
            elif p.dim() > 1 and "embed" not in name:
                x = x * 1.4 / p.shape[-1] ** 0.5
            elif name.endswith("bias"):
                x = 0.2 * x
            p.copy_(x.to(torch.bfloat16))


def logits_and_taps(model, ids):
    taps = []
    hooks = [layer.register_forward_hook(lambda _m, _i, out: taps.append(out[0] if isinstance(out, tuple) else out))
             for layer in model.model.layers]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    for h in hooks:
        h.remove()
    return logits, [t.reshape(len(ids), -1) for t in taps]


def golden(model, lengths):
    out = {}
    for i, n in enumerate(lengths):
        ids = torch.randint(model.config.vocab_size, (n,)).tolist()
        logits, taps = logits_and_taps(model, ids)
        out[f"ids_{i}"], out[f"logits_{i}"] = torch.tensor(ids), logits.float()
        for l, t in enumerate(taps):
            out[f"tap_{i}_{l}"] = t.float()
        greedy, gaps = [], []
        for _ in range(48):
            top = logits_and_taps(model, ids + greedy)[0][-1].topk(2).values
            greedy.append(int(logits_and_taps(model, ids + greedy)[0][-1].argmax()))
            gaps.append(float(top[0] - top[1]))
        out[f"greedy_{i}"], out[f"gap_{i}"] = torch.tensor(greedy), torch.tensor(gaps, dtype=torch.float32)
    return out


torch.manual_seed(6)
for folder, (kind, keys, spell) in FOLDERS.items():
    out = pathlib.Path("internal/model", folder)
    config = AutoConfig.for_model(kind, **keys)
    config._attn_implementation = "eager"
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    fill(model)
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    model = model.double().eval()
    lengths = (1, 5, 17, 40) if "variants" not in folder else (3, 40)
    save_file(golden(model, lengths), out / "golden.safetensors")
    c = json.loads((out / "config.json").read_text())
    if spell:
        spell(c)
    (out / "config.json").write_text(json.dumps(c, indent=2) + "\n")
    print(folder, sum(f.stat().st_size for f in out.iterdir() if f.is_file()), "bytes")
