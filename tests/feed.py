#!/usr/bin/env python3
"""feed.py --ivm PATH [--lines N]

Tests `ivm feed` as a process among others: formats in and out, several inputs, bad lines, checkpoints and kills, signals, slow readers, readers that go. What a
run writes is added up to a bag and compared with what Python makes of the same lines. The last line is "N passed, N failed"; the exit code is 1 if any
failed."""
import argparse
import base64
import collections
import fcntl
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import termios
import time

passed = failed = 0
IVM = FOLDER = None
HANGS = 600  # seconds: what takes longer hangs, on a slow machine with other work, too

PRODUCT = '{"table": {"name": "product", "columns": [["id", "int64"], ["name", "string"]], "key": ["id"]}}\n'
SALES = '{"table": {"name": "sales", "columns": [["product_id", "int64"], ["amount", "decimal(38,2)"], ["at", "timestamp"], ["day", "date"]]}}\n'
FACT = '{"foreign_key": {"child": "sales", "columns": ["product_id"], "parent": "product", "parent_columns": ["id"], "trust": "tracked"}}\n'
TOTALS = ('{"view": {"name": "totals", "plan": {"op": "aggregate", "group_by": ["p.name"], "aggregates": [{"as": "total", "fn": "sum", "arg": "s.amount"}],'
          ' "input": {"op": "join", "on": [["s.product_id", "p.id"]], "inputs": [{"op": "scan", "table": "sales", "as": "s"},'
          ' {"op": "scan", "table": "product", "as": "p"}]}}}}\n')
SHOP = PRODUCT + SALES + FACT + TOTALS


def scan(table):
    return '{"view": {"name": "all_%s", "plan": {"op": "scan", "table": "%s"}}}\n' % (table, table)


def judge(name, ok, text=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"  {name}: {text}")


def path_of(name, content=None):
    path = os.path.join(FOLDER, name)
    if content is not None:
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    return path


def feed(plan, lines, *options):
    plan = path_of("plan.jsonl", plan)
    lines = lines if isinstance(lines, bytes) else lines.encode()
    return subprocess.run([IVM, "feed", *options, plan], input=lines, capture_output=True, timeout=HANGS)


def bag(out):
    """What Feldera's lines add up to, by table: {(table, row as text): count}."""
    held = collections.Counter()
    for line in map(json.loads, out.decode().splitlines()):
        row = json.dumps(line.get("insert", line.get("delete")))
        held[line["table"], row] += 1 if "insert" in line else -1
    return {key: count for key, count in held.items() if count}


def told(name, plan, lines, code, rows, err, *options):
    """rows: what the output adds up to, as (table, row); err: what standard error says, each."""
    done = feed(plan, lines, *options)
    want = collections.Counter((table, json.dumps(row)) for table, row in rows)
    text = done.stderr.decode()
    ok = done.returncode == code and bag(done.stdout) == want and all(e in text for e in err)
    judge(name, ok, f"exit code {done.returncode}, {bag(done.stdout)}, {text}")


def lines_of(*objects):
    return "".join((o if isinstance(o, str) else json.dumps(o)) + "\n" for o in objects)


# ---- Formats ----------------------------------------------------------------------------------------------------------------------------

def feldera():
    sale = {"product_id": 1, "amount": "12.10", "at": "2026-11-29T20:01:27.000001Z", "day": "2026-11-29"}
    told("insert and delete", SHOP, lines_of({"table": "sales", "insert": sale}, {"table": "product", "insert": {"name": "apple", "id": 1}},
                                             {"sales": {"insert": sale}}, {"table": "sales", "delete": sale}, "",
                                             {"table": "sales", "insert": [1, "0.05", 7, 7]}), 0,
         [("totals", {"name": "apple", "total": "12.15"})], ["0 bad"])
    told("by key", PRODUCT + scan("product"), lines_of({"insert": {"id": 1, "name": "a"}}, {"insert": {"id": 1, "name": "b"}},
                                                       {"insert": {"id": 2, "name": "c"}}, {"delete": {"id": 2}}, {"delete": {"id": 3}}), 0,
         [("all_product", {"id": 1, "name": "b"})], ["0 bad, 1 deletion of keys that were not there"], "--batch", "2")
    told("the option names the table", SHOP + scan("product"), lines_of({"insert": {"id": 1, "name": "a"}}), 0,
         [("all_product", {"id": 1, "name": "a"})], [], "--table", "product", "--view", "all_product")
    told("nothing else than changes", PRODUCT + scan("product"), lines_of(*[{"insert": {"id": 1, "name": "a"}}] * 5), 0,
         [("all_product", {"id": 1, "name": "a"})], ["1 change written"], "--batch", "1")
    twice = '{"table": {"name": "b", "columns": [["x", "int64"]]}}\n' + scan("b")
    done = feed(twice, lines_of({"insert": {"x": 1}}, {"insert": {"x": 1}}))
    judge("weights", done.stdout == b'{"table": "all_b", "insert": {"x": 1}}\n' * 2, done.stdout)
    done = feed(PRODUCT + scan("product"), lines_of({"insert": {"id": 1, "name": "a"}}, {"insert": {"id": 1, "name": "b"}}), "--batch", "1")
    judge("deletions first", [list(json.loads(x))[1] for x in done.stdout.splitlines()] == ["insert", "delete", "insert"], done.stdout)
    done = feed(twice, lines_of(*[{"insert": {"x": i}} for i in (3, 1, 2, 1)]))
    judge("in the order of the rows", [json.loads(x)["insert"]["x"] for x in done.stdout.splitlines()] == [1, 1, 2, 3], done.stdout)
    odd_view = PRODUCT + json.dumps({"view": {"name": 'v"', "plan": {"op": "scan", "table": "product"}}}) + "\n"
    told("a view's name", odd_view, lines_of({"insert": {"id": 1, "name": "a"}}), 0, [('v"', {"id": 1, "name": "a"})], [])
    odd = 'q"uo\\te\u0001'
    plan = json.dumps({"table": {"name": "o", "columns": [[odd, "string"]]}}) + "\n" + scan("o")
    told("names and strings", plan, lines_of({"insert": {odd: "a\nb\u20ac\u0000\""}}), 0, [("all_o", {odd: "a\nb\u20ac\u0000\""})], [])


def numbers():
    plan = '{"table": {"name": "n", "columns": [["i", "int64"], ["d", "decimal(38,2)"], ["f", "float64"], ["t", "timestamp"], ["day", "date"]]}}\n' + scan("n")
    digits = "123456789012345678901234567890123456.78"
    rows = ['{"insert": {"i": 9223372036854775807, "d": %s, "f": 0.1, "t": 1, "day": -1}}' % digits,
            '{"insert": {"i": 9223372036854775808, "d": 1}}', '{"insert": {"i": 1.0}}', '{"insert": {"d": 0.125}}',
            '{"insert": {"i": -1, "d": "0.10", "f": 1e400, "t": "2026-11-29T20:01:27.000001Z", "day": "2026-11-29"}}',
            '{"insert": {"d": 1e1, "f": "NaN"}}', '{"insert": {"i": "1"}}', '{"insert": {"day": 9999999999}}']
    told("numbers", plan, lines_of(*rows), 0,
         [("all_n", {"i": 9223372036854775807, "d": digits, "f": 0.1, "t": "1970-01-01T00:00:00.000001Z", "day": "1969-12-31"}),
          ("all_n", {"i": -1, "d": "0.10", "f": "Infinity", "t": "2026-11-29T20:01:27.000001Z", "day": "2026-11-29"}),
          ("all_n", {"i": None, "d": "10.00", "f": "NaN", "t": None, "day": None})],
         ["line 2: n.i: no value of type int64", "line 3: n.i: no", "line 4: n.d: no value of type decimal(38,2)", "line 7: n.i", "line 8: n.day", "5 bad"])
    for unit, value in (("micros", 1500), ("millis", 1), ("nanos", 1500999)):
        stamp = "1970-01-01T00:00:00.001000Z" if unit == "millis" else "1970-01-01T00:00:00.001500Z"
        told(unit, plan, lines_of({"insert": {"t": value}}), 0, [("all_n", {"i": None, "d": None, "f": None, "t": stamp, "day": None})], [],
             "--timestamps", unit)
    told("a millisecond too many", plan, lines_of({"insert": {"t": 2 ** 62}}), 0, [], ["line 1: n.t"], "--timestamps", "millis")


def debezium():
    def line(op, before, after, table="product"):
        return {"before": before, "after": after, "op": op, "source": {"table": table, "lsn": 5}, "ts_ms": 1}
    a, b, sale = {"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"product_id": 1, "amount": "1", "at": 5, "day": 5}
    shop = PRODUCT + SALES + FACT + scan("product") + scan("sales")
    lines = [line("r", None, a), {"schema": {"type": "struct"}, "payload": line("c", None, b)}, line("u", None, {"id": 1, "name": "A"}),
             line("u", b, {"id": 3, "name": "b"}), line("c", None, {"id": 4, "name": "d"}), {"key": {"payload": {"id": 4}}, "value": {"payload": line("d", None, None)}},
             {"key": {"id": 4}, "value": None}, "null", line("c", None, sale, "sales"), line("u", sale, dict(sale, amount="2"), "sales"),
             line("c", None, dict(sale, amount="7"), "sales"), line("d", dict(sale, amount="7"), None, "sales")]
    wrong = [line("u", None, sale, "sales"), line("t", None, None), line("c", None, {"id": 9, "name": "__debezium_unavailable_value"}), line("d", None, None), {"x": 1}]
    told("debezium", shop, lines_of(*lines, *wrong), 0,
         [("all_product", {"id": 1, "name": "A"}), ("all_product", {"id": 3, "name": "b"}),
          ("all_sales", {"product_id": 1, "amount": "2.00", "at": "1970-01-01T00:00:00.000005Z", "day": "1970-01-06"})],
         ["line 13: an update of sales, which has no key, wants the row before it", "line 14: op is c, r, u or d, not t", "line 15: product.name: the feed left",
          "line 16: product.id, of the key, is null", "line 17: op is", "5 bad"], "--from", "debezium", "--to", "feldera")
    plan = PRODUCT + scan("product")
    done = feed(plan, lines_of(line("c", None, a), line("d", a, None)), "--from", "debezium", "--batch", "1")
    want = [{"before": None, "after": a, "op": "c", "source": {"table": "all_product"}}, {"before": a, "after": None, "op": "d", "source": {"table": "all_product"}}]
    judge("debezium out", [json.loads(x) for x in done.stdout.splitlines()] == want, done.stdout)


def schemas():
    """What a line's own schema says of units and bytes."""
    def field(name, kind, **parameters):
        return {"field": name, "name": kind, "parameters": parameters}
    columns = [field("ms", "io.debezium.time.Timestamp"), field("us", "io.debezium.time.MicroTimestamp"), field("ns", "io.debezium.time.NanoTimestamp"),
               field("day", "io.debezium.time.Date"), field("d", "org.apache.kafka.connect.data.Decimal", scale="2")]
    schema = {"fields": [{"field": "before", "fields": columns}, {"field": "after", "fields": columns}]}
    plan = ('{"table": {"name": "s", "columns": [["ms", "timestamp"], ["us", "timestamp"], ["ns", "timestamp"], ["day", "date"], ["d", "decimal(38,2)"]]}}\n' +
            scan("s"))

    def line(decimal, ms=1500):
        row = {"ms": ms, "us": 1500000, "ns": 1500000000, "day": 1, "d": decimal}
        return {"schema": schema, "payload": {"op": "c", "before": None, "after": row}}

    def base64_of(number):
        return base64.b64encode(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)).decode()
    stamp = "1970-01-01T00:00:01.500000Z"
    numbers = [0, 5, -5, 1250, -1, 127, 128, -128, -129, 10 ** 38 - 1, -(10 ** 38) + 1]
    rows = [("all_s", {"ms": stamp, "us": stamp, "ns": stamp, "day": "1970-01-02", "d": f"{'-' if n < 0 else ''}{abs(n) // 100}.{abs(n) % 100:02d}"}) for n in numbers]
    told("schemas", plan, lines_of(*[line(base64_of(n)) for n in numbers], line(base64_of(10 ** 38)), line("?"), line("A" * 40), line("")), 0, rows,
         [f"line {len(numbers) + i}: s.d: no value of type decimal(38,2)" for i in (1, 2, 3, 4)], "--from", "debezium", "--to", "feldera", "--timestamps", "nanos")


def limit():
    plan = '{"table": {"name": "b", "columns": [["s", "string"]]}}\n' + scan("b")
    done = feed(plan, lines_of(*[{"insert": {"s": str(i) * 100}} for i in range(20000)]), "--memory", "2")
    judge("a limit of memory", done.returncode == 1 and b"out_of_memory" in done.stderr, done.stderr)


def upsert():
    plan = PRODUCT + scan("product")
    lines = lines_of({"key": {"id": 1}, "value": {"name": "a"}}, {"key": 1, "value": {"name": "b"}}, {"key": {"id": 2}, "value": {"id": 2, "name": "c"}},
                     {"key": 2, "value": None}, {"key": 5, "value": None}, {"key": {"id": None}, "value": {}}, {"key": {"x": 1}, "value": {}}, {"value": {}})
    told("upsert", plan, lines, 0, [("all_product", {"id": 1, "name": "b"})], ["line 6: product.id, of the key, is null", "line 7: product.id, of the key, is not",
                                                                            "line 8: a line has a key", "3 bad, 1 deletion of keys"], "--from", "upsert", "--to", "feldera")
    done = feed(plan, lines, "--from", "upsert", "--batch", "1", "--key", "all_product=1")
    want = [(1, "a"), (1, "b"), (2, "c"), (2, None)]
    got = [(x["key"]["id"], x["value"] and x["value"]["name"]) for x in map(json.loads, done.stdout.splitlines())]
    judge("upsert out", got == want, done.stdout)
    told("upsert without a key", SALES + scan("sales"), lines_of({"key": 1, "value": {}}), 0, [], ["sales has no key"], "--from", "upsert", "--to", "feldera")


def chain():
    """A view of one process is a table of the next."""
    first = path_of("first.jsonl", SHOP)
    second = path_of("second.jsonl", '{"table": {"name": "totals", "columns": [["name", "string"], ["total", "decimal(38,2)"]]}}\n'
                     '{"view": {"name": "v", "plan": {"op": "aggregate", "group_by": [], "aggregates": [{"as": "n", "fn": "sum", "arg": "totals.total"}],'
                     ' "input": {"op": "scan", "table": "totals"}}}}\n')
    lines = [{"table": "product", "insert": {"id": i, "name": str(i)}} for i in range(20)]
    lines += [{"table": "sales", "insert": {"product_id": i % 25, "amount": "0.10", "at": i}} for i in range(1000)]
    done = subprocess.run(["sh", "-c", '"$0" feed --batch 7 "$1" | "$0" feed --batch 3 "$2"', IVM, first, second], input=lines_of(*lines).encode(),
                          capture_output=True, timeout=HANGS)
    judge("two in a pipe", bag(done.stdout) == {("v", '{"n": "80.00"}'): 1}, done.stdout[-300:] + done.stderr)


# ---- Bad lines --------------------------------------------------------------------------------------------------------------------------

def bad():
    plan = PRODUCT + scan("product")
    good = [{"insert": {"id": i, "name": "x"}} for i in range(1000)]
    strange = [b"[" * 100000, b"\xff\xfe", b'{"insert": {"id": 1}', b"[]", b'{"insert": {}, "delete": {}}', b'{"insert": 5}', b'{"table": "none", "insert": {}}', b"\0"]
    lines = lines_of(*good[:500]).encode() + b"".join(x + b"\n" for x in strange) + lines_of(*good[500:]).encode()
    rows = [("all_product", {"id": i, "name": "x"}) for i in range(1000)]
    told("bad lines", plan, lines, 0, rows, [f"line {501 + i}: " for i in range(len(strange))] + ["1008 lines, 8 bad"])
    bag_plan = '{"table": {"name": "b", "columns": [["x", "int64", "not null"]]}}\n' + scan("b")
    mixed = [{"insert": {"x": i}} for i in range(999)]
    mixed[300], mixed[301], mixed[700], mixed[998] = {"delete": {"x": -1}}, {"insert": {"x": None}}, {"delete": {"x": 5000}}, {"delete": {"x": -2}}
    rows = [("all_b", {"x": i}) for i in range(999) if i not in (300, 301, 700, 998)]
    err = ["line 301: row_not_found: ", "line 302: null_violation: ", "line 701: row_not_found: ", "line 999: row_not_found: ", "4 bad"]
    told("what only the engine finds", bag_plan, lines_of(*mixed), 0, rows, err)
    told("nothing but bad", bag_plan, lines_of(*[{"delete": {"x": i}} for i in range(3000)]), 0, [], ["3000 bad"])
    told("too long", bag_plan, '{"insert": {"x": 1}}\n' + "x" * 300000 + '\n{"insert": {"x": 2}}\n' + "y" * 300000, 0,
         [("all_b", {"x": 1}), ("all_b", {"x": 2})], ["line 2: longer than 1000 bytes", "line 4: longer"], "--line-max", "1000")
    told("no line's end", bag_plan, '{"insert": {"x": 1}}', 0, [("all_b", {"x": 1})], ["1 line, 0 bad"])
    told("strict", plan, lines_of({"insert": {"id": 1, "nmae": "a"}}, {"insert": {"id": 1}}, {"insert": {"id": 2, "name": None}}), 0,
         [("all_product", {"id": 2, "name": None})], ["line 1: product has no column nmae", "line 2: product.name is not there"], "--strict")
    for place, line, why in ((3, "oops", "line 4: not JSON"), (0, {"delete": {"x": 9}}, "line 1: row_not_found"), (4, "z" * 2000, "line 5: longer")):
        kept = path_of("stop.checkpoint")
        several = [{"insert": {"x": i}} for i in range(6)]
        several[place] = line
        first = feed(bag_plan, lines_of(*several), "--bad", "stop", "--checkpoint", kept, "--line-max", "1000")
        several[place] = {"insert": {"x": 77}}
        again = feed(bag_plan, lines_of(*several[:place]) + lines_of(*several[place:]), "--bad", "stop", "--checkpoint", kept)
        want = collections.Counter(("all_b", json.dumps({"x": x["insert"]["x"]})) for x in several)
        # The line put right is read by the second run where it begins at the same byte.
        judge(f"stop, {why}", first.returncode == 1 and why in first.stderr.decode() and again.returncode == 0 and
              bag(first.stdout + again.stdout) == want, first.stderr + again.stderr + first.stdout + again.stdout)
        os.remove(kept)


def unknown():
    plan, rows = PRODUCT + scan("product"), [("all_product", {"id": i, "name": None}) for i in range(3)]
    lines = lines_of(*[{"insert": {"id": i, "nam": "x"}} for i in range(3)])
    done = feed(plan, lines, "--batch", "1")
    err = done.stderr.decode()
    judge("a misspelled member is told of once", bag(done.stdout) == {(t, json.dumps(r)): 1 for t, r in rows} and done.returncode == 0 and
          err.startswith("ivm feed: line 1: product.nam is no column and passed over") and err.count("product.nam") == 1, err)
    done = feed(plan, lines_of({"insert": {"id": 1, "name": "a", **{f"m{i}": 0 for i in range(40)}}}, {"insert": {"id": 2, "name": "a", "m99": 0}}))
    err = done.stderr.decode()
    judge("so many members are told of", err.count(" is no column") == 16 and err.count("no other is told of") == 1 and "m99" not in err, err)
    judge("a whole row warns of nothing", b"column" not in feed(plan, lines_of({"insert": {"name": "a", "id": 1}}, {"delete": {"id": 1}})).stderr, "")


def bad_max():
    """What only the engine finds and what is no JSON count alike; the lines before the last are in, those behind it are not."""
    plan = '{"table": {"name": "b", "columns": [["x", "int64", "not null"]]}}\n' + scan("b")
    kept = path_of("max.checkpoint")
    lines = [{"insert": {"x": 0}}, "oops", {"insert": {"x": 1}}, {"delete": {"x": 77}}, {"insert": {"x": 2}}, "oops", {"insert": {"x": 3}}, "oops"]
    for limit, code, rows, summary in (("2", 1, 3, "5 lines, 3 bad since the first start; this run: 5 lines, 3 bad"),
                                       ("2", 1, 3, "5 lines, 3 bad since the first start; this run: 0 lines, 1 bad"),
                                       ("3", 1, 4, "7 lines, 4 bad since the first start; this run: 2 lines, 2 bad"),
                                       ("4", 0, 4, "8 lines, 4 bad since the first start; this run: 1 line, 1 bad, 0 deletions of keys that were not there, 0 changes written")):
        again = [lines_of(*lines), "--bad-max", limit, "--checkpoint", kept, "--output", path_of("max.out")]
        done = feed(plan, *again)
        with open(path_of("max.out"), "rb") as file:
            held = bag(file.read())
        judge(f"--bad-max {limit}: {summary}", done.returncode == code and summary in done.stderr.decode() and
              held == {("all_b", json.dumps({"x": i})): 1 for i in range(rows)}, f"exit code {done.returncode}, {held}, {done.stderr.decode()}")


def mutated():
    """Bytes of good lines changed, doubled, taken out: every line is taken or told, and nothing else happens."""
    drawn = random.Random(11)
    row = {"id": 12, "d": "1.25", "f": 2.5, "t": "2026-11-29T20:01:27Z", "day": "2026-11-29", "s": "a\u20ac", "b": True}
    plan = ('{"table": {"name": "m", "columns": [["id", "int64"], ["d", "decimal(9,2)"], ["f", "float64"], ["t", "timestamp"], ["day", "date"],'
            ' ["s", "string"], ["b", "bool"]], "key": ["id"]}}\n' + scan("m"))
    for kind, line in (("feldera", {"table": "m", "insert": row}), ("debezium", {"before": row, "after": dict(row, id=13), "op": "u", "source": {"table": "m"}}),
                       ("upsert", {"table": "m", "key": {"id": 12}, "value": row})):
        text, lines = json.dumps(line).encode(), []
        for _ in range(1500):
            changed = bytearray(text)
            for _ in range(drawn.randrange(4)):
                at = drawn.randrange(len(changed))
                changed[at:at + drawn.randrange(3)] = drawn.choice([b"", bytes([drawn.randrange(256)]), b'"', b"{", b"-", b"e9", b"null", b"99999999999999999999"])
            lines.append(bytes(changed).replace(b"\n", b" "))
        done = feed(plan, b"\n".join(lines), "--from", kind, "--to", "feldera", "--batch", "50")
        judge(f"mutated {kind}", done.returncode == 0 and b"1500 lines" in done.stderr and len(bag(done.stdout)) > 0, done.stderr[-500:])


def usage():
    def refused(name, plan, err, *options, lines=""):
        done = feed(plan, lines, *options)
        judge(name, done.returncode == 2 and done.stderr.count(b"\n") == 1 and err in done.stderr.decode() and not done.stdout, done.stderr)
    plan = PRODUCT + scan("product")
    refused("a push in a plan", plan + '{"push": []}\n', ":3: a feed's plan")
    odd = '{"view": {"name": "v", "plan": {"op": "distinct", "input": {"op": "filter", "wher": ["is_null", "id"], "input": %s}}}}\n' % (
        '{"op": "scan", "table": "product"}')
    refused("a plan's member misspelled", PRODUCT + odd, ':2: filter has no member "wher"')
    refused("a foreign key's", PRODUCT + SALES + FACT.replace('"trust"', '"trsut"'), ':3: foreign_key has no member "trsut"')
    refused("a table's", PRODUCT.replace('"key"', '"keys"'), ':1: table has no member "keys"')
    refused("an aggregate's", PRODUCT + SALES + FACT + TOTALS.replace('"arg"', '"argument"'), ':4: aggregate has no member "argument"')
    refused("a line's", FACT.replace('"tracked"}', '"tracked"}, "refresh": 1'), ':1: foreign_key has no member "refresh"')
    done = feed(plan + '{"#": "of old"}\n' + PRODUCT.replace("product", "other").replace('"key"', '"#": "by number", "key"'), "")
    judge("comments in a plan", done.returncode == 0, done.stderr)
    refused("a deferred view", PRODUCT + '{"view": {"name": "v", "refresh": "deferred", "plan": {"op": "scan", "table": "product"}}}\n', "v is deferred")
    refused("no view", PRODUCT, "there is no view")
    refused("no such view", plan, "there is no view of w", "--view", "w")
    refused("a view that cannot be", PRODUCT + scan("nothing"), ":2: view: failed with unknown_table")
    refused("no such table", plan, "no table t", "--table", "t")
    refused("upserts without a key", plan, "--key wants all_product=N", "--to", "upsert")
    refused("a checkpoint that cannot be written", plan, "/checkpoint: cannot write: No such file", "--checkpoint", path_of("none/checkpoint"),
            lines=lines_of({"insert": {"id": 1}}))
    refused("a key too wide", plan, "1 to 2", "--to", "upsert", "--key", "all_product=3")
    kept = path_of("usage.checkpoint")
    feed(plan, lines_of({"insert": {"id": 1}}), "--checkpoint", kept, "--output", path_of("usage.out"))
    refused("another plan's checkpoint", SHOP, "usage.checkpoint: ", "--checkpoint", kept)
    refused("an input that is shorter", plan, "ends before byte", "--checkpoint", kept, "--output", path_of("usage.out"))
    refused("an output that is shorter", plan, "0 bytes, 60 were written before", "--checkpoint", kept, "--output", path_of("usage.out", ""))
    with open(kept, "r+b") as file:
        file.truncate(100)
    refused("a torn checkpoint", plan, "usage.checkpoint: ", "--checkpoint", kept)


# ---- Processes --------------------------------------------------------------------------------------------------------------------------

def start(plan, *options, **how):
    return subprocess.Popen([IVM, "feed", *options, path_of("plan.jsonl", plan)], stdin=how.get("stdin", subprocess.PIPE),
                            stdout=how.get("stdout", subprocess.PIPE), stderr=subprocess.PIPE, env=how.get("env"))


def waits(run):
    """Returns once the process has read all that was written to it, and sleeps: for more lines, or for a reader."""
    while True:
        left = int.from_bytes(fcntl.ioctl(run.stdin.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder)
        if run.poll() is not None or (left == 0 and sleeps(run)):
            return
        time.sleep(0.002)


def sleeps(run):
    with open(f"/proc/{run.pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


def ends():
    """Signals, readers that go, and lines that wait."""
    plan, line = PRODUCT + scan("product"), b'{"insert": {"id": %d, "name": "x"}}\n'
    kept = path_of("ends.checkpoint")
    for asked in (signal.SIGTERM, signal.SIGINT):
        run = start(plan, "--checkpoint", kept, "--wait", "600000")
        run.stdin.write(line % 1 + line % 2 + b'{"insert": {"id"')
        run.stdin.flush()
        waits(run)
        run.send_signal(asked)
        out, err = run.stdout.read(), run.stderr.read()
        judge(f"{asked.name}", run.wait(HANGS) == 0 and len(bag(out)) == 2 and b"2 lines" in err and os.path.exists(kept), out + err)
        again = feed(plan, line % 1 + line % 2 + line % 3, "--checkpoint", kept)
        judge(f"{asked.name}, then on", again.returncode == 0 and again.stdout.count(b"\n") == 1 and b"3 lines" in again.stderr, again.stdout + again.stderr)
        more = feed(plan, line % 4, "--checkpoint", kept, "--continue")
        judge("the input goes on", more.stdout.count(b"\n") == 1 and b"4 lines" in more.stderr, more.stdout + more.stderr)
        os.remove(kept)
    run = start(plan)
    run.stdin.write(line % 1)
    run.stdin.flush()
    first = run.stdout.readline()
    judge("nobody waits for a batch", b'"id": 1' in first, first)
    run.stdout.close()
    run.stdin.write(line % 2)
    run.stdin.close()
    judge("a reader that goes", run.wait(HANGS) == 1 and b"who read standard output is gone" in run.stderr.read())
    busy = subprocess.Popen(["yes", '{"insert": {"id": 1, "name": "x"}}'], stdout=subprocess.PIPE)
    run = start(plan, stdin=busy.stdout)
    busy.stdout.close()
    run.stdout.readline()
    run.send_signal(signal.SIGTERM)
    judge("a signal while lines come", run.wait(HANGS) == 0, run.stderr.read())
    busy.wait(60)


def killed():
    """Killed again and again, and run again on the same input: the output is that of a run that was not."""
    random.seed(7)
    plan = SHOP
    lines = []
    for i in range(12000):
        if random.random() < 0.1:
            lines.append({"table": "product", "insert": {"id": random.randrange(40), "name": f"n{random.randrange(30)}"}})
        else:
            lines.append({"table": "sales", "insert": {"product_id": random.randrange(40), "amount": "0.01", "at": i}} if random.random() < 0.9 else "bad")
    given = path_of("killed.jsonl", lines_of(*lines))
    whole = subprocess.run([IVM, "feed", "--batch", "10", path_of("plan.jsonl", plan), given], capture_output=True, timeout=HANGS)
    def trial(again):
        out, kept, kills = path_of(f"killed{again}.out", ""), path_of(f"killed{again}.checkpoint"), 0
        for attempt in range(1000):
            run = subprocess.Popen([IVM, "feed", "--batch", "10", "--every", "1", "--checkpoint", kept, "--output", out, path_of("plan.jsonl"), given],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            until = os.path.getsize(out) + random.randrange(20000, 120000)
            while run.poll() is None and os.path.getsize(out) < until:
                time.sleep(0.0005)
            run.send_signal(signal.SIGKILL if attempt % 3 else signal.SIGTERM)
            err = run.communicate(timeout=HANGS)[1]
            if b"12000 lines" in err:
                break
            kills += 1
        with open(out, "rb") as file:
            written = file.read()
        bad_counts = [e.split(b" lines, ")[1].split(b" bad")[0] for e in (whole.stderr, err)]
        judge("killed", bag(written) == bag(whole.stdout) and bad_counts[0] == bad_counts[1],
              f"{kills} kills, {len(written)} and {len(whole.stdout)} bytes, bad {bad_counts}")
        return kills
    until_killed(trial, 3)


def until_killed(trial, wanted):
    """Calls trial(0), trial(1) ..., which say how often they killed, until it was often enough: how often one trial can is up to the machine's speed."""
    kills = trials = 0
    while kills < wanted and trials < 1000:
        kills, trials = kills + trial(trials), trials + 1
    judge("killed often enough", kills >= wanted, f"{kills} kills")


def durable():
    """The views of an engine in a directory, after many kills, are those of one that was not killed."""
    random.seed(9)
    plan = ('{"table": {"name": "b", "columns": [["x", "int64"]]}}\n{"view": {"name": "v", "plan": {"op": "aggregate", "group_by": [], "aggregates": '
            '[{"as": "n", "fn": "sum", "arg": "b.x"}, {"as": "c", "fn": "count"}], "input": {"op": "scan", "table": "b"}}}}\n')
    plan_path, place = path_of("plan.jsonl", plan), path_of("place")
    given = path_of("durable.jsonl", lines_of(*[{"insert": {"x": i}} for i in range(4000)]))
    if b"unsupported" in feed(plan, "", "--durable", path_of("probe")).stderr:
        return  # built without
    for kill in [True] * 5 + [False]:  # what is in its small pipe and in the reader's buffer is of fewer than 500 lines: nobody who is killed was at the end
        run = subprocess.Popen([IVM, "feed", "--batch", "5", "--every", "20", "--durable", place, plan_path, given], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, pipesize=4096)
        for _ in range(random.randrange(20, 60)):
            run.stdout.readline()
        if kill:
            run.kill()
        err = run.communicate(timeout=HANGS)[1]
        judge("durable, killed", run.returncode == (-signal.SIGKILL if kill else 0), f"{run.returncode}, {err}")
    more = feed(plan, '{"insert": {"x": 1}}\n', "--durable", place, "--continue")
    total = sum(range(4000))
    want = [{"table": "v", "delete": {"n": total, "c": 4000}}, {"table": "v", "insert": {"n": total + 1, "c": 4001}}]
    judge("durable", [json.loads(x) for x in more.stdout.splitlines()] == want, f"{more.stdout} {more.stderr} {err}")
    judge("durable, ended well", b"without warning" not in more.stderr and b"4001 lines" in more.stderr, more.stderr)
    other = feed(SHOP, "", "--durable", place)
    judge("durable, another plan", other.returncode == 2 and b"of another plan" in other.stderr, other.stderr)
    # Killed with a batch in and its changes not written, as nobody reads them.
    place = path_of("unwritten")
    run = start(PRODUCT + scan("product"), "--durable", place)
    run.stdin.write(lines_of(*[{"insert": {"id": i, "name": "x" * 100}} for i in range(1000)]).encode())
    run.stdin.flush()
    waits(run)
    run.kill()
    run.wait(HANGS)
    again = feed(PRODUCT + scan("product"), "", "--durable", place, "--continue")
    rows = [("all_product", json.dumps({"id": i, "name": "x" * 100})) for i in range(1000)]
    judge("durable, not written", again.returncode == 0 and bag(again.stdout) == collections.Counter(rows), again.stderr)
    twice = feed(PRODUCT + scan("product"), "", "--durable", place, "--continue")
    judge("durable, written then", twice.returncode == 0 and not twice.stdout, twice.stdout + twice.stderr)
    # Killed when a part of the plan was made; and a plan that has grown since lines came.
    place = path_of("some")
    run = start(plan, "--durable", place)
    run.stdout.readline()
    run.kill()
    run.wait(HANGS)
    again = feed(plan + scan("b"), '{"insert": {"x": 3}}\n', "--durable", place, "--view", "all_b")
    judge("durable, the plan goes on", again.returncode == 0 and bag(again.stdout) == {("all_b", '{"x": 3}'): 1}, again.stdout + again.stderr)
    again = feed(plan + scan("b") + scan("b").replace("all_b", "more"), "", "--durable", place)
    judge("durable, a plan that has grown", again.returncode == 2 and b"of another plan" in again.stderr, again.stderr)


def kill_at_random(*arguments):
    """Runs the command, killed after a random time, again and again until a run ends by itself. What each wrote to its pipe, and how many were killed."""
    outs, kills = [], 0
    for attempt in range(1000):
        run = subprocess.Popen([IVM, "feed", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = run.communicate(timeout=random.uniform(0.0, 0.01 * 1.02 ** attempt))
        except subprocess.TimeoutExpired:
            run.kill()
            out, err = run.communicate(timeout=HANGS)
        outs.append(out)
        if run.returncode != -signal.SIGKILL:
            return outs, kills, run.returncode, err.decode()
        kills += 1
    return outs, kills, None, "never ended"


def figure_add(words, count):
    """As figure.h does."""
    name = os.environ.get("IVM_FIGURES")
    if name:
        with open(name, "a", encoding="ascii") as file:
            file.write(f"{count} {words}\n")


def exactly_once():
    """Killed at random moments, the first ones among them: the file is one run's byte for byte; a pipe had all of it, no more than one batch twice."""
    random.seed(13)
    if b"unsupported" in feed(PRODUCT + scan("product"), "", "--durable", path_of("probe")).stderr:
        return  # built without
    products = [{"id": i, "name": f"n{i % 7}"} for i in range(40)]
    sales = [{"product_id": random.randrange(50), "amount": "0.01", "at": i} if i % 20 else "bad" for i in range(6000)]
    plan = path_of("once.jsonl", SHOP + scan("product"))
    inputs = [path_of("products", lines_of(*products)) + ":product", path_of("sales", lines_of(*sales)) + ":sales"]
    how = ["--from", "rows", "--batch", "10", "--wait", "600000"]
    whole = subprocess.run([IVM, "feed", *how, plan, *inputs], capture_output=True, timeout=HANGS)
    said = whole.stderr.decode().splitlines()[-1].split("; this run")[0]
    def trial_file(kept, again):
        out = path_of(f"once{again}{kept}")
        _, kills, code, err = kill_at_random(*how, kept, path_of(f"kept{again}{kept}"), "--every", "5", "--output", out, plan, *inputs)
        figure_add("kills of a feed whose output file is one run's", kills)
        with open(out, "rb") as file:
            written = file.read()
        judge(f"exactly once, {kept}", code == 0 and written == whole.stdout and said in err,
              f"{kills} kills, {len(written)} and {len(whole.stdout)} bytes, {err}")
        return kills

    def trial_pipe(again):
        outs, kills, code, err = kill_at_random(*how, "--durable", path_of(f"pipe{again}"), plan, *inputs)
        figure_add("kills of a feed that writes to a pipe", kills)
        lines, end, gap = whole.stdout.splitlines(True), 0, ""
        for out in outs:  # each goes on within the last batch before it, or behind
            some = out.splitlines(True)
            if some and not some[-1].endswith(b"\n"):
                some.pop()
            if not some:
                continue
            begins = [at for at in range(max(end - 60, 0), end + 1) if lines[at:at + len(some)] == some]
            gap = gap or ("" if begins else f"at line {end}")
            end = begins[-1] + len(some) if begins else end
        judge("at least once", code == 0 and end == len(lines) and not gap, f"{kills} kills, {end} of {len(lines)} lines, {gap} {err}")
        return kills
    for kept in ("--durable", "--checkpoint"):
        until_killed(functools.partial(trial_file, kept), 20)
    until_killed(trial_pipe, 20)


# ---- Several inputs ---------------------------------------------------------------------------------------------------------------------

def inputs():
    """Tables by input, order, whose line is bad, and what is refused."""
    plan = path_of("plan.jsonl", SHOP + scan("product"))
    sale = {"product_id": 1, "amount": "1.50"}
    formats = {"feldera": lambda row: {"insert": row}, "debezium": lambda row: {"op": "c", "before": None, "after": row}, "rows": lambda row: row}
    for kind, line in formats.items():
        products = path_of("a:b", lines_of(line({"id": 1, "name": "x"}), "oops", line({"id": 2, "name": "y"})))
        sales = path_of("s", lines_of(line(sale), line(sale), "", line({"product_id": "?"})))
        run = subprocess.run([IVM, "feed", "--from", kind, "--to", "feldera", "--batch", "2", plan, products + ":product", sales + ":sales"],
                             capture_output=True, timeout=HANGS)
        judge(f"two files, {kind}", run.returncode == 0 and bag(run.stdout) == bag(lines_of(
            {"table": "totals", "insert": {"name": "x", "total": "3.00"}}, {"table": "all_product", "insert": {"id": 1, "name": "x"}},
            {"table": "all_product", "insert": {"id": 2, "name": "y"}}).encode()) and f"{products}:2: not JSON".encode() in run.stderr and
            f"{sales}:4: sales.product_id: ".encode() in run.stderr and b"7 lines, 2 bad" in run.stderr, run.stdout + run.stderr)
    up = path_of("up", lines_of({"key": {"id": 1}, "value": {"name": "z"}}))
    run = subprocess.run([IVM, "feed", "--from", "upsert", "--to", "feldera", plan, up + ":product", "-:product"],
                         input=lines_of({"key": 1, "value": {"name": "later"}}, "x").encode(), capture_output=True, timeout=HANGS)
    judge("a file, then standard input", run.stdout.endswith(b'"insert": {"id": 1, "name": "later"}}\n') and b"feed: line 2: " in run.stderr,
          run.stdout + run.stderr)
    run = subprocess.run([IVM, "feed", plan, up, "--table", "sales", up + ":product"], capture_output=True, timeout=HANGS)
    judge("the option is for the others", b"has an insert or a delete" in run.stderr and run.stderr.count(b":1: ") == 2, run.stderr)
    for name, given, why in (("no such input", [up + ":nothing"], "up:nothing: cannot read: No such file or directory, and nothing is no table of the plan"),
                             ("standard input twice", ["-", "-:product"], "given once"),
                             ("too many inputs", [up] * 14, "14 inputs, 13 at most")):
        run = subprocess.run([IVM, "feed", plan, *given], input=b"", capture_output=True, timeout=HANGS)
        judge(name, run.returncode == 2 and why.encode() in run.stderr and run.stderr.count(b"\n") == 1, run.stderr)
    kept = path_of("inputs.checkpoint")
    rows = ["--from", "rows", "--checkpoint", kept, plan]
    subprocess.run([IVM, "feed", *rows, up + ":product", sales + ":sales"], capture_output=True, timeout=HANGS)
    for other in ([sales + ":sales", up + ":product"], [up + ":product"], [up + ":product", sales + ":sales", "-"]):
        run = subprocess.run([IVM, "feed", *rows, *other], input=b"", capture_output=True, timeout=HANGS)
        judge("other inputs", run.returncode == 2 and b"inputs.checkpoint: is of a feed of other inputs" in run.stderr, run.stderr)
    run = subprocess.run([IVM, "feed", *rows, up + ":product", path_of("s", "{}") + ":sales"], capture_output=True, timeout=HANGS)
    judge("one of them shorter", run.returncode == 2 and f"{sales}: ends before byte".encode() in run.stderr, run.stderr)


def pipes():
    """FIFOs: lines of each as they come, a signal amid them, and on from the checkpoint, whichever is written first."""
    plan, kept, writers = SHOP, path_of("pipes.checkpoint"), []
    names = [path_of("fifo.product"), path_of("fifo.sales")]
    given = [names[0] + ":product", names[1] + ":sales", path_of("first", lines_of({"id": 0, "name": "first"})) + ":product"]
    arguments = ["--from", "rows", "--wait", "20", "--checkpoint", kept, path_of("plan.jsonl", plan), *given]

    def begin():
        run = subprocess.Popen([IVM, "feed", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return run, [open(name, "wb", buffering=0) for name in reversed(names)][::-1]

    def total(run):
        line = json.loads(run.stdout.readline())
        return line.get("insert", line.get("delete"))
    for name in names:
        os.mkfifo(name)
    run, writers = begin()
    writers[1].write(lines_of({"product_id": 0, "amount": "1"}).encode())
    judge("the file is first", total(run) == {"name": "first", "total": "1.00"})
    writers[1].write(lines_of({"product_id": 5, "amount": "2"}).encode() + b'{"product')
    writers[0].write(lines_of({"id": 5, "name": "five"}, "bad").encode())
    judge("then whoever has a line", total(run) == {"name": "five", "total": "2.00"})
    writers[1].write(lines_of('_id": 5, "amount": "3"}').encode())
    judge("one waits for nobody", (total(run), total(run)) == ({"name": "five", "total": "2.00"}, {"name": "five", "total": "5.00"}))
    run.send_signal(signal.SIGTERM)
    err = run.communicate(timeout=HANGS)[1].decode()
    judge("a signal amid pipes", run.returncode == 0 and f"{names[0]}:2: " in err and "6 lines, 1 bad" in err, err)
    for writer in writers:
        writer.close()
    run, writers = begin()  # read again, from their beginning
    writers[1].write(lines_of({"product_id": 0, "amount": "1"}, {"product_id": 5, "amount": "2"}, {"product_id": 5, "amount": "3"}, {"product_id": 5, "amount": "4"}).encode())
    judge("pipes go on", (total(run), total(run)) == ({"name": "five", "total": "5.00"}, {"name": "five", "total": "9.00"}))
    writers[0].write(lines_of({"id": 5, "name": "five"}, "bad", "worse").encode())
    for writer in writers:
        writer.close()
    err = run.communicate(timeout=HANGS)[1].decode()
    judge("pipes end", run.returncode == 0 and f"{names[0]}:3: " in err and f"{names[0]}:2: " not in err and "8 lines, 2 bad" in err, err)


def resident(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def slow(count):
    """A reader that does not read holds up the writer; then all comes, in bounded memory."""
    plan = '{"table": {"name": "b", "columns": [["x", "int64"], ["s", "string"]], "retain": false}}\n' + (
        '{"view": {"name": "v", "plan": {"op": "aggregate", "group_by": [], "aggregates": [{"as": "n", "fn": "count"}], "input": {"op": "scan", "table": "b"}}}}\n')
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"  # else it keeps what is freed
    run = start(plan, "--batch", "20", env=dict(os.environ, ASAN_OPTIONS=sanitizer))
    os.set_blocking(run.stdin.fileno(), False)
    block = b"".join(b'{"insert": {"x": %d, "s": "%s"}}\n' % (i, b"s" * 50) for i in range(100))
    sent, still = 0, 0
    left = block
    while still < 20 and sent < 1 << 26:  # with lines to read it sleeps only because its own pipe is full
        try:
            n = os.write(run.stdin.fileno(), left)
            sent, still, left = sent + n, 0, left[n:] or block
        except BlockingIOError:
            still = still + 1 if sleeps(run) else 0
            time.sleep(0.01)
    judge("backpressure", still == 20 and sent < 1 << 24, f"{sent} bytes taken")
    first = resident(run)
    os.set_blocking(run.stdin.fileno(), True)
    child = os.fork()
    if child == 0:
        run.stdout.close()
        with os.fdopen(run.stdin.fileno(), "wb", closefd=False) as pipe:
            pipe.write(left if left is not block else b"")
            for _ in range(count // 100):
                pipe.write(block)
        os._exit(0)
    run.stdin.close()
    peak, last = first, b""
    for n, last in enumerate(run.stdout):
        if n % 1000 == 0:
            peak = max(peak, resident(run))
    run.wait(HANGS)
    os.waitpid(child, 0)
    total = json.loads(last)["insert"]["n"] if last else 0
    judge("a slow reader", total > count and run.returncode == 0, f"{total} of {count} lines and more, exit code {run.returncode}, {run.stderr.read()}")
    judge("bounded memory", peak - first < 8192, f"{first} KB, then {peak} KB")


def main():
    global IVM, FOLDER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the command")
    parser.add_argument("--lines", type=int, default=100000, help="through the slow reader (default 100000)")
    given = parser.parse_args()
    IVM = given.ivm
    with tempfile.TemporaryDirectory() as FOLDER:
        for test in (feldera, numbers, debezium, schemas, upsert, limit, chain, bad, unknown, bad_max, mutated, usage, inputs, pipes, ends, killed, durable, exactly_once):
            test()
        slow(given.lines)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
