#!/usr/bin/env python3
"""Writes categories.txt and normalization.txt beside this file.

    pip install unicodedata2==16.0.0
    cargo fetch   # of any crate that depends on unicode-normalization-alignments =0.1.12
    python3 gen.py .../unicode-normalization-alignments-0.1.12/src/tables.rs

The two come from where the Hugging Face library has them: its regular expressions
(Oniguruma 6.9) know Unicode 16.0, its normal forms (the crate above) Unicode 9.0.
"""

import pathlib
import re
import sys

import unicodedata2

HERE = pathlib.Path(__file__).parent
WIDTH = 100


def ranges(points):
    """Folds ascending code points into LO-HI texts."""
    out = []
    for p in points:
        if out and out[-1][1] == p - 1:
            out[-1][1] = p
        else:
            out.append([p, p])
    return [f"{lo:X}" if lo == hi else f"{lo:X}-{hi:X}" for lo, hi in out]


def lines(key, items):
    """One or more lines of at most about WIDTH characters, each with the key in front."""
    line = key
    for item in items:
        if len(line) + len(item) >= WIDTH:
            yield line
            line = key
        line += " " + item
    if line != key:
        yield line


def categories():
    points = {}
    for p in range(0x110000):
        points.setdefault(unicodedata2.category(chr(p)), []).append(p)
    yield f"# General_Category of Unicode {unicodedata2.unidata_version}, by gen.py: category, ranges of code points."
    for name in sorted(points):
        if name != "Cn":  # what is left
            yield from lines(name, ranges(points[name]))


def table(source, name):
    """The body of one table of the crate."""
    start = source.index(f"const {name}:")
    start = source.index("= &[", start)
    return source[start : source.index("\n];", start)]


def runes(text):
    return [int(h, 16) for h in re.findall(r"\\u\{([0-9A-F]+)\}", text)]


def decompositions(source, name):
    found = re.findall(r"\((0x[0-9a-f]+), &\[(.*?)\]\)", table(source, name), re.S)
    return sorted((int(key, 16), runes(value)) for key, value in found)


def compositions(source):
    found = re.findall(r"\((0x[0-9A-F]+), ('.*?')\)", table(source, "COMPOSITION_TABLE_KV"))
    out = [(int(k, 16) >> 16, int(k, 16) & 0xFFFF, runes(v)[0]) for k, v in found]
    astral = source[source.index("fn composition_table_astral") :]
    astral = astral[: astral.index("\n}")]
    out += [tuple(runes(line)) for line in astral.splitlines() if "Some(" in line]
    return sorted(out)


def normalization(source):
    version = re.search(r"UNICODE_VERSION: .*? = \((\d+), (\d+), (\d+)\)", source).groups()
    yield f"# Normal forms of Unicode {'.'.join(version)}, by gen.py."
    yield "# ccc CLASS RANGES: canonical combining class.  canonical, compatible CODE=FULL+DECOMPOSITION.  pair A+B=COMPOSED."
    classes = {}
    for word in re.findall(r"0x[0-9A-F]+", table(source, "CANONICAL_COMBINING_CLASS_KV")):
        classes.setdefault(int(word, 16) & 0xFF, []).append(int(word, 16) >> 8)
    for value in sorted(classes):
        yield from lines(f"ccc {value}", ranges(sorted(classes[value])))
    for key, name in ("canonical", "CANONICAL_DECOMPOSED_KV"), ("compatible", "COMPATIBILITY_DECOMPOSED_KV"):
        items = [f"{c:X}=" + "+".join(f"{d:X}" for d in to) for c, to in decompositions(source, name)]
        yield from lines(key, items)
    yield from lines("pair", [f"{a:X}+{b:X}={c:X}" for a, b, c in compositions(source)])


def write(name, text):
    (HERE / name).write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write("categories.txt", categories())
    write("normalization.txt", normalization(pathlib.Path(sys.argv[1]).read_text()))
