#!/usr/bin/env python3
"""Fails unless transformers (PyPI 5.24.0) finds in the folders of folders.json what they say it finds.

A case is files by name and what is in them: the template without tools and the one with, null where
transformers has none, and the named special tokens. "ours" marks what transformers' tokenizers pass over.

    pip install transformers==5.24.0 jinja2==3.1.6
"""

import json
import pathlib
import sys
import tempfile

from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent
TOKENIZER = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}


def template(tokenizer, tools):
    try:
        return tokenizer.get_chat_template(None, tools)
    except ValueError:
        return None


bad = 0
for case in json.loads((HERE / "folders.json").read_text()):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        for name, text in case["files"].items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text if isinstance(text, str) else json.dumps(text))
        t = PreTrainedTokenizerFast.from_pretrained(folder)
        got = {"default": template(t, None), "tools": template(t, [{}]), "special": t.special_tokens_map}
        want = {key: case.get(key) for key in got} | {"special": case.get("special", {})}
        if got != want and not case.get("ours"):
            bad += 1
            print(f"{case['name']}: transformers finds {got}, the file says {want}")
print(f"{bad} folders differ")
sys.exit(bad > 0)
