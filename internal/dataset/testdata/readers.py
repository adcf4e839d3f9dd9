"""Runs a small job, exports it in every format and reads it back with the programs that the files are made for."""

import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys

tfbatch, work = sys.argv[1], pathlib.Path(sys.argv[2])
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = str(work / "hf")

(work / "job.yaml").write_text(
    """version: 1
jobs:
  - name: qa
    model: builtin:gopher-15m
    input: { path: rows.jsonl, id_field: custom_id }
    limits: { max_row_errors: 1 }
    sampling: { max_tokens: 24, temperature: 0.9, n: 3, seed: 18446744073709551615, return_token_ids: true }
"""
)
asked = [{"custom_id": f"row {i} é", "prompt": f"What does strings.Fields do, {i}?"} for i in range(8)]
asked.append({"custom_id": "chat", "messages": [{"role": "system", "content": "Be | brief."}, {"role": "user", "content": "sort.Ints?"}]})
asked.append({"custom_id": "bad", "prompt": ""})
asked.append({"custom_id": "text", "body": {"prompt": "func main() {"}, "url": "/v1/completions", "method": "POST"})
(work / "rows.jsonl").write_text("".join(json.dumps(a) + "\n" for a in asked))


def run(*args):
    subprocess.run([tfbatch, *args], check=True, cwd=work, stdout=subprocess.DEVNULL)


run("run", "job.yaml", "--quiet")
lines = [json.loads(s) for s in (work / "out/qa/rows.jsonl").read_text().splitlines()]
want = [(line, c) for line in lines if not line["error"] for c in line["response"]["body"]["choices"]]
assert len(want) == 30

for format in ["parquet", "arrow", "jsonl", "sharegpt", "speculators"]:
    run("export", "out/qa", "--out", format, "--format", format, "--shard-rows", "12", "--group-rows", "5")
run("export", "out/qa", "--out", "errors", "--errors")


def text(choice):
    return choice["message"]["content"] if "message" in choice else choice["text"]


def check(rows, who):
    rows = list(rows)
    assert len(rows) == len(want), (who, len(rows))
    for got, (line, c) in zip(rows, want):
        receipt = c["tfbatch"]
        assert got["custom_id"] == line["custom_id"] and got["sample"] == c["index"], who
        assert got["completion"] == text(c) and got["finish_reason"] == c["finish_reason"], who
        assert int(got["seed"]) == 2**64 - 1, (who, got["seed"])
        assert got["token_sha256"] == receipt["token_sha256"] and got["prompt_sha256"] == receipt["prompt_sha256"], who
        assert list(got["token_ids"]) == c["token_ids"], who
        assert list(got["prompt_token_ids"]) == line["response"]["body"]["prompt_token_ids"], who
        ids = list(got["token_ids"])
        packed = b"tfbatch/tok/1\n" + struct.pack("<Q", len(ids)) + struct.pack(f"<{len(ids)}I", *ids)
        assert hashlib.sha256(packed).hexdigest() == got["token_sha256"], who
        turns = got["messages"]
        chat = "message" in c
        assert (turns is not None) == chat and (got["prompt"] is None) == chat, who
        if line["custom_id"] == "chat":
            assert [dict(t) for t in turns] == asked[8]["messages"], (who, turns)
        assert got["status"] == "ok" and got["error_code"] is None, who
    print(f"{who}: {len(rows)} replies as they are in rows.jsonl")


import pyarrow as pa
import pyarrow.parquet as pq

shards = sorted((work / "parquet/data").iterdir())
assert [s.name for s in shards] == [f"train-{i:05d}-of-00003.parquet" for i in range(3)], shards
files = [pq.ParquetFile(s) for s in shards]
assert [[f.metadata.row_group(i).num_rows for i in range(f.num_row_groups)] for f in files] == [[5, 5, 2], [5, 5, 2], [5, 1]]
assert files[0].metadata.row_group(0).column(0).compression == "ZSTD"
manifest = json.loads((work / "out/qa/manifest.json").read_text())
assert files[0].metadata.metadata[b"tfbatch.job_root"].decode() == manifest["job_root"]
check([r for s in shards for r in pq.read_table(s).to_pylist()], "pyarrow")

batches = [pa.ipc.open_file(s).read_all() for s in sorted((work / "arrow/data").iterdir())]
check([r for b in batches for r in b.to_pylist()], "pyarrow, IPC")
left, right = pq.read_schema(shards[0]), batches[0].schema
assert [(f.name, str(f.type).replace(" not null", "").replace("element", "item")) for f in left] == [
    (f.name, str(f.type).replace(" not null", "")) for f in right
], (left, right)

import duckdb

table = duckdb.sql(f"select * from '{work}/parquet/data/*.parquet' order by row, sample").to_arrow_table()
check(table.to_pylist(), "DuckDB")

import pandas

frame = pandas.concat([pandas.read_parquet(s, dtype_backend="pyarrow") for s in shards])
assert len(frame) == len(want) and frame["completion"].tolist() == [text(c) for _, c in want]
print(f"pandas: {len(frame)} replies")

import datasets

for format in ["parquet", "arrow"]:
    check(datasets.load_dataset(str(work / format), split="train"), f"datasets, {format}")
for format, key, turns in [("jsonl", "messages", "role"), ("sharegpt", "conversations", "from")]:
    loaded = datasets.load_dataset(str(work / format), split="train")
    assert len(loaded) == len(want)
    for got, (_, c) in zip(loaded, want):
        last = got[key][-1]
        assert last.get("content", last.get("value")) == text(c) and last[turns] in ("assistant", "gpt")
    print(f"datasets, {format}: {len(loaded)} chats")
for got, (line, c) in zip(datasets.load_dataset(str(work / "speculators"), split="train"), want):
    prompt = line["response"]["body"]["prompt_token_ids"]
    assert got["input_ids"] == prompt + c["token_ids"] and got["loss_mask"] == [0] * len(prompt) + [1] * len(c["token_ids"])

failed = [r for r in pq.read_table(work / "errors/data").to_pylist() if r["status"] == "error"]
assert [(r["custom_id"], r["error_code"], r["completion"]) for r in failed] == [("bad", "invalid_value", None)], failed

from openai.types import Completion
from openai.types.chat import ChatCompletion

for line in lines:
    assert set(line) >= {"id", "custom_id", "response", "error"} and line["response"]["request_id"]
    body = line["response"]["body"]
    if line["error"]:
        assert body["error"]["message"] and line["response"]["status_code"] == 400
    elif body["object"] == "chat.completion":
        ChatCompletion.model_validate(body, strict=True)
    else:
        Completion.model_validate(body, strict=True)
print(f"openai: {len(lines)} lines have the types of its client")
