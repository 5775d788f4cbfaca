#!/usr/bin/env python3
"""command.py --ivm PATH

Tests the command itself: exit codes and lines for what it cannot use, and that `ivm replay` finds what is wrong in a scenario. For the
latter each case with rows to expect is replayed once more with one expected value changed, and must then be reported at that line.
The last line is "N passed, N failed"; the exit code is 1 if any failed."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
passed = failed = 0

TABLE = '{"table": {"name": "t", "columns": [["id", "int64"], ["x", "float64"]], "key": ["id"]}}\n'
PUSH = '{"push": [{"insert": "t", "rows": [[1, 0.1], [2, 2.5]]}]}\n'
JOINED = ('{"table": {"name": "d", "columns": [["id", "int64"]], "key": ["id"]}}\n'
          '{"table": {"name": "f", "columns": [["d", "int64"]]}}\n'
          '{"foreign_key": {"child": "f", "columns": ["d"], "parent": "d", "parent_columns": ["id"]}}\n'
          '{"view": {"name": "v", "plan": {"op": "project", "input": {"op": "join", "on": [["f.d", "d.id"]], "inputs": '
          '[{"op": "scan", "table": "f"}, {"op": "scan", "table": "d"}]}, "columns": ["f.d"]}}}\n'
          '{"push": [{"insert": "d", "rows": [[1]]}, {"insert": "f", "rows": [[1]]}]}\n')
# name, lines, exit code, what the last line of standard output says, what standard error says
SCENARIOS = [
    ("holds", TABLE + PUSH + '{"expect": {"view": "t", "rows": [[2, 2.5], [1, 0.1]]}}\n', 0, "1 scenarios, 1 expectations, 0 wrong", ""),
    ("near", TABLE + PUSH + '{"expect": {"view": "t", "rows": [[2, 2.5], [1, 0.10000000000000002]]}}\n', 0, "0 wrong", ""),
    ("exact", TABLE + PUSH + '{"expect": {"view": "t", "rows": [[2, 2.5], [1, 0.10000000000000002]], "exact": ["x"]}}\n', 1,
     "1 wrong", ":3: expect t: missing [[1, 0.10000000000000002]]; unexpected [[1, 0.1"),
    ("missing", TABLE + PUSH + '{"expect": {"view": "t", "rows": [[2, 2.5], [1, 0.1], [3, 1]]}}\n', 1, "1 wrong",
     ":3: expect t: missing [[3, 1]]; unexpected []"),
    ("unexpected", TABLE + PUSH + '{"expect": {"view": "t", "rows": [[2, 2.5]]}}\n', 1, "1 wrong",
     ":3: expect t: missing []; unexpected [[1, 0.1]]"),
    ("fails", TABLE + PUSH + PUSH, 1, "1 wrong", ":3: push: failed with duplicate_key"),
    ("error", TABLE + PUSH + PUSH.replace("]}]}", ']}], "error": "duplicate_key"}'), 0, "0 wrong", ""),
    ("no error", TABLE + PUSH.replace("]}]}", ']}], "error": "overflow"}'), 1, "1 wrong", ":2: push: succeeded, but error overflow"),
    ("other error", TABLE + PUSH + PUSH.replace("]}]}", ']}], "error": "overflow"}'), 1, "1 wrong", "failed with duplicate_key ("),
    ("goes on", TABLE + '{"frobnicate": 1}\n' + PUSH + '{"expect": {"view": "t", "rows": []}}\n', 1, "2 wrong", ":4: expect t:"),
    ("checkpoints", TABLE + '{"restore": "a", "error": "io"}\n{"checkpoint": "a"}\n' + PUSH + '{"checkpoint": "b"}\n{"drop_table": "t"}\n'
     '{"restore": "b"}\n{"expect": {"view": "t", "rows": [[2, 2.5], [1, 0.1]]}}\n{"restore": "a"}\n{"restore": "a"}\n'
     '{"expect": {"view": "t", "rows": []}}\n{"checkpoint": 1, "error": "invalid_argument"}\n', 0, "2 expectations, 0 wrong", ""),
    ("deltas", JOINED + '{"expect_deltas": {"view": "v", "rows": [1, 0]}}\n{"expect_deltas": {"view": "v", "rows": [5, 5]}}\n'
     '{"expect_deltas": {"view": "u", "rows": []}, "error": "unknown_view"}\n'
     '{"expect_deltas": {"view": "v"}, "error": "invalid_argument"}\n', 0, "1 scenarios, 4 expectations, 0 wrong", ""),
    ("too many delta rows", JOINED + '{"expect_deltas": {"view": "v", "rows": [0, 0]}}\n', 1, "1 wrong",
     ":6: expect_deltas v: leaf 0 has 1 delta rows, at most 0"),
    ("bounds of three leaves", JOINED + '{"expect_deltas": {"view": "v", "rows": [1, 0, 0]}}\n', 1, "1 wrong", ":6: expect_deltas v: the join has 2"),
    ("bounds are of row", '{"set": {"fk_pruning": "batch"}}\n' + JOINED + '{"set": {"fk_pruning": "row"}}\n'
     '{"expect_deltas": {"view": "v", "rows": [0, 0]}}\n', 0, "0 wrong", ""),
    ("refresh", '{"refresh": "v", "error": "unknown_view"}\n{"refresh": 1, "error": "invalid_argument"}\n' + TABLE +
     '{"view": {"name": "v", "plan": {"op": "scan", "table": "t"}, "refresh": "deferred"}}\n' + PUSH +
     '{"expect": {"view": "v", "rows": []}}\n{"refresh": "v"}\n{"expect": {"view": "v", "rows": [[2, 2.5], [1, 0.1]]}}\n'
     '{"expect_changes": {"view": "v", "rows": [[1, [1, 0.1]], [1, [2, 2.5]]]}}\n'
     '{"view": {"name": "w", "plan": {"op": "scan", "table": "t"}, "refresh": "later"}, "error": "invalid_argument"}\n', 0, "0 wrong", ""),
    ("weights", '{"table": {"name": "b", "columns": [["x", "int64"]], "allow_negative": true}}\n'
     '{"push": [{"weighted": "b", "rows": [[-2, [7]], [3, [8]]]}]}\n{"expect": {"view": "b", "weighted": [[3, [8]], [-2, [7]]]}}\n'
     '{"expect": {"view": "b", "weighted": [[3, [8]], [-1, [7]]]}}\n', 1, "1 wrong", ":4: expect b: missing [[-1, [7]]]; unexpected [[-2, [7]]]"),
    ("not json", TABLE + "\n{]\n", 2, "", ":3: not JSON"),
    ("no object", TABLE + "[1]\n", 2, "", ":2: a command is a JSON object"),
    ("big numbers", '{"table": {"name": "d", "columns": [["x", "decimal(38,0)"], ["y", "float64"]]}}\n'
     '{"push": [{"insert": "d", "rows": [[12345678901234567890, 1e20], ["99999999999999999999", 12345678901234567890]]}]}\n'
     '{"expect": {"view": "d", "rows": [["12345678901234567890", 1e20], ["99999999999999999999", 12345678901234567890.0]]}}\n' +
     TABLE + '{"push": [{"insert": "t", "rows": [[12345678901234567890, 1]]}], "error": "type_mismatch"}\n', 0, "0 wrong", ""),
]
# arguments, exit code, what standard output and standard error say
COMMANDS = [
    ([], 2, "", "usage: ivm"), (["--help"], 0, "usage: ivm", ""), (["--version"], 0, "ivm ", ""), (["frobnicate"], 2, "", "unknown command"),
    (["--frobnicate"], 2, "", "unknown option"), (["replay"], 2, "", "wants a file"), (["replay", "--help"], 0, "usage: ivm replay", ""),
    (["replay", "--frobnicate", "x"], 2, "", "unknown option --frobnicate"), (["replay", "--join-rule", "guess", "x"], 2, "", "is one of"),
    (["replay", "--join-rule"], 2, "", "wants a value"), (["replay", "--threads", "17", "x"], 2, "", "at most 16 threads"), (["replay", "/no/such/file"], 2, "", "/no/such/file: cannot read"),
    (["replay", HERE], 2, "", "cannot read"), (["explain", "--help"], 0, "usage: ivm explain", ""), (["explain"], 2, "", "wants one file"),
    (["explain", "--format", "x", "y"], 2, "", "is one of text, json, dot"), (["bench"], 2, "", "usage: ivm bench"),
    (["bench", "--help"], 0, "usage: ivm bench", ""), (["bench", "frobnicate"], 2, "", "unknown bench"),
    (["bench", "star", "--help"], 0, "usage: ivm bench star", ""), (["bench", "star", "--rows", "0"], 2, "", "wants a number"),
    (["bench", "prune", "--help"], 0, "usage: ivm bench prune", ""), (["bench", "prune", "--part", "x"], 2, "", "is one of growing, mixed"),
    (["bench", "memory", "--help"], 0, "usage: ivm bench memory", ""), (["bench", "operators", "--help"], 0, "usage: ivm bench operators", ""),
    (["bench", "operators", "--operator", "x"], 2, "", "no operator x"), (["bench", "operators", "--few", "4000000000"], 2, "", "at most"),
    (["bench", "operators", "--operator", "join", "--few", "9", "--many", "99", "--changes", "3", "--json"], 0, '"metric": "join_ratio"', ""),
    *[(["bench", name, "--help"], 0, "usage: ivm bench " + name, "")
      for name in ("snowflake", "hotkey", "latency", "scale", "tpch", "all")],
    (["bench", "star", "--change", "mixed", "--keys", "zipf"], 2, "", "is about --shape star4"),
    (["bench", "star", "--shape", "star5"], 2, "", "is one of star4, star4l, wide"),
    (["bench", "star", "--sweep", "--batch", "7"], 2, "", "--sweep has batch sizes"),
    (["bench", "snowflake", "--runs", "99"], 2, "", "at most"), (["bench", "hotkey", "--rows", "3"], 2, "", "10 to"),
    (["bench", "latency", "--grow", "99999999"], 2, "", "at most"), (["bench", "scale", "--rows", "99"], 2, "", "10000 to"),
    (["bench", "tpch", "--scale", "none"], 2, "", "a scale of"), (["bench", "tpch", "--query", "q2"], 2, "", "is one of q1, q3"),
    (["bench", "all", "--frobnicate"], 2, "", "unknown option"), (["bench", "all", "frobnicate"], 2, "", "no measurement frobnicate"),
    (["bench", "--clock", "cpu"], 2, "", "unknown option"), (["bench", "star", "--clock", "sun"], 2, "", "is one of wall, cpu"),
    (["bench", "hotkey", "--plot", ""], 2, "", "--plot wants a directory"),
    (["bench", "dump", "--help"], 0, "usage: ivm bench dump", ""), (["bench", "dump", "nothing", "x"], 2, "", "takes a workload"),
    (["bench", "dump", "mixed", "/no/such"], 2, "", "outlasts"), (["bench", "dump", "insert", "/no/such"], 2, "", "/no/such/star.txt: cannot write"),
    (["bench", "stream", "--help"], 0, "usage: ivm bench stream", ""), (["bench", "stream", "/no/such"], 2, "", "/no/such/star.txt: cannot read"),
    (["flights", "--help"], 0, "usage: ivm flights", ""),
    (["flights", "--data", "/no/such"], 2, "", "/no/such/airlines.csv.zst: cannot read"),
    (["flights", "--fk-pruning", "x"], 2, "", "is one of row, batch, off"),
    (["flights", "--keys"], 0, "flight (tailnum) -> plane: 12562 flights without a parent, tracked", ""),
    (["flights", "--days", "3"], 0, "flight (origin, time_hour) -> weather: 39 flights wait for 2 keys, as the data says", ""),
    (["flights", "--days", "3", "--fk-pruning", "batch", "--json"], 0, '"metric": "audit_differences", "value": 0', ""),
]

# small runs of measurements, and figures that each must give
MEASUREMENTS = [
    (["star", "--rows", "4000", "--runs", "2"], ["engine_over_floor", "floor_over_probe", "engine_ns", "floor_ns"]),
    (["star", "--rows", "4000", "--runs", "1", "--shape", "star4l", "--keys", "zipf", "--batch", "700"], ["engine_over_floor"]),
    (["star", "--rows", "4000", "--runs", "1", "--shape", "wide", "--clock", "cpu"], ["engine_over_floor"]),
    (["star", "--rows", "9000", "--runs", "1", "--batch", "5000", "--threads", "2"], ["threaded_ns", "one_thread_over_threads"]),
    (["star", "--rows", "1500", "--runs", "1", "--sweep"], ["engine_over_floor_of_batch"]),
    (["star", "--rows", "4000", "--runs", "1", "--change", "mixed", "--batch", "100"], ["mixed_ns"]),
    (["star", "--rows", "4000", "--runs", "1", "--change", "update"], ["update_ns"]),
    (["star", "--rows", "4000", "--runs", "1", "--change", "everything", "--batch", "100"], ["everything_ns"]),
    (["snowflake", "--rows", "2000", "--batches", "1", "--runs", "1"], ["pruned_ns", "pruned_speedup", "telescoping_speedup"]),
    (["hotkey", "--rows", "1000", "--statements", "999", "--batches", "2", "--runs", "1"], ["statements_over_net", "statement_ns"]),
    (["latency", "--rows", "1500", "--pushes", "50", "--grow", "300", "--runs", "2"],
     ["p99_over_p50", "fact_insert_ns", "dimension_update_ns", "growing_dimension_ns", "beside_nobody_1000_ns", "beside_snapshot_1500_ns",
      "beside_threads_1500_ns"]),
    (["scale", "--rows", "10000", "--pushes", "20", "--runs", "2"], ["ratio", "fact_delete_ratio", "dimension_update_ns"]),
    (["tpch", "--scale", "0.001", "--sets", "3", "--runs", "1"], ["load_ns", "refresh_insert_ns", "refresh_delete_speedup"]),
    (["tpch", "--scale", "0.001", "--sets", "3", "--runs", "1", "--query", "q12"], ["load_ns"]),
    (["all", "--quick", "hotkey"], ["statements_over_net"]),
]


def judge(name, ok, text=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"  {name}: {text}")


def run(ivm, arguments):
    return subprocess.run([ivm, *arguments], capture_output=True, text=True)


def told(name, done, code, out, err):
    one_line = code != 2 or done.stderr.count("\n") == 1 or err.startswith("usage")
    ok = done.returncode == code and out in done.stdout and (err in done.stderr if err else not done.stderr) and one_line
    judge(name, ok, f"exit code {done.returncode}, standard output {done.stdout!r}, standard error {done.stderr!r}")


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return 1 if value is None else value + "1" if value[:1] not in "0123456789-NI" else None


def break_one(lines):
    """Changes the first number, text or truth value that a line expects. -> the line's number, None if there is none."""
    for no, line in enumerate(lines, 1):
        expect = line.get("expect", {}) if "error" not in line else {}
        for row in expect.get("rows", []):
            for i, value in enumerate(row):
                new = changed(value)
                if new is not None:
                    row[i] = new
                    return no
    return None


def find_broken(ivm, folder):
    select = [sys.executable, os.path.join(HERE, "oracle", "select.py"), "trust"]
    cases = sorted(os.path.join(HERE, "cases", f) for f in os.listdir(os.path.join(HERE, "cases")))
    for path in subprocess.run(select + cases, check=True, capture_output=True, text=True).stdout.split():
        lines = [json.loads(x) for x in open(path, encoding="utf-8") if x.strip()]
        no = break_one(lines)
        if no is None:
            continue
        broken = os.path.join(folder, os.path.basename(path))
        with open(broken, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)
        done = run(ivm, ["replay", broken])
        judge(f"broken {os.path.basename(path)}", done.returncode == 1 and f"{broken}:{no}: expect" in done.stderr, done.stderr)


def rows(*values):
    return TABLE.encode() + b"".join(b'{"push": [{"insert": "t", "rows": [[%d, %s]]}]}\n' % (i, value) for i, value in enumerate(values))


# What is no scenario, or one that hardly can be: name, bytes, exit code, what standard output and standard error say.
HOSTILE = [
    ("lists in lists", b"[" * 1000000, 2, "", ":1: not JSON"),
    ("objects in objects", b'{"a":' * 1000000, 2, "", ":1: not JSON"),
    ("a cell of lists in lists", rows(b"[" * 1500 + b"]" * 1500), 1, "1 wrong", "no value of type float64"),
    ("a plan of plans", TABLE.encode() + b'{"view": {"name": "v", "plan": ' + b'{"op": "distinct", "input": ' * 1500 + b'{"op": "scan", "table": "t"}' +
     b"}" * 1502 + b"\n", 1, "1 wrong", "invalid_plan"),
    ("a number without an end", rows(b"9" * 1000000), 0, "0 wrong", ""),
    ("an id without an end", rows(b"1")[:-4] + b", [" + b"9" * 1000000 + b", 1]]}]}\n", 2, "", ":2: not JSON"),
    ("an id past int64", TABLE.encode() + b'{"push": [{"insert": "t", "rows": [[9223372036854775808, 1]]}]}\n', 1, "1 wrong", "no value of type int64"),
    ("an exponent without an end", rows(b"1e" + b"9" * 100000), 0, "0 wrong", ""),
    ("a big number that is none", rows(b'{"big": "nan"}', b'{"big": "1e5x"}', b'{"big": ""}', b'{"big": "0x10"}', b'{"big": 5}', b'{"big": "1e5"}'), 1,
     "5 wrong", "no value of type float64"),
    ("signs alone", rows(b"-"), 2, "", ":2: not JSON"),
    ("bytes that are no UTF-8", b'{"#": "\xff"}\n', 2, "", ":1: not JSON"),
    ("half a character", b'{"#": "\xe2\x82"}\n', 2, "", ":1: not JSON"),
    ("a surrogate", b'{"#": "\xed\xa0\x80"}\n', 2, "", ":1: not JSON"),
    ("an escaped surrogate", b'{"#": "\\ud800"}\n', 2, "", ":1: not JSON"),
    ("null bytes", b"\0" * 1000, 2, "", ":1: not JSON"),
    ("a null byte in a name", b'{"drop_table": "t\\u0000"}\n', 1, "1 wrong", "unknown_table"),
    ("a line that breaks off", b'{"push": [{"insert": "t", "rows": [["\\', 2, "", ":1: not JSON"),
]


def hostile(ivm, folder):
    path = os.path.join(folder, "hostile.jsonl")
    for name, content, code, out, err in HOSTILE:
        with open(path, "wb") as file:
            file.write(content)
        told(name, run(ivm, ["replay", path]), code, out, err)


def digest(ivm, folder, options, *lines):
    path = os.path.join(folder, "digest.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
    first, *rest = run(ivm, ["replay", "--digest", *options, path]).stdout.splitlines()
    judge("digest line", first[16:] == "  " + path and int(first[:16], 16) and len(rest) == 1, first)
    return first


def digests(ivm, folder):
    """One digest for the same contents, however they came about; another where a cell, a weight, a name or an error differs."""
    view = '{"view": {"name": "v", "plan": {"op": "project", "input": {"op": "scan", "table": "t"}, "columns": ["x"]}}}\n'
    lines = [TABLE, view, PUSH, '{"push": [{"insert": "t", "rows": [[3, 2.5]]}]}\n']
    same = digest(ivm, folder, [], *lines)
    judge("same digest", same == digest(ivm, folder, ["--fk-pruning", "off"], *lines), same)
    judge("order of rows", same == digest(ivm, folder, [], *lines[:2], PUSH.replace("[1, 0.1], [2, 2.5]", "[2, 2.5], [1, 0.1]"), lines[3]), same)
    for what, other in (("a cell", [*lines[:2], PUSH.replace("0.1", "0.10000000000000002"), lines[3]]),
                        ("a weight", [*lines[:3], lines[3].replace("2.5", "0.1")]),
                        ("a name", [TABLE, view.replace('"v"', '"w"'), *lines[2:]]),
                        ("an error", [*lines[:3], PUSH]),
                        ("a step", [*lines[:3], lines[3], '{"refresh": "v"}\n']),
                        ("a view less", [*lines[:3], '{"drop_view": "v"}\n', lines[3]])):
        judge(f"digest of {what}", same != digest(ivm, folder, [], *other), same)


# A sale before its product, whose arrival the promise of a foreign key takes out.
BROKEN = ('{"table": {"name": "s", "columns": [["p", "int64"], ["n", "int64"]]}}\n' +
          '{"table": {"name": "p", "columns": [["id", "int64"]], "key": ["id"]}}\n'
          '{"foreign_key": {"child": "s", "columns": ["p"], "parent": "p", "parent_columns": ["id"]}}\n'
          '{"view": {"name": "v", "plan": {"op": "aggregate", "group_by": ["s.p"], "aggregates": [{"as": "n", "fn": "sum", "arg": "s.n"}],'
          ' "input": {"op": "join", "inputs": [{"op": "scan", "table": "s"}, {"op": "scan", "table": "p"}], "on": [["s.p", "p.id"]]}}}}\n'
          '{"view": {"name": "w", "plan": {"op": "scan", "table": "v"}, "refresh": "deferred"}}\n'
          '{"push": [{"insert": "s", "rows": [[1, 5]]}]}\n{"push": [{"insert": "p", "rows": [[1]]}]}\n'
          '{"push": [{"insert": "s", "rows": [[1, 2]]}]}\n{"refresh": "w"}\n{"drop_view": "w"}\n{"drop_view": "v"}\n{"push": []}\n')


def audit(ivm, folder):
    path = os.path.join(folder, "scenario.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(BROKEN)
    told("not audited", run(ivm, ["replay", path]), 0, "0 wrong", "")
    done = run(ivm, ["replay", "--audit", path])
    wrong = [f"{path}:7: audit v: missing [[1, [1, 5]]]; unexpected []",
             f"{path}:8: audit v: missing [[1, [1, 7]]]; unexpected [[1, [1, 2]]]",
             f"{path}:9: audit v: missing [[1, [1, 7]]]; unexpected [[1, [1, 2]]]"]
    ok = done.returncode == 1 and "1 scenarios, 0 expectations, 5 wrong" in done.stdout and done.stderr.splitlines() == wrong
    judge("audited", ok, f"exit code {done.returncode}, standard output {done.stdout!r}, standard error {done.stderr!r}")
    told("audited without foreign keys", run(ivm, ["replay", "--audit", "--fk-pruning", "off", path]), 0, "0 wrong", "")


def durable(ivm, folder):
    """Through directories a scenario's views hold what they hold anyway; nothing of them is left."""
    paths = [os.path.join(HERE, "cases", name) for name in sorted(os.listdir(os.path.join(HERE, "cases")))[:20]]
    place = os.path.join(folder, "place")
    plain, lived = (run(ivm, ["replay", "--digest", *options, *paths]) for options in ([], ["--durable", place]))
    judge("durable", plain.returncode == 0 and plain.stdout == lived.stdout and not lived.stderr, f"{lived.stdout}{lived.stderr}")
    judge("durable leaves nothing", not os.path.exists(place), place)
    told("durable nowhere", run(ivm, ["replay", "--durable", os.path.join(folder, "not", "there"), paths[0]]), 2, "", "io: ")
    done = run(ivm, ["bench", "durable", "--dir", folder, "--pushes", "40", "--threads", "4", "--json"])
    figures = {(line["metric"], line.get("variant")): line["value"] for line in map(json.loads, done.stdout.splitlines())}
    judge("bench durable", done.returncode == 0 and figures.get(("pushes_a_sync", "alone")) == 1 and ("replay_us", "shared") in figures, done.stdout)
    told("durable and restored", run(ivm, ["replay", "--durable", place, "--restored", paths[0]]), 2, "", "not both")


def measure(ivm, folder):
    for arguments, metrics in MEASUREMENTS:
        done = run(ivm, ["bench", *arguments, "--json"])
        name = "bench " + " ".join(arguments)
        try:
            lines = [json.loads(line) for line in done.stdout.splitlines()]
        except ValueError:
            lines = []
        figures = {line["metric"]: line for line in lines}
        judge(name, done.returncode == 0 and not done.stderr, f"exit code {done.returncode}, {done.stderr}")
        judge(name + ": figures", all(m in figures and figures[m]["value"] > 0 for m in metrics), done.stdout)
        judge(name + ": spread", all(line["low"] <= line["value"] * 1.00001 and line["value"] <= line["high"] * 1.00001
                                     for line in lines if "runs" in line), done.stdout)
        judge(name + ": conditions", lines and all(lines[-1].get(m) for m in ("commit", "compiler", "allocator", "clock")), done.stdout)
    done = run(ivm, ["bench", "all", "--quick", "memory"])
    judge("bars", done.returncode == 0 and re.search(r"bytes of a retained fact .* at most +1.6, goal +1.2 +measured +[0-9.]+ +(bar|not) ?", done.stdout)
          and "star" not in done.stdout.lower().split("held to")[-1], done.stdout)
    plot = os.path.join(folder, "plots")
    done = run(ivm, ["bench", "star", "--sweep", "--rows", "2000", "--runs", "1", "--plot", plot])
    if shutil.which("gnuplot"):  # of what a sweep measures the chosen lines alone, by words
        text = open(os.path.join(plot, "star-batch-ns.svg"), encoding="utf-8").read()
        judge("plot in words", "STAR4: ivm" in text and "fact rows in a batch" in text and "_ns" not in text, done.stdout + done.stderr)
    done = run(ivm, ["bench", "scale", "--rows", "10000", "--pushes", "20", "--runs", "2", "--plot", plot])
    if shutil.which("gnuplot"):
        drawn = os.path.join(plot, "scale-facts-ns.svg")
        kept = [json.loads(line) for line in open(os.path.join(plot, "scale.jsonl"), encoding="utf-8")]
        judge("plot", done.returncode == 0 and os.path.exists(drawn) and "a fact row comes" in open(drawn, encoding="utf-8").read() and
              kept[-1]["metric"] == "conditions", done.stdout + done.stderr)
    else:
        judge("plot", done.returncode == 2 and "needs gnuplot" in done.stderr, done.stdout + done.stderr)


def explain(ivm):
    path = os.path.join(HERE, "cases", "star_of_three.jsonl")
    done = run(ivm, ["explain", "--format", "json", path])
    texts = [json.loads(text) for text in done.stdout.splitlines() if text] if done.returncode == 0 else []
    judge("explain json", texts and all(t["joins"] and t["joins"][0]["all"] for t in texts), done.stdout + done.stderr)
    facts = [fact for t in texts for fact in t["joins"][0]["facts"]]
    judge("explain json: trust", facts and all(fact["trust"] in ("rely", "enforced", "tracked") for fact in facts), facts)
    done = run(ivm, ["explain", path])
    told("explain text", done, 0, "  pruning row\n", "")
    told("explain text: facts", done, 0, "  fact    leaf 0 -> leaf 1, rely: ", "")
    told("explain text: masks", done, 0, "  masks (Moebius count) 7 in all, ", "")
    told("explain text: legend", done, 0, "(Moebius)\n", "")
    told("explain dot", run(ivm, ["explain", "--format", "dot", path]), 0, "digraph", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the command")
    ivm = parser.parse_args().ivm
    for arguments, code, out, err in COMMANDS:
        told("ivm " + " ".join(arguments), run(ivm, arguments), code, out, err)
    with tempfile.TemporaryDirectory() as folder:
        for name, lines, code, out, err in SCENARIOS:
            path = os.path.join(folder, "scenario.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(lines)
            told(name, run(ivm, ["replay", path]), code, out, err)
        hostile(ivm, folder)
        audit(ivm, folder)
        find_broken(ivm, folder)
        digests(ivm, folder)
        durable(ivm, folder)
        measure(ivm, folder)
    explain(ivm)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
