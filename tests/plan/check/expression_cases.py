#!/usr/bin/env python3
"""Writes expression_cases.inc: random expressions over small tables, with what the oracle says of each row.

  expression_cases.py [seed [cases [tables]]] > expression_cases.inc

Where the oracle's integers know no end, a value that coalesce, case, least or greatest brings past 38 digits is an overflow.
"""
import json
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))
import oracle  # noqa: E402

ROWS = 40  # enough for a few rows of them to be computed apart
COLUMNS = [("i", "int64"), ("j", "int64"), ("x", "float64"), ("y", "float64"), ("d", "decimal(6,2)"), ("e", "decimal(5,4)"),
           ("big", "decimal(38,0)"), ("wide", "decimal(38,12)"), ("s", "string"), ("t", "string"), ("p", "bool"), ("q", "bool"),
           ("day", "date"), ("at", "timestamp")]
INTS = [0, 1, -1, 2, 3, 5, 7, -7, 10, 100, 2 ** 31, 2 ** 53 + 1, 2 ** 62, 2 ** 63 - 1, -2 ** 63, -2 ** 63 + 1, 3037000500]
FLOATS = [0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e308, -1e308, 5e-324, 1e16, 0.1, float("inf"), float("-inf"), float("nan"), 2.0 ** 53]
STRINGS = ["", "a", "A", "ab", "aB", "Zo\u00eb", "\u00df", "\u65e5\u672c", "b", "[`{@", "zZ"]
DAYS = ["1970-01-01", "2026-11-29", "1969-12-31", "2000-02-29", "0001-01-01", "9999-12-31"]
TIMES = ["1970-01-01T00:00:00Z", "2026-11-29T20:01:27.000001Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"]


def decimal_text(rng, precision, scale):
    digits = rng.choice([0, 1, 1, 2, precision // 2, precision - 1, precision, precision])
    v = rng.choice([rng.randrange(10 ** digits), 10 ** digits - 1, 10 ** max(digits - 1, 0)]) * rng.choice([1, 1, -1])
    return oracle.value_out(v, ("decimal", precision, scale))


def random_json(rng, text):
    """A JSON value of the type."""
    t = oracle.parse_type(text)
    if t[0] == "decimal":
        return decimal_text(rng, t[1], t[2])
    if t[0] == "float64":
        return oracle.value_out(rng.choice(FLOATS), t)
    return rng.choice({"int64": INTS, "string": STRINGS, "bool": [True, False], "date": DAYS, "timestamp": TIMES}[t[0]])


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def literal(self, kind):
        rng = self.rng
        if rng.random() < 0.12:
            return None if rng.random() < 0.7 else {"lit": None, "type": self.type_text(kind)}
        text = self.type_text(kind)
        v = random_json(rng, text)
        if text in ("int64", "bool") and rng.random() < 0.7:
            return v
        if text == "float64" and not isinstance(v, str) and rng.random() < 0.7:
            return v
        if text == "string" and rng.random() < 0.7:
            return {"lit": v}
        return {"lit": v, "type": text}

    def type_text(self, kind):
        rng = self.rng
        if kind == "decimal":
            p = rng.choice([1, 5, 9, 18, 20, 38])
            return f"decimal({p},{rng.choice([0, 0, min(2, p), min(7, p), p])})"
        return kind

    def number(self):
        return self.rng.choice(["int64", "int64", "float64", "decimal", "decimal"])

    def any(self):
        return self.rng.choice(["int64", "float64", "decimal", "string", "bool", "date", "timestamp"])

    def leaf(self, kind):
        if self.rng.random() < 0.3:
            return self.literal(kind)
        return self.rng.choice([c for c, t in COLUMNS if t.split("(")[0] == kind])

    def make(self, kind, depth):
        """An expression of the kind, now and then of another."""
        rng = self.rng
        if rng.random() < 0.004:
            kind = self.any()
        if depth == 0 or rng.random() < 0.12:
            return self.leaf(kind)
        deeper = depth - 1
        if rng.random() < 0.25:
            return self.choice(kind, deeper)
        if kind == "bool":
            return self.condition(deeper)
        if kind == "string":
            f = rng.choice(["concat", "concat", "lower", "upper"])
            return [f] + [self.make("string", deeper) for _ in range(rng.randint(1, 3) if f == "concat" else 1)]
        if kind in ("date", "timestamp"):
            return self.leaf(kind)
        return self.arithmetic(kind, deeper)

    def choice(self, kind, deeper):
        rng = self.rng
        f = rng.choice(["coalesce", "case", "least", "greatest"])

        def one():
            near = kind if kind not in ("int64", "float64", "decimal") or rng.random() < 0.7 else self.number()
            return self.make(near, deeper)
        if f != "case":
            return [f] + [one() for _ in range(rng.randint(1, 4))]
        out = [f]
        for _ in range(rng.randint(1, 3)):
            out += [self.make("bool", deeper), one()]
        return out + [one()]

    def condition(self, deeper):
        rng = self.rng
        f = rng.choice(["and", "or", "and", "or", "not", "is_null", "is_not_null", "in", "in", "compare", "compare", "compare"])
        if f in ("and", "or"):
            return [f] + [self.make("bool", deeper) for _ in range(rng.randint(1, 4))]
        if f == "not":
            return [f, self.make("bool", deeper)]
        if f.startswith("is"):
            return [f, self.make(self.any(), deeper)]
        kind = self.any()

        def one():
            return self.make(self.number() if kind in ("int64", "float64", "decimal") and rng.random() < 0.5 else kind, deeper)
        if f == "in":
            return [f] + [one() for _ in range(rng.randint(2, 5))]
        return [rng.choice(["=", "<>", "<", "<=", ">", ">="]), one(), one()]

    def arithmetic(self, kind, deeper):
        rng = self.rng
        if kind == "int64":
            f = rng.choice(["+", "-", "*", "div", "%", "neg", "abs", "length", "cast"])
        elif kind == "float64":
            f = rng.choice(["+", "-", "*", "/", "neg", "abs", "cast"])
        else:
            f = rng.choice(["+", "-", "*", "+", "-", "*", "neg", "abs", "cast"])
        if f == "length":
            return [f, self.make("string", deeper)]
        if f == "cast":
            source = {"int64": ["bool", "int64"], "float64": ["bool", "int64", "decimal", "float64"],
                      "decimal": ["int64", "decimal"]}[kind]
            return ["cast", self.make(rng.choice(source), deeper), self.type_text(kind)]
        if f in ("neg", "abs"):
            return ["-" if f == "neg" else f, self.make(kind, deeper)]
        a = self.make(kind, deeper)
        b = self.make(self.number() if f == "/" or (kind != "int64" and rng.random() < 0.4) else kind, deeper)
        return [f, a, b] if rng.random() < 0.5 else [f, b, a]


plain_compile = oracle.compile_expr


def checked_compile(e, sc):
    """The oracle's, but the result of a choice is within 38 digits."""
    t, f = plain_compile(e, sc)
    if not (isinstance(e, list) and e and e[0] in ("coalesce", "case", "least", "greatest") and t and t[0] == "decimal"):
        return t, f

    def run(r):
        v = f(r)
        if v is not None and abs(v) >= 10 ** 38:
            raise oracle.Reject("overflow", "decimal")
        return v
    return t, run


oracle.compile_expr = checked_compile


def type_name(t):
    return "null" if t is None else f"decimal({t[1]},{t[2]})" if t[0] == "decimal" else t[0]


def cell_text(v, t):
    if v is None:
        return "null"
    if t[0] == "float64":
        v = oracle.norm_float(v)
        bits = struct.unpack("<Q", struct.pack("<d", v))[0]
        return "%016x" % (0x7ff8000000000000 if v != v else bits)
    if t[0] == "string":
        return "'" + v
    return str(int(v))


def c_text(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


def case_line(table, e, sc, rows):
    text = json.dumps(e, ensure_ascii=False)
    try:
        t, f = oracle.compile_expr(e, sc)
    except oracle.Reject as r:
        return text, f'    {{ {table}, {c_text(text)}, "{r.code}", "" }},'
    out = []
    for row in rows:
        try:
            out.append(cell_text(f(row), t))
        except oracle.Reject as r:
            assert r.code == "overflow"
            out.append("!")
    return text, f'    {{ {table}, {c_text(text)}, "{type_name(t)}", {c_text("|".join(out))} }},'


def main():
    seed, cases, tables = [int(x) for x in sys.argv[1:4]] + [1, 400, 4][len(sys.argv) - 1:]
    rng = random.Random(seed)
    types = [oracle.parse_type(t) for _, t in COLUMNS]
    sc = oracle.Schema([(f"r.{c}", t) for (c, _), t in zip(COLUMNS, types)])
    rows = []
    print(f"/* Written by expression_cases.py {seed} {cases} {tables}. */")
    print("static const expression_column expression_columns[] = {")
    for c, t in COLUMNS:
        print(f'    {{ "r.{c}", "{t}" }},')
    print("};")
    print("/* Cells as the cases' values have them: floats by their bits, strings after a quote, dates and times as numbers, decimals unscaled. */")
    print(f"#define EXPRESSION_ROWS {ROWS}")
    print("static const char *const expression_tables[][EXPRESSION_ROWS] = {")
    for _ in range(tables):
        table = []
        for _ in range(ROWS):
            table.append(tuple(None if rng.random() < 0.15 else oracle.value_in(random_json(rng, text), t)
                               for (_, text), t in zip(COLUMNS, types)))
        rows.append(table)
        print("    {")
        for row in table:
            print("        " + c_text("|".join(cell_text(v, t) for v, t in zip(row, types))) + ",")
        print("    },")
    print("};")
    print("static const expression_case expression_cases[] = {")
    make, done = Maker(rng), 0
    while done < cases:
        kind = make.any()
        e = make.make(kind, rng.choice([1, 2, 2, 3, 3]))
        if not isinstance(e, list):
            continue
        text, line = case_line(done % tables, e, sc, rows[done % tables])
        if len(text) > 600:
            continue
        print(line)
        done += 1
    print("};")


main()
