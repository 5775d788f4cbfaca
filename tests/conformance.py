#!/usr/bin/env python3
"""conformance.py --ivm PATH [--core N] [--operators N] [--terms N] [--enforced N] [--first-seed S]

Replays scenarios with the built command under every setting of the planner and counts the runs that hold:
- each file of cases/ that needs no more than this version has (oracle/select.py operators);
- random scenarios that oracle/gen.py makes and oracle/oracle.py recomputes, with foreign keys relied on under odd seeds and none
  under even ones: N of inner joins and plain aggregates (core), N of all kinds of plans and of events between the pushes (operators), every
  other two seeds of these with weights below zero. And N of the latter kind, under settings of their own, with the changes and
  the join terms of most views stated after each step (terms). And N whose batches break the facts that are enforced (enforced).

A file's own "set" lines win over the settings. What a case with join terms states holds for skip_empty on; where it is off the oracle
states it anew: terms, and pushes of too many masks. Where it is off every view
is audited after each step, too. One process takes many files; one that crashes is asked again file by file.
The last line is "N passed, N failed"; the exit code is 1 if any failed.
"""
import argparse
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "oracle"))
import gen  # noqa: E402
import oracle  # noqa: E402

RULES = ["mobius", "telescoping", "auto"]
PRUNINGS = ["off", "batch"]
SKIPS = ["yes", "no"]
FILES_A_PROCESS = 100
TIMEOUT = 600
SHOWN = 20
CORE = "joins aggs core".split()
ENFORCED_CASES = ["enforced_fact.jsonl", "errors_in_foreign_keys.jsonl"]  # no set of select.py has them alone
OPERATORS = "joins outer aggs sets topk chain deferred ddl settings self cycle shared norow".split()


# ---------------------------------------------------------------- the files

def cases_covered():
    cases = sorted(os.path.join(HERE, "cases", f) for f in os.listdir(os.path.join(HERE, "cases")) if f.endswith(".jsonl"))
    select = [sys.executable, os.path.join(HERE, "oracle", "select.py"), "operators"]
    covered = subprocess.run(select + cases, check=True, capture_output=True, text=True).stdout.split()
    return covered + [os.path.join(HERE, "cases", f) for f in ENFORCED_CASES]


def stated_for(setting, path, folder):
    """The file; where it states join terms and empty deltas are not skipped, a copy that states what holds under the setting."""
    rule, pruning, skip = setting
    with open(path, encoding="utf-8") as file:
        texts = file.readlines()
    if skip == "yes" or not any('"expect_terms"' in text for text in texts):
        return path
    lines = [json.loads(text) if text.strip() else {"#": ""} for text in texts]
    options = {"set": {"join_rule": rule, "fk_pruning": pruning, "skip_empty": False}}
    filled = oracle.run([options, *lines], fill=True)[1][1:]
    copy = os.path.join(folder, f"{rule}_{pruning}_{os.path.basename(path)}")
    with open(copy, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in filled)
    return copy


def write_random(job):
    name, seed, folder = job
    kinds = CORE if name == "core" else OPERATORS
    trust = "rely" if seed % 2 else "none"
    negative = ["negative"] if name != "core" and seed // 2 % 2 else []
    path = os.path.join(folder, f"{name}_{seed}_{trust}.jsonl")
    lines = breaking_facts(seed) if name == "enforced" else gen.scenario(seed, [*kinds, *negative, f"fk={trust}"])
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in (with_terms(lines, seed) if name == "terms" else lines))
    return path


def breaking_facts(seed):
    """Batches that keep no foreign key, under enforced facts: which of them are refused, and what holds after, the oracle says."""
    out = []
    for line in gen.scenario(seed, ["joins", "outer", "aggs", "self", "cycle", "shared", "norow", "fk=tracked"]):
        if "foreign_key" in line:
            line = {"foreign_key": {**line["foreign_key"], "trust": "enforced"}}
        out.append(line)
    return oracle.run(out, fill=True)[1]


def with_terms(lines, seed):
    """The lines under settings drawn by the seed, with a refresh now and then and with terms and changes to expect after each line that
    may have altered them, all stated by the oracle."""
    rng = random.Random(seed)
    rule, pruning, skip = rng.choice(RULES), rng.choice(PRUNINGS), rng.random() < 0.7
    out, views = [{"set": {"join_rule": rule, "fk_pruning": pruning, "skip_empty": skip}}], []
    for line in lines:
        out.append(line)
        if "view" in line:
            views.append(line["view"]["name"])
        if "drop_view" in line:
            views.remove(line["drop_view"])
        if not any(command in line for command in ("push", "refresh", "foreign_key", "drop_view")):
            continue
        if views and rng.random() < 0.1:
            out.append({"refresh": rng.choice(views)})
        for view in views:
            out += [{"expect_terms": {"view": view}}] if rng.random() < 0.7 else []
            out += [{"expect_changes": {"view": view, "rows": []}}] if rng.random() < 0.4 else []
    return oracle.run(out, fill=True)[1]


def write_randoms(pool, args, name, folder):
    count = getattr(args, name)
    seeds = range(args.first_seed, args.first_seed + count)
    files = pool.map(write_random, [(name, seed, args.keep or folder) for seed in seeds], chunksize=8)
    rely = sum(seed % 2 for seed in seeds)
    span = f", seeds {seeds[0]} to {seeds[-1]}" if count else ""
    span += f": {rely} with fk=rely, {count - rely} with fk=none" if count and name != "enforced" else ""
    print(f"{count} random scenarios ({name}{span})", flush=True)
    return files


# ---------------------------------------------------------------- replaying

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


def run_setting(pool, ivm, setting, files):
    rule, pruning, skip = setting
    options = ["--join-rule", rule, "--fk-pruning", pruning, "--skip-empty", skip] + (["--audit"] if skip == "no" else [])
    parts = [files[first:first + FILES_A_PROCESS] for first in range(0, len(files), FILES_A_PROCESS)]
    bad = {}
    for part in pool.starmap(replay, [(ivm, options, part) for part in parts], chunksize=1):
        bad.update(part)
    for text in list(bad.values())[:SHOWN]:
        print(f"  {' '.join(options)}: {text}")
    if len(bad) > SHOWN:
        print(f"  {' '.join(options)}: and {len(bad) - SHOWN} more")
    return len(files) - len(bad), len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the command")
    parser.add_argument("--core", type=int, default=300, help="how many random scenarios of inner joins and plain aggregates")
    parser.add_argument("--operators", type=int, default=500, help="how many of all kinds")
    parser.add_argument("--terms", type=int, default=100, help="how many of all kinds with join terms, under settings of their own")
    parser.add_argument("--enforced", type=int, default=100, help="how many whose batches break enforced facts")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the random scenarios, to look at afterwards")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool() as pool:
        cases = cases_covered()
        print(f"{len(cases)} cases", flush=True)
        core, operators, enforced, terms = [
            write_randoms(pool, args, name, folder) for name in ("core", "operators", "enforced", "terms")]
        for setting in itertools.product(RULES, PRUNINGS, SKIPS):
            files = pool.starmap(stated_for, [(setting, path, folder) for path in cases]) + core + operators + enforced
            good, bad = run_setting(pool, args.ivm, setting, files)
            print(f"join_rule {setting[0]}, fk_pruning {setting[1]}, skip_empty {setting[2]}: {good} hold, {bad} do not", flush=True)
            passed, failed = passed + good, failed + bad
        good, bad = run_setting(pool, args.ivm, (RULES[0], PRUNINGS[0], SKIPS[0]), terms)
        print(f"settings of their own: {good} hold, {bad} do not")
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
