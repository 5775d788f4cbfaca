#!/usr/bin/env python3
"""conformance.py --ivm PATH [--every N] [--joins N] [--negative N] [--breaking N] [--terms N] [--first-seed S]

Replays scenarios with the built command under every setting of the planner, half of them with one thread and half with two, and counts
the runs that hold:
- each file of cases/;
- random scenarios that oracle/gen.py makes and oracle/oracle.py recomputes, of foreign keys of each trust and of none: N of all kinds of
  plans and events each (every), N of joins, cycles and shared parents alone each (joins), and N with weights below zero (negative);
- N whose batches break the facts that are enforced (breaking);
- N of all kinds under settings of their own, with the changes, the join terms and the bounds on delta rows of most views stated after each
  step, and terms of stated facts (terms).

A file's own "set" lines win over the settings. What a case with join terms states holds for skip_empty on; where it is off the oracle
states it anew: terms, and pushes of too many masks. Where it is off every view is audited after each step, too, and the
engine is saved before each step and goes on from what is restored; where it is on and the join rule is auto the engine lives in a directory, and
is closed and opened again before each step. What the views of a random scenario hold after each step, and its checkpoints,
must be the same to the bit under every setting: the digests that the command gives of it are compared, and one that differs does not hold.
One process takes many files; one that crashes is asked again file by file. The last line is "N passed, N failed";
the exit code is 1 if any failed.
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
PRUNINGS = ["off", "batch", "row"]
SKIPS = ["yes", "no"]
FILES_A_PROCESS = 100
TIMEOUT = 600
SHOWN = 20
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # where directories cost no disk
TRUSTS = ["none", "rely", "enforced", "tracked"]
SHAPES = ["unchanged", "insert_only", "mixed"]
KINDS = {"every": ["all"], "joins": "joins aggs self cycle shared deferred ddl settings".split(),
         "negative": ["all", "negative"], "terms": "all self cycle shared without=checkpoint,settings".split()}


# ---------------------------------------------------------------- the files

def cases_covered():
    cases = sorted(os.path.join(HERE, "cases", f) for f in os.listdir(os.path.join(HERE, "cases")) if f.endswith(".jsonl"))
    select = [sys.executable, os.path.join(HERE, "oracle", "select.py"), "all"]
    return subprocess.run(select + cases, check=True, capture_output=True, text=True).stdout.split()


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
    name, seed, trust, folder = job
    path = os.path.join(folder, f"{name}_{seed}_{trust}.jsonl")
    lines = breaking_facts(seed) if name == "breaking" else gen.scenario(seed, [*KINDS[name], f"fk={trust}"])
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in (with_terms(lines, seed) if name == "terms" else lines))
    return path


def breaking_facts(seed):
    """Batches that keep no foreign key, under enforced facts: which of them are refused, and what holds after, the oracle says."""
    out = []
    for line in gen.scenario(seed, ["joins", "outer", "aggs", "self", "cycle", "shared", "fk=tracked"]):
        if "foreign_key" in line:
            line = {"foreign_key": {**line["foreign_key"], "trust": "enforced"}}
        out.append(line)
    return oracle.run(out, fill=True)[1]


class Stated(oracle.Database):
    """States bounds on delta rows in which rows that only come count as often as they do: an engine need not look for equal ones among them,
    for nothing can cancel. And under fk_pruning row, where the counts of pruned and empty masks are the engine's affair, those that must run: the masks of the
    leaves of which the bounds on delta rows leave something. Without skip_empty, and from stated facts, it may run others."""

    def row_deltas(self, node, read, step):
        out, leaves = super().row_deltas(node, read, step), oracle.flatten(node, step.after)[0]
        for i, (leaf, (table, gone)) in enumerate(zip(leaves, self.pruned(node, step))):
            delta = oracle.difference(oracle.evaluate(leaf, step.after), oracle.evaluate(leaf, step.before))
            if table:
                rows = step.delta(table)
                kept = oracle.Bag(rows.schema, [(r, w) for r, w in rows.items() if oracle.key_row(r) not in gone])
                delta = oracle.evaluate(leaf, {**step.after, table: kept})
            if all(w > 0 for r, w in delta.items()):
                out[i] = sum(w for r, w in delta.items())
        return out

    def terms(self, name):
        node, read, step = self.first_join(name)
        stated = self.explained and self.explained["view"] == name
        if (self.options if stated else step.options)["fk_pruning"] != "row":
            return super().terms(name)
        counts = self.count(node, read, step)
        exact = not stated and step.options["skip_empty"]
        return {k: counts[k] for k in ("inputs", "all", "run", "masks") if exact or k in ("inputs", "all")}


def fill(lines):
    oracle.Database = Stated
    return oracle.run(lines, fill=True)[1]


def stated_facts(rng, view, lines):
    """An explain of the view from drawn shapes, of all tables that there ever were, and now and then from some of their facts."""
    tables = [line["table"]["name"] for line in lines if "table" in line]
    facts = [line["foreign_key"] for line in lines if "foreign_key" in line]
    out = {"view": view, "deltas": {table: rng.choice(SHAPES) for table in tables if rng.random() < 0.7}}
    if rng.random() < 0.4:
        out["foreign_keys"] = [{**fact, "trust": rng.choice(TRUSTS[1:])} for fact in rng.sample(facts, rng.randint(0, len(facts)))]
    return {"explain": out}


def with_terms(lines, seed):
    """The lines under settings drawn by the seed, with a refresh now and then and with terms, bounds and changes to expect after each line
    that may have altered them, all stated by the oracle."""
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
            out += [{"expect_deltas": {"view": view, "rows": []}}] if rng.random() < 0.5 else []
            out += [{"expect_changes": {"view": view, "rows": []}}] if rng.random() < 0.4 else []
        if views and rng.random() < 0.3:
            view = rng.choice(views)
            out += [stated_facts(rng, view, lines), {"expect_terms": {"view": view}}]
    return fill(out)


def write_randoms(pool, args, name, folder):
    count, seeds = getattr(args, name), range(args.first_seed, args.first_seed + getattr(args, name))
    if name in ("every", "joins"):
        jobs = [(name, seed, trust, args.keep or folder) for trust in TRUSTS for seed in seeds]
        told = f"each with fk={', '.join(TRUSTS)}"
    else:
        jobs = [(name, seed, TRUSTS[seed % 4] if name != "breaking" else "enforced", args.keep or folder) for seed in seeds]
        told = "fk=enforced" if name == "breaking" else f"with fk={', '.join(TRUSTS)} in turn"
    files = pool.map(write_random, jobs, chunksize=8)
    print(f"{len(files)} random scenarios ({name}{f', seeds {seeds[0]} to {seeds[-1]}, {told}' if count else ''})", flush=True)
    return files


# ---------------------------------------------------------------- replaying

def replay(ivm, options, files):
    """-> the files that do not hold, {path: what was told of it}, and the digests, {path: text}."""
    try:
        done = subprocess.run([ivm, "replay", "--digest", *options, *files], capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        done = None
    bad = {}
    for line in done.stderr.splitlines() if done else []:
        path = next((f for f in files if line.startswith(f + ":")), None)
        if path:
            bad.setdefault(path, line)
    digests = {path: digest for digest, gap, path in (line.partition("  ") for line in done.stdout.splitlines())} if done else {}
    held = f"{len(files)} scenarios, " in done.stdout if done else False
    if held and done.returncode == (1 if bad else 0):
        return bad, digests
    if len(files) > 1:
        for path in files:
            one, digest = replay(ivm, options, [path])
            bad.update(one)
            digests.update(digest)
        return bad, digests
    why = f"exit code {done.returncode}: {done.stderr.strip()[-500:]}" if done else f"no end after {TIMEOUT} s"
    return {files[0]: f"{files[0]}: {why}"}, {}


def run_setting(pool, ivm, setting, files, wanted):
    """`wanted`: the digests of the files that must have one under every setting, as they are found."""
    rule, pruning, skip = setting
    threads = 1 + (RULES.index(rule) + PRUNINGS.index(pruning) + SKIPS.index(skip)) % 2
    options = ["--join-rule", rule, "--fk-pruning", pruning, "--skip-empty", skip, "--threads", str(threads)]
    options += ["--audit", "--restored"] if skip == "no" else []
    with tempfile.TemporaryDirectory(dir=MEMORY) as places:
        return run_parts(pool, ivm, options, places if skip == "yes" and rule == "auto" else None, files, wanted)


def durable(places, nth):
    """Each process's engines live in a directory of its own."""
    return ["--durable", os.path.join(places, str(nth))] if places else []


def run_parts(pool, ivm, options, places, files, wanted):
    parts = [files[first:first + FILES_A_PROCESS] for first in range(0, len(files), FILES_A_PROCESS)]
    bad = {}
    jobs = [(ivm, options + durable(places, nth), part) for nth, part in enumerate(parts)]
    for part, digests in pool.starmap(replay, jobs, chunksize=1):
        bad.update(part)
        for path, digest in digests.items():
            if path in wanted and digest != (wanted[path] or digest):
                bad.setdefault(path, f"{path}: digest {digest}, under other settings {wanted[path]}")
            wanted.update({path: wanted[path] or digest} if path in wanted else {})
    for text in list(bad.values())[:SHOWN]:
        print(f"  {' '.join(options)}: {text}")
    if len(bad) > SHOWN:
        print(f"  {' '.join(options)}: and {len(bad) - SHOWN} more")
    return len(files) - len(bad), len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the command")
    parser.add_argument("--every", type=int, default=500, help="how many random scenarios of all kinds, of each trust")
    parser.add_argument("--joins", type=int, default=200, help="how many of joins, cycles and shared parents, of each trust")
    parser.add_argument("--negative", type=int, default=200, help="how many with weights below zero")
    parser.add_argument("--breaking", type=int, default=100, help="how many whose batches break enforced facts")
    parser.add_argument("--terms", type=int, default=200, help="how many of all kinds with join terms, under settings of their own")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the random scenarios, to look at afterwards")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool() as pool:
        cases = cases_covered()
        print(f"{len(cases)} cases", flush=True)
        *kinds, terms = [write_randoms(pool, args, name, folder) for name in ("every", "joins", "negative", "breaking", "terms")]
        wanted = {path: None for kind in kinds for path in kind}
        for setting in itertools.product(RULES, PRUNINGS, SKIPS):
            files = pool.starmap(stated_for, [(setting, path, folder) for path in cases]) + list(wanted)
            good, bad = run_setting(pool, args.ivm, setting, files, wanted)
            print(f"join_rule {setting[0]}, fk_pruning {setting[1]}, skip_empty {setting[2]}: {good} hold, {bad} do not", flush=True)
            passed, failed = passed + good, failed + bad
        good, bad = run_setting(pool, args.ivm, (RULES[0], PRUNINGS[0], SKIPS[0]), terms, {})
        print(f"settings of their own: {good} hold, {bad} do not")
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
