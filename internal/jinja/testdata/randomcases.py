"""Made-up templates for oracle.py random: statements and expressions put together blindly, so that
half of them fail, in jinja2 and here alike."""
import json
import random
import re

NAMES = ["a", "b", "c", "d", "s", "t", "l", "m", "n", "u", "x", "loop"]
VARIABLES = {
    "a": 1, "b": -7, "c": 2.5, "d": {"k": "v", "items": 3, "n": {"k": [1, 2]}, "é": None}, "s": "Hello, wörld", "t": " <b>x\n y</b> ",
    "l": [3, 1, 2], "m": [{"role": "user", "n": 2, "c": "x"}, {"role": "tool", "n": 1}, {"role": "User", "n": None, "c": ""}], "n": None,
}
STRINGS = ["", "a", "b", "role", "k", "n", "x y", ",", "é", "A-b", "<", "%s", "{}", "\\n", "1", "2.5", "user", "l"]
ATTRIBUTES = ["k", "n", "role", "items", "keys", "upper", "index", "first", "last", "length", "x", "get", "append", "count", "0", "1", "previtem", "__class__"]
FILTERS = ["upper", "lower", "trim", "title", "capitalize", "length", "first", "last", "join", "join(',')", "join('-', attribute='role')",
           "default('z')", "default('z', true)", "replace('a', 'b')", "string", "int", "float", "list", "map('upper')|list",
           "map(attribute='n')|list", "select|list", "reject|list", "selectattr('n')|list", "rejectattr('c', 'defined')|list",
           "selectattr('role', 'eq', 'user')|list", "sort", "sort(reverse=true)", "sort(attribute='role')", "unique|list", "dictsort",
           "items|list", "tojson", "tojson(indent=1)", "safe", "e", "indent", "indent(2, true)", "batch(2)|list", "slice(2)|list", "sum", "min",
           "max", "abs", "round", "round(1)", "reverse|list", "reverse", "groupby('role')", "attr('upper') is defined", "format(1)",
           "wordcount", "truncate(5)", "truncate(6, true)", "center(9)", "nope", "map('int')|sum", "select('odd')|list", "string|length"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "callable", "odd",
         "even", "divisibleby 2", "true", "false", "lower", "upper", "eq 1", "ne 'a'", "gt 0", "in [1, 'a', none]", "sameas none", "escaped", "nope"]
METHODS = [".upper()", ".lower()", ".strip()", ".split()", ".split(',')", ".split('a', 1)", ".rsplit(' ', 1)", ".items()", ".keys()|list", ".values()|list",
           ".get('k')", ".get('q', 0)", ".startswith('a')", ".endswith(('x', ''))", ".replace('l', 'L', 1)", ".title()", ".find('l')",
           ".count('l')", ".index(1)", ".count(1)", ".lstrip('H')", ".rstrip('> \\n')", ".splitlines()", ".join(['p', 'q'])", ".zfill(4)",
           ".partition('l')", ".removeprefix('H')", ".isdigit()", ".isalpha()", ".format(1, k=2)", ".center(7, '*')", ".append(1)", ".pop()",
           "[0]", "[-1]", "[1:]", "[::-1]", "[:2]", "['k']", "['n']", ".k", ".n.k", "[1:3]", "[9]", "[::2]"]
# Without the power: jinja2 would sit over 255 ** 9223372036854775808 for ever.
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
TAGS = ["{%", "{%-", "{%+"], ["%}", "-%}", "+%}", "%}\n", "%}\n  "]


# What gives a value of a kind: the kinds in capitals are filled in. These mostly succeed.
TYPED = {
    "NUM": ["a", "b", "c", "0", "1", "2", "7", "-3", "2.5", "0.1", "1e3", "10 ** 18", "NUM + NUM", "NUM - NUM", "NUM * NUM", "NUM // 3", "NUM % 4", "NUM / 8",
            "-(NUM)", "(NUM)|abs", "(NUM)|round(1)", "(NUM)|round", "(NUM)|int", "(NUM)|float", "(STR)|length", "(LIST)|length", "(NUMS)|sum", "(NUMS)|max",
            "(NUMS)|min", "(STR)|int", "(STR)|float(NUM)", "(STR).find(STR)", "(STR).count('l')", "(STR)|wordcount", "(NUM if BOOL else NUM)", "(MAP).n|default(NUM)",
            "(LIST).index((LIST)[0]) if (LIST) else NUM", "(MAP)|length", "(NUM)|default(NUM)", "(true + NUM)"],
    "STR": ["s", "t", "''", "'a'", "'A-b c'", "'é\\u00df'", "'x,y,,z'", "STR + STR", "STR ~ NUM", "STR ~ LIST", "STR ~ MAP", "(STR)|upper", "(STR)|lower", "(STR)|title",
            "(STR)|capitalize", "(STR)|trim", "(STR)|trim(STR)", "(STR)|replace('l', STR)", "(STR)|indent(2, BOOL, BOOL)", "(STR)|truncate(8, BOOL)", "(STR)|center(14)",
            "(STR)|reverse", "(STR)|string", "(NUM)|string", "(LIST)|string", "(MAP)|string", "(LIST)|join(STR)", "(NUMS)|join('-')", "(LIST)|tojson", "(MAP)|tojson(indent=2)",
            "(MAP)|tojson(sort_keys=true)", "(STR)|tojson", "(NUM)|tojson", "(STR)[1:]", "(STR)[:-1]", "(STR)[::-1]", "(STR)[::2]", "(STR)[0]|default(STR)", "(STR).upper()",
            "(STR).strip()", "(STR).strip(STR)", "(STR).title()", "(STR).capitalize()", "(STR).swapcase()", "(STR).split('l')[0]", "(STR).rsplit(' ', 1)[-1]", "(STR).ljust(9, '.')",
            "(STR).rjust(9)", "(STR).center(9, '*')", "(STR).zfill(7)", "(STR).removeprefix('H')", "(STR).removesuffix(' ')", "(STR).partition(',')|join('|')", "(STR).replace(' ', '_', 2)",
            "'%s/%5.1f' % (STR, NUM)", "'%-6s|%r' % (STR, STR)", "'%s'|format(STR)", "'{}:{:>8}'.format(NUM, STR)", "'{:.2f}|{!r}'.format(NUM + 0.5, STR)", "(STR if BOOL else STR)",
            "(STR or STR)", "(STR)|e", "(STR)|first|default(STR)", "STR * 2", "(LIST)|map('string')|join", "(STR).join(['p', 'q'])", "(MAP).get('k', STR)|string", "(STR)|list|last|string"],
    "LIST": ["l", "m", "[]", "[1, 'a', none]", "[STR, STR]", "[NUM, LIST]", "(STR, NUM)", "NUMS", "LIST + [NUM]", "(LIST)[1:]", "(LIST)[::-1]", "(LIST)|list", "(LIST)|reverse|list", "(STR)|list",
             "(STR).split()", "(STR).split(',')", "(STR).split('l', 1)", "(STR).splitlines()", "(STR).rsplit(' ', 1)", "(MAP)|list", "(MAP).items()|list", "(MAP)|dictsort", "(MAP)|items|list",
             "(MAP).values()|list", "(LIST)|select|list", "(LIST)|reject('none')|list", "(LIST)|select('string')|list", "(LIST)|reject('mapping')|list", "(LIST)|map('string')|list",
             "(LIST)|map('default', STR)|list", "m|map(attribute='role')|list", "m|selectattr('c')|list", "m|rejectattr('n', 'none')|list", "m|groupby('role')", "m|sort(attribute='role', reverse=BOOL)",
             "(LIST)|batch(2)|list", "(LIST)|slice(2)|list", "(LIST)|batch(3, NUM)|list", "[STR, STR, STR]|sort", "[STR, STR]|unique|list", "(STR)|unique|list", "(LIST)|first|default([])|list if BOOL else LIST"],
    "NUMS": ["[3, 1, 2]", "l", "[NUM, NUM]", "[NUM, NUM, NUM]", "range(4)", "range(6, 0, -2)", "[NUM]|list", "(NUMS)|sort", "(NUMS)|sort(reverse=true)", "(NUMS)|unique|list", "(NUMS)|map('abs')|list",
             "(NUMS)|select('gt', 1)|list", "(NUMS)|reject('odd')|list", "(NUMS)|reverse|list", "(NUMS)|map('int')|list"],
    "MAP": ["d", "d.n", "{}", "{'k': STR, 'n': NUM}", "{STR: LIST}", "{'b': MAP, 'A': BOOL}", "m[0]", "dict(k=STR)", "dict(MAP, z=NUM)", "(MAP).copy()", "(m|first)", "(m|selectattr('role', 'eq', 'tool')|first)"],
    "BOOL": ["true", "false", "NUM > NUM", "NUM == NUM", "STR == STR", "STR in STR", "STR < STR", "NUM in LIST", "STR in MAP", "not BOOL", "BOOL and BOOL", "BOOL or BOOL", "(STR).startswith('H')",
             "(STR).endswith(('x', ' '))", "(STR).isdigit()", "(STR).isalpha()", "(STR).isupper()", "(STR).islower()", "(STR).istitle()", "(STR).isspace()", "(LIST) is sequence", "(MAP) is mapping", "(MAP).q is defined",
             "(NUM) is integer", "(NUM)|int is odd", "(STR) is upper", "(STR) is lower", "(STR) is string", "LIST == LIST", "MAP == MAP", "(LIST) is iterable", "NUM is in LIST", "NUM < NUM <= NUM"],
}
KIND = re.compile("|".join(sorted(TYPED, key=len, reverse=True)))


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def typed(self, kind, depth):
        """An expression of one kind, its parts of the kinds they should be."""
        choices = TYPED[kind]
        if depth == 0:
            choices = [c for c in choices if not KIND.search(c)]
        return KIND.sub(lambda m: self.typed(m.group(), max(depth - 1, 0)), self.r.choice(choices))

    def literal(self):
        r = self.r
        kind = r.randrange(9)
        if kind < 2:
            return str(r.choice([0, 1, 2, 3, 10, 255, 1000, 2**63]))
        if kind == 2:
            return r.choice(["0.5", "1.0", "2.25", "1e3", "1e20", "1e-7"])
        if kind < 6:
            return repr_string(r.choice(STRINGS))
        return r.choice(["true", "false", "none", "[]", "{}", "()", "[1, 'a']", "{'k': 1}", "(1, 2)", "range(4)"])

    def expression(self, depth=3):
        r = self.r
        if r.random() < 0.4:
            return "(" + self.typed(r.choice(list(TYPED)), depth) + ")"
        if depth == 0 or r.random() < 0.15:
            return r.choice(NAMES) if r.random() < 0.6 else self.literal()
        sub = lambda: self.expression(depth - 1)
        kind = r.randrange(16)
        if kind < 3:
            return f"{sub()} {r.choice(BINARY)} {sub()}"
        if kind < 6:
            return f"{self.atom(depth)}|{r.choice(FILTERS)}"
        if kind < 9:
            method = r.choice(METHODS)
            # jinja2 folds a bad slice of a literal to undefined, which nobody writes and we refuse
            return f"{r.choice(NAMES) if method[0] == '[' and ':' in method else self.atom(depth)}{method}"
        if kind == 9:
            return f"{self.atom(depth)} is {r.choice(['', 'not '])}{r.choice(TESTS)}"
        if kind == 10:
            return f"({sub()} if {sub()}{' else ' + sub() if r.random() < 0.8 else ''})"
        if kind == 11:
            return f"{self.atom(depth)}.{r.choice(ATTRIBUTES)}"
        if kind == 12:
            return f"{self.atom(depth)}[{sub()}]"
        if kind == 13:
            return r.choice(["not ", "-", "+"]) + self.atom(depth)
        if kind == 14:
            return r.choice([f"[{sub()}, {sub()}]", f"({sub()},)", "{'k': %s, 'n': %s}" % (sub(), sub()), f"dict(k={sub()})"])
        return f"{r.choice(NAMES)}[{sub()}:{sub()}]"

    def atom(self, depth):
        return f"({self.expression(depth - 1)})" if self.r.random() < 0.5 else self.r.choice(NAMES)

    def tag(self, body):
        opening, closing = TAGS
        return f"{self.r.choice(opening)} {body} {self.r.choice(closing)}"

    def statement(self, depth):
        r = self.r
        kind = r.randrange(14)
        if depth == 0 or kind < 4:
            return r.choice(["{{ %s }}", "{{- %s }}", "{{ %s -}}\n"]) % self.expression()
        if kind < 6:
            return r.choice(["text", "\n", "  ", "a\n  ", "\n\n", "{# note #}", "  {#- x #}\n", " {% raw %} {{ x }} {%- endraw %}\n"])
        name, body = r.choice(NAMES), lambda: self.body(depth - 1)
        if kind < 8:
            other = r.choice(["", self.tag("else") + body(), self.tag("elif " + self.expression(2)) + body()])
            return self.tag("if " + self.expression()) + body() + other + self.tag("endif")
        if kind < 10:
            head = r.choice([f"for {name} in {self.expression()}", f"for {name} in l", f"for {name} in m", f"for {name} in l if {self.expression(2)}",
                             f"for {name}, y in d.items()", f"for {name} in [1, 2, 3]"])
            jump = r.choice(["", "", "", self.tag("break"), self.tag("continue"), self.tag("if loop.index == 2") + self.tag("break") + self.tag("endif")])
            other = self.tag("else") + body() if r.random() < 0.2 else ""
            return self.tag(head) + body() + jump + other + self.tag("endfor")
        if kind == 10:
            return self.tag(f"set {name} = {self.expression()}")
        if kind == 11:
            return self.tag(f"set {name}{r.choice(['', ' | upper', ' | trim'])}") + body() + self.tag("endset")
        if kind == 12:
            return self.tag(f"macro {name}(p, q={self.expression(1)})") + body() + self.tag("endmacro") + "{{ %s(%s) }}" % (name, self.expression(1))
        return r.choice([self.tag("with x = " + self.expression(2)) + body() + self.tag("endwith"),
                         self.tag("filter " + r.choice(["upper", "trim", "replace('a', 'b')", "length"])) + body() + self.tag("endfilter"),
                         self.tag("set ns = namespace(k=1)") + self.tag("for x in l") + self.tag(f"set ns.k = {self.expression(2)}") + self.tag("endfor") + "{{ ns.k }}",
                         self.tag("generation") + body() + self.tag("endgeneration")])

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.r.randrange(1, 4)))


def repr_string(s):
    return "'" + s.replace("'", "\\'") + "'"


def write(path, count, seed):
    maker = Maker(seed)
    with path.open("w") as out:
        for i in range(count):
            source = [maker.body(3), "{{ %s }}" % maker.expression(4), "{{ %s }}" % maker.typed("STR", 5), "{{ %s }}" % maker.typed("LIST", 4)][i % 4]
            out.write(json.dumps({"t": source, "v": VARIABLES}, ensure_ascii=False) + "\n")
