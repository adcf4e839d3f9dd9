"""Loads checkpoints that "tfbatch quantize" wrote in mlx-lm, and writes its logits beside them.

    pip install "mlx[cpu]" mlx-lm
    python internal/convert/testdata/logits.py FOLDER...

golden.safetensors has ids_0 [T] and logits_0 [T, V], computed on the CPU in float32.
"""
import json, pathlib, sys
import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.utils import load_model

mx.set_default_device(mx.cpu)
for folder in map(pathlib.Path, sys.argv[1:]):
    config = json.loads((folder / "config.json").read_text())
    older = {"block_dim": config["hidden_size"]}  # keys that mlx-lm wants and transformers has stopped to write
    if config["model_type"] == "qwen3_moe":
        older |= {"num_experts": config["num_local_experts"], "rope_theta": config["rope_parameters"]["rope_theta"]}
    model, _ = load_model(folder, model_config=older)
    wide = lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a
    model.update(tree_map(wide, model.parameters()))
    ids = mx.array([(17 * i * i + 5 * i + 1) % config["vocab_size"] for i in range(40)])
    logits = model(ids[None])[0].astype(mx.float32)
    mx.save_safetensors(str(folder / "golden.safetensors"), {"ids_0": ids.astype(mx.int64), "logits_0": logits})
    print(folder.name, config["model_type"], "runs in mlx-lm")
