#!/usr/bin/env python3
"""unsound.py --build DIR [--only NAME]

Shows that each guard of the pruning rules is needed. A variant of the command is built in which one guard is taken out: a copy of one source
file with a few lines replaced, compiled as the build does and linked before the library, so that it stands in for the original. A fixed list
of scenario files, which the command as it is passes, must fail under the variant with a view, or its changes, that is wrong. Fails where a
variant survives or crashes, where the lines to replace are not there exactly once, or where the command itself fails.
The last line is "N passed, N failed"; the exit code is 1 if any failed."""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BY_BATCH = ["--fk-pruning", "batch"]
BY_TERMS = ["--join-rule", "telescoping"]

# name, source, [(text, what stands in for it)], options of replay, scenario files
VARIANTS = [
    ("no reachability, by batch", "plan/terms/mask.c", [
        ("        uint64_t rest = all & ~reach_from(kept, edges, edges_count);\n", "        uint64_t rest = 0;\n"),
        ("    assert((skip & ~all) == 0 && skip != all);\n", "")],
     BY_BATCH, ["cases/fk_cycle.jsonl"]),
    ("no reachability, by row", "plan/terms/prune.c", [
        ("    rounds->skip = ivm__skip_mask(it->graph->leaves_count, it->edges->edge, it->edges->count, candidates);\n",
         "    rounds->skip = candidates;\n"),
        ("        assert(next);\n", "        next = next ? next : all & ~reached;\n"),
        (" && it->rounds->round[edge->child] < it->rounds->round[leaf];\n", ";\n")],
     [], ["unsound/reachability.jsonl"]),
    ("one equated column of two", "plan/terms/facts.c", [
        ("            return IVM_OK;\n        }\n    }\n    edges->edge[",
         "            if (i == 0) {\n                return IVM_OK;\n            }\n"
         "            edges->pairs[edges->pairs_count + i] = edges->pairs[edges->pairs_count];\n"
         "        }\n    }\n    edges->edge[")],
     [], ["cases/fk_composite.jsonl", "cases/deltas_composite.jsonl", "cases/fk_not_equated.jsonl"]),
    ("a fact bound by table name", "engine/catalog/table.c", [
        ("        ivm__fact_drop(table->facts);\n", "        return;\n"),
        ("        ivm__fact_drop(table->facts_to);\n", "        return;\n"),
        ("        ivm__table_free(table);\n        ivm__engine_settle(engine);\n",
         "        if (!table->facts && !table->facts_to) {\n"
         "            ivm__table_free(table);\n"
         "        }\n"
         "        ivm__engine_settle(engine);\n"),
        ("    *table = made;\n",
         "    *table = made;\n"
         "    for (ivm_fact *fact = engine->facts, *next; fact; fact = next) {\n"
         "        ivm_table *child = fact->child, *parent = fact->parent;\n"
         "        next = fact->next;\n"
         "        ivm__fact_delist(fact);\n"
         "        fact->child = strcmp(child->name, name) == 0 ? made : child;\n"
         "        fact->parent = strcmp(parent->name, name) == 0 ? made : parent;\n"
         "        ivm__fact_enlist(fact);\n"
         "        if (fact->child != child && !child->facts && !child->facts_to) {\n"
         "            ivm__table_free(child);\n"
         "        }\n"
         "        if (fact->parent != parent && parent != child && !parent->facts && !parent->facts_to) {\n"
         "            ivm__table_free(parent);\n"
         "        }\n"
         "    }\n"
         "    engine->facts_version++;\n")],
     [], ["cases/drop_and_recreate.jsonl"]),
    ("a late parent trusted, by row", "plan/terms/prune.c", [
        ("    if (!made->prunable || edge->fact->trust != IVM_TRACKED) {\n", "    if (made->prunable || edge->fact->trust != IVM_TRACKED) {\n")],
     [], ["cases/fk_late_parent.jsonl", "cases/tracked_orphans_move.jsonl", "cases/tracked_parent_leaves.jsonl"]),
    ("a late parent trusted, by batch", "plan/terms/term_plan.c", [
        ("    edge->unused = awaited ? IVM__FACT_AWAITED : IVM__FACT_USED;\n", "    edge->unused = IVM__FACT_USED;\n")],
     BY_BATCH, ["cases/fk_late_parent.jsonl", "cases/tracked_orphans_move.jsonl"]),
    ("facts used within a round", "plan/terms/prune.c", [
        (" && it->rounds->round[edge->child] < it->rounds->round[leaf];\n", " && it->rounds->round[edge->child] <= it->rounds->round[leaf];\n")],
     [], ["cases/deltas_tracked_ring.jsonl"]),
    ("a fact used in a step that began before it", "plan/terms/term_plan.c", [
        ("        if (fact->since <= since) {\n", "        if (fact->since <= since || true) {\n")],
     [], ["cases/deferred_fact_declared_late.jsonl"]),
    ("rows told apart by signs", "engine/batch/split.c", [
        ("    bool both = split->table->key_index->doubles && key_stands(split->table, row, came ? IVM__READ_OLD : IVM__READ_CUR, words);\n",
         "    bool both = false && key_stands(split->table, row, came ? IVM__READ_OLD : IVM__READ_CUR, words);\n")],
     [], ["cases/deltas_mixed_batch.jsonl", "cases/fk_key_change.jsonl"]),
    ("old read without what is fresh", "operators/join/join_term.c", [
        ("        source->aside = ivm__leaf_aside(leaf, source->reading);\n",
         "        source->aside = source->reading == IVM__READ_OLD ? NULL : ivm__leaf_aside(leaf, source->reading);\n")],
     BY_TERMS, ["unsound/old_without_fresh.jsonl"]),
    ("current read without what is gone", "operators/join/join_term.c", [
        ("        source->aside = ivm__leaf_aside(leaf, source->reading);\n",
         "        source->aside = source->reading == IVM__READ_CUR ? NULL : ivm__leaf_aside(leaf, source->reading);\n")],
     [], ["cases/deltas_mixed_batch.jsonl"]),
]


def compile_command(build, source):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        found = next(c for c in json.load(file) if os.path.realpath(c["file"]) == os.path.realpath(os.path.join(ROOT, source)))
    return shlex.split(found["command"])


def link_command(build):
    """The last command that makes build/ivm, up to its output."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", "ivm"], check=True, capture_output=True, text=True).stdout.splitlines()
    return shlex.split(lines[-1].replace(": && ", "").replace(" && :", ""))


def with_output(command, output):
    at = command.index("-o")
    return [*command[:at + 1], output, *command[at + 2:]]


def mutated(source, replacements):
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        text = file.read()
    for old, new in replacements:
        if text.count(old) != 1:
            raise ValueError(f"{source} has {text.count(old)} times the text {old.strip()!r}")
        text = text.replace(old, new)
    return text


def variant_build(build, folder, source, text):
    """-> the command with this text in place of the source file."""
    copy, thing, command = (os.path.join(folder, name) for name in (os.path.basename(source), "variant.o", "ivm"))
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text)
    compiled = compile_command(build, source)
    place = compiled.index("-c") + 1
    compiled[place] = copy
    compiled += ["-I" + os.path.join(ROOT, os.path.dirname(source)), "-w"]
    subprocess.run(with_output(compiled, thing), cwd=build, check=True)
    linked = with_output(link_command(build), command)
    linked.insert(next(i for i, word in enumerate(linked) if word.endswith(".a")), thing)
    subprocess.run(linked, cwd=build, check=True)
    return command


def replay(ivm, options, files):
    return subprocess.run([ivm, "replay", *options, *files], capture_output=True, text=True)


def judge(build, variant):
    """-> why the variant does not show what it must; None if it does."""
    name, source, replacements, options, files = variant
    files = [os.path.join(HERE, file) for file in files]
    sound = replay(os.path.join(build, "ivm"), options, files)
    if sound.returncode:
        return f"the command as it is: {sound.stderr.strip()}"
    try:
        text = mutated(source, replacements)
    except ValueError as error:
        return str(error)
    with tempfile.TemporaryDirectory() as folder:
        done = replay(variant_build(build, folder, source, text), options, files)
    wrong = [line for line in done.stderr.splitlines() if ": expect " in line or ": expect_changes " in line]
    if done.returncode != 1 or not wrong:
        return f"exit code {done.returncode}, no wrong view: {done.stderr.strip()[-300:]}"
    print(f"{name}: {len(wrong)} wrong, {os.path.relpath(wrong[0], HERE)[:160]}")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the folder of a build without sanitizers, made with Ninja")
    parser.add_argument("--only", help="this variant alone")
    args = parser.parse_args()
    passed = failed = 0
    for variant in VARIANTS:
        if args.only and args.only != variant[0]:
            continue
        why = judge(os.path.abspath(args.build), variant)
        passed, failed = passed + (why is None), failed + (why is not None)
        if why:
            print(f"{variant[0]}: {why}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
