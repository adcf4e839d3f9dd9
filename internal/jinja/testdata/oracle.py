#!/usr/bin/env python3
"""The oracle of package jinja: what jinja2, set up by transformers itself, makes of the cases here.

  oracle.py write        rewrites golden.json.gz
  oracle.py check        fails unless golden.json.gz is what jinja2 gives
  oracle.py extra DIR    fetches templates whose licence keeps them out of this repository into
                         DIR (from the sdist of llama-cpp-python) and writes DIR/golden.json.gz
  oracle.py random DIR N SEED
                         writes N made-up cases with their outcome to DIR

Needs: pip install jinja2==3.1.6 transformers==5.24.0 (no torch).
Cases: every template of templates/ x conversation x tools x add_generation_prompt of
conversations.json, and every line of features.jsonl. An outcome is the text, or null for an error.
"""
import datetime
import gzip
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True

from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 3, 7, 16, 5, 9, 123456)


class Clock(datetime.datetime):
    """A datetime whose now() stands still: strftime_now asks it."""

    @classmethod
    def now(cls, tz=None):
        return cls(*NOW.timetuple()[:6], NOW.microsecond)


chat_template_utils.datetime = Clock


def render(source, variables):
    """The outcome of one template. Not through render_jinja_template: that changes messages first
    (it copies reasoning fields about), which is the caller's business here."""
    try:
        text = chat_template_utils._compile_jinja_template(source).render(**variables)
        text.encode()  # lone surrogates cannot be printed
        return text
    except (Exception, RecursionError):
        return None


def template_cases(templates):
    data = json.loads((HERE / "conversations.json").read_text())
    for path in sorted(templates):
        source = path.read_bytes().decode()
        for chat in data["conversations"]:
            for n, tools in enumerate(data["tools"]):
                for generate in (False, True):
                    variables = {"documents": None, **data["vars"], **chat.get("vars", {}),
                                 "messages": chat["messages"], "tools": tools, "add_generation_prompt": generate}
                    yield f"{path.stem}/{chat['name']}/{n}/{str(generate).lower()}", source, variables


def feature_cases(path):
    for n, line in enumerate(path.read_text().splitlines(), 1):
        case = json.loads(line)
        yield f"{path.name}:{n}", case["t"], case.get("v", {})


def outcomes(cases):
    return {name: render(source, variables) for name, source, variables in cases}


def own_outcomes():
    return {**outcomes(template_cases((HERE / "templates").glob("*.jinja"))),
            **outcomes(feature_cases(HERE / "features.jsonl"))}


def write(path, golden):
    text = json.dumps(golden, ensure_ascii=False, indent=0, sort_keys=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{path}: {len(golden)} outcomes, {sum(v is None for v in golden.values())} of them errors")


def check():
    want = json.loads(gzip.decompress((HERE / "golden.json.gz").read_bytes()))
    got = own_outcomes()
    bad = [name for name in sorted(want.keys() | got.keys()) if want.get(name, 0) != got.get(name, 0)]
    for name in bad[:20]:
        print(f"{name}: golden {want.get(name, 'missing')!r}, jinja2 {got.get(name, 'missing')!r}")
    print(f"{len(got) - len(bad)} of {len(got)} outcomes equal")
    return 1 if bad else 0


def fetch_extra(folder):
    """Templates of llama.cpp that are not in templates/ already."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation",
                        "--no-binary", ":all:", "--dest", tmp, "llama-cpp-python==0.3.36"], check=True)
        with tarfile.open(next(pathlib.Path(tmp).glob("*.tar.gz"))) as archive:
            for member in archive:
                path = pathlib.PurePosixPath(member.name)
                if path.parent.name == "templates" and path.suffix == ".jinja" and not (HERE / "templates" / path.name).exists():
                    (folder / path.name).write_bytes(archive.extractfile(member).read())
    write(folder / "golden.json.gz", outcomes(template_cases(folder.glob("*.jinja"))))


def main(command="", *args):
    if command == "write":
        write(HERE / "golden.json.gz", own_outcomes())
    elif command == "check":
        return check()
    elif command == "extra":
        fetch_extra(pathlib.Path(args[0]))
    elif command == "random":
        import randomcases
        folder = pathlib.Path(args[0])
        folder.mkdir(parents=True, exist_ok=True)
        randomcases.write(folder / "features.jsonl", int(args[1]), int(args[2]))
        write(folder / "golden.json.gz", outcomes(feature_cases(folder / "features.jsonl")))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
