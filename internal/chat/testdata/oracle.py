#!/usr/bin/env python3
"""Fails unless transformers (PyPI 5.24.0) finds in the folders of folders.json what they say it finds.

    oracle.py        checks
    oracle.py write  fills in what transformers makes of the texts of a case

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


def answers(tokenizer, texts):
    """Ids of each text, and what they show without special tokens."""
    ids = [tokenizer(t, add_special_tokens=False).input_ids for t in texts]
    return [[i, tokenizer.decode(i, skip_special_tokens=True)] for i in ids]


bad = 0
cases = json.loads((HERE / "folders.json").read_text())
for case in cases:
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
        said = answers(t, case.get("texts", []))
        if sys.argv[1:] == ["write"] and said:
            case["answers"] = said
        if said != case.get("answers", []):
            bad += 1
            print(f"{case['name']}: transformers answers {said}")
if sys.argv[1:] == ["write"]:
    (HERE / "folders.json").write_text("[\n" + ",\n".join("  " + json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
print(f"{bad} folders differ")
sys.exit(bad > 0)
