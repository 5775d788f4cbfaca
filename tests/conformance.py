#!/usr/bin/env python3
"""conformance.py --ivm PATH [--random N] [--first-seed S]

Replays scenarios with the built command under every setting of the planner and counts the runs that hold:
- each file of cases/ that needs no more than this version has (oracle/select.py core);
- N random scenarios that oracle/gen.py makes and oracle/oracle.py recomputes: inner joins and aggregates, foreign keys relied on
  under odd seeds, none under even ones.

A file's own "set" lines win over the settings. Join terms are stated for skip_empty on; where it is off, a file that states
terms is replayed without those lines. One process takes many files; one that crashes is asked again file by file.
The last line is "N passed, N failed"; the exit code is 1 if any failed.
"""
import argparse
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "oracle"))
import gen  # noqa: E402

RULES = ["mobius", "telescoping", "auto"]
PRUNINGS = ["off", "batch"]
SKIPS = ["yes", "no"]
FILES_A_PROCESS = 100
TIMEOUT = 600
SHOWN = 20


def core_cases():
    cases = sorted(os.path.join(HERE, "cases", f) for f in os.listdir(os.path.join(HERE, "cases")) if f.endswith(".jsonl"))
    select = [sys.executable, os.path.join(HERE, "oracle", "select.py"), "core"]
    return subprocess.run(select + cases, check=True, capture_output=True, text=True).stdout.split()


def states_terms(path):
    with open(path, encoding="utf-8") as lines:
        return any('"expect_terms"' in line for line in lines)


def without_terms(path, folder):
    """A copy whose lines that state terms are blank, so that line numbers stay."""
    copy = os.path.join(folder, "without_terms_" + os.path.basename(path))
    with open(path, encoding="utf-8") as lines, open(copy, "w", encoding="utf-8") as out:
        out.writelines("\n" if line.strip() and "expect_terms" in json.loads(line) else line for line in lines)
    return copy


def write_random(job):
    seed, folder = job
    trust = "rely" if seed % 2 else "none"
    path = os.path.join(folder, f"random_{seed}_{trust}.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        for line in gen.scenario(seed, ["joins", "aggs", "core", f"fk={trust}"]):
            out.write(json.dumps(line) + "\n")
    return path


def replay(ivm, options, files):
    """-> the files that do not hold: {path: what was told of it}."""
    try:
        done = subprocess.run([ivm, "replay", *options, *files], capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        done = None
    bad = {}
    for line in done.stderr.splitlines() if done else []:
        path = next((f for f in files if line.startswith(f + ":")), None)
        if path:
            bad.setdefault(path, line)
    held = f"{len(files)} scenarios, " in done.stdout if done else False
    if held and done.returncode == (1 if bad else 0):
        return bad
    if len(files) > 1:
        return {path: text for f in files for path, text in replay(ivm, options, [f]).items()}
    why = f"exit code {done.returncode}: {done.stderr.strip()[-500:]}" if done else f"no end after {TIMEOUT} s"
    return {files[0]: f"{files[0]}: {why}"}


def run_setting(ivm, setting, files):
    rule, pruning, skip = setting
    options = ["--join-rule", rule, "--fk-pruning", pruning, "--skip-empty", skip]
    bad = {}
    for first in range(0, len(files), FILES_A_PROCESS):
        bad.update(replay(ivm, options, files[first:first + FILES_A_PROCESS]))
    for text in list(bad.values())[:SHOWN]:
        print(f"  {' '.join(options)}: {text}")
    if len(bad) > SHOWN:
        print(f"  {' '.join(options)}: and {len(bad) - SHOWN} more")
    return len(files) - len(bad), len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the command")
    parser.add_argument("--random", type=int, default=300, help="how many random scenarios")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the random scenarios, to look at afterwards")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool() as pool:
        cases = core_cases()
        plain = {path: without_terms(path, folder) if states_terms(path) else path for path in cases}
        seeds = range(args.first_seed, args.first_seed + args.random)
        random = pool.map(write_random, [(seed, args.keep or folder) for seed in seeds], chunksize=8)
        rely = sum(seed % 2 for seed in seeds)
        span = f"seeds {seeds[0]} to {seeds[-1]}" if args.random else "no seeds"
        print(f"{len(cases)} cases; {len(random)} random scenarios ({span}: {rely} with fk=rely, {len(random) - rely} with fk=none)")
        for setting in itertools.product(RULES, PRUNINGS, SKIPS):
            files = [path if setting[2] == "yes" else plain[path] for path in cases] + random
            good, bad = run_setting(args.ivm, setting, files)
            print(f"join_rule {setting[0]}, fk_pruning {setting[1]}, skip_empty {setting[2]}: {good} hold, {bad} do not", flush=True)
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
