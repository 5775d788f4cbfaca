"""The comparison of bench/peers with the one peer that needs no download: all of its workloads run and its views are ours, and where a view
is spoilt, a stream cut short or a text changed, that is told and fails. Bars are judged and the chart is drawn.

    peers.py --ivm COMMAND --sqlite PROGRAM"""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "bench", "peers", "compare.py")
# Runs the program, then changes the lowest byte of the first row's number of fact rows.
SPOILER = '#!/bin/sh\n"{program}" "$1" "$2" && printf "\\377" | dd of="$2" bs=1 seek=40 conv=notrunc 2>/dev/null\n'

spec = importlib.util.spec_from_file_location("comparison", COMPARE)
comparison = sys.modules["comparison"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(comparison)

passed = failed = 0


def judge(name, ok, text=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"  {name}: {text}")


def compare(ivm, sqlite, *options):
    return subprocess.run([sys.executable, COMPARE, "--quick", "--json", "--ivm", ivm, "--sqlite", sqlite, *options], capture_output=True, text=True)


def workloads_agree(ivm, sqlite):
    done = compare(ivm, sqlite)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    judge("exit code", done.returncode == 0, done.stderr)
    judge("two figures for each of four workloads", len(figures) == 8 and len({f["workload"] for f in figures}) == 4, done.stdout)
    judge("values", all(f["value"] > 0 and f["ours"] > 0 and f["ratio"] > 0 for f in figures), done.stdout)


def spoilt_view_fails(ivm, sqlite, folder):
    spoiler = os.path.join(folder, "spoiler")
    with open(spoiler, "w", encoding="utf-8") as file:
        file.write(SPOILER.format(program=sqlite))
    os.chmod(spoiler, 0o755)
    done = compare(ivm, spoiler, "--workloads", "small STAR4, one-row")
    judge("spoilt view", done.returncode == 1 and not done.stdout and "differs from ours in 1 of" in done.stderr, done.stdout + done.stderr)


def spoilt_stream_fails(ivm, folder):
    text, cells = os.path.join(folder, "star.txt"), os.path.join(folder, "star.bin")
    subprocess.run([ivm, "bench", "dump", "insert", folder, "--base", "10", "--batch", "10", "--pushes", "2"], check=True)
    lines = open(text, encoding="utf-8").read()

    def stream(name, code):
        done = subprocess.run([ivm, "bench", "stream", folder], capture_output=True, text=True)
        judge(name, done.returncode == code, f"{done.returncode} {done.stderr}")

    stream("sound stream", 0)
    for name, old, new in (("no timed push", "timed", "warm"), ("a part without rows", "f + 10", "f +"), ("an unknown table", "f + 10", "d9 + 10"),
                           ("no unit", "unit", "push"), ("more rows than there are", "f + 10", "f + 11")):
        with open(text, "w", encoding="utf-8") as file:
            file.write(lines.replace(old, new))
        stream(name, 2)
    with open(text, "w", encoding="utf-8") as file:
        file.write(lines)
    os.truncate(cells, os.path.getsize(cells) - 1)
    stream("a stream cut short", 2)


def bars_are_judged_by_the_least_ratio():
    told = [{"peer": peer, "workload": "STAR4, batches of 1,000", "metric": "time of each changed row", "ratio": ratio}
            for peer, ratio in (("differential joins", 40), ("differential delta", 29), ("dbsp", 9))]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        comparison.bars_report(told, True)
    bars = [json.loads(line) for line in out.getvalue().splitlines()]
    judge("bars of the peers that were there", [(b["value"], b["met"], b["goal_met"]) for b in bars] == [(29, True, False), (9, False, False)], out.getvalue())


def chart_is_drawn(folder):
    told = [{"peer": peer, "workload": workload + ", base", "metric": "p50 of a push", "ratio": 2.5}
            for peer in ("dbsp", "duckdb delta") for workload in ("STAR4, mixed", "STAR4, one-row" if peer == "dbsp" else "STAR4, few one-row")]
    program = comparison.drawing(told)
    judge("of one row a peer that takes long too", '"one fact row" 2.5 2.5' in program, program)
    judge("a chart of two peers", '"mixed batch" 2.5 2.5' in program and '"dimension row" NaN NaN' in program and program.count("title 'd") == 2, program)
    for figures, name in ((told, "drawn"), (told[:0], "nothing to draw")):
        try:
            comparison.draw(figures, folder)
            drawn = os.path.getsize(os.path.join(folder, "peers.svg")) > 0
        except comparison.Failure:
            drawn = False
        except FileNotFoundError:
            drawn = not shutil.which("gnuplot") and bool(figures)
        judge(name, drawn == bool(figures))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ivm", required=True)
    parser.add_argument("--sqlite", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workloads_agree(arguments.ivm, arguments.sqlite)
        spoilt_view_fails(arguments.ivm, arguments.sqlite, folder)
        spoilt_stream_fails(arguments.ivm, folder)
        bars_are_judged_by_the_least_ratio()
        chart_is_drawn(os.path.join(folder, "chart"))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
