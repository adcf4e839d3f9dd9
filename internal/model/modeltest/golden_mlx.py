"""Writes testdata/mlx of a family: its tiny checkpoint quantised and saved by mlx-lm, and mlx-lm's own logits.

    pip install "mlx[cpu]" mlx-lm numpy
    python internal/model/modeltest/golden_mlx.py      # at the root of the repository

golden.safetensors has, for case i, ids_i [T] and logits_i [T, V], computed on the CPU in float32 with the
saved codes, scales and biases.
"""
import json, pathlib, shutil
import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.convert import mixed_quant_predicate_builder
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

mx.set_default_device(mx.cpu)
FAMILIES = {  # bits, group and recipe
    "lfm2": (4, 32, None),
    "lfm2moe": (4, 32, "mixed_4_6"),
    "llama": (4, 32, "mixed_3_6"),
    "qwen3": (8, 64, None),
    "qwen3moe": (4, 32, "mixed_4_6"),
}


def family_recipe(model, recipe, group):
    """The recipe, where the family does not insist on another format itself."""
    own = getattr(model, "quant_predicate", lambda *_: True)
    mixed = mixed_quant_predicate_builder(recipe, model, group) if recipe else lambda *_: True

    def predicate(path, module):
        if not hasattr(module, "to_quantized") or module.weight.shape[-1] % group:
            return False
        wanted = own(path, module)
        return wanted if wanted is not True else mixed(path, module)

    return predicate


for family, (bits, group, recipe) in FAMILIES.items():
    data = pathlib.Path("internal/model", family, "testdata")
    # mlx-lm wants keys that transformers has stopped to write.
    plain = json.loads((data / "config.json").read_text())
    older = {"block_dim": plain["hidden_size"]}
    if plain["model_type"] == "qwen3_moe":
        older |= {"num_experts": plain["num_local_experts"], "rope_theta": plain["rope_parameters"]["rope_theta"]}
    model, config = load_model(data, lazy=True, model_config=older)
    model, config = quantize_model(model, config, group, bits, quant_predicate=family_recipe(model, recipe, group))
    out = data / "mlx"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    save_model(out, model)
    save_config(config, out / "config.json")
    (out / "model.safetensors.index.json").unlink()

    wide = lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a
    model, _ = load_model(out)
    model.update(tree_map(wide, model.parameters()))
    plain, golden = mx.load(str(data / "golden.safetensors")), {}
    for i, case in enumerate((2, 3)):
        ids = plain[f"ids_{case}"]
        golden[f"ids_{i}"] = ids.astype(mx.int64)
        golden[f"logits_{i}"] = model(ids[None])[0].astype(mx.float32)
    mx.save_safetensors(str(out / "golden.safetensors"), golden)
    print(family, json.dumps(config["quantization"])[:300])
