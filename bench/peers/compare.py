#!/usr/bin/env python3
"""Compares ivm with other engines on the same batches: see README.md beside this file. bench/peers/run builds the programs and calls this.

For each workload `ivm bench dump` writes the batches once. Then ivm and one peer at a time run them in turn, a process each, for some rounds; a
round's ratio is taken from that round. A peer's view is compared with ours after every run, and its time counts only if they are equal."""
import argparse
import array
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

# A peer: the program and its plan.
PEERS = {
    "differential joins": ("differential", "joins"),
    "differential delta": ("differential", "delta"),
    "differential pruned": ("differential", "pruned"),
    "dbsp": ("dbsp", None),
    "duckdb delta": ("duckdb", "delta"),
    "duckdb recompute": ("duckdb", "recompute"),
    "sqlite triggers": ("sqlite", None),
}
DATAFLOW = ["differential joins", "differential delta", "differential pruned", "dbsp"]
NAMES = {"differential": "differential-dataflow", "dbsp": "dbsp", "duckdb": "DuckDB", "sqlite": "SQLite"}


@dataclasses.dataclass
class Workload:
    name: str
    peers: list
    kind: str  # of `ivm bench dump`
    base: int
    batch: int
    pushes: int
    warm: int = 4
    star: str = "4"
    pushes_matter: bool = False  # the figure is a push's median and 99th percentile
    quick: bool = True  # part of --quick, with a tenth of base and pushes


def workloads(full):
    big = 10_000_000 if full else 2_000_000
    return [
        Workload("STAR4, batches of 1,000", DATAFLOW + ["duckdb delta"], "insert", 100_000, 1000, 500),
        Workload("STAR4, batches of 100,000", DATAFLOW + ["duckdb delta"], "insert", 100_000, 100_000, 10, 1),
        Workload("STAR4L, batches of 1,000", DATAFLOW + ["duckdb delta"], "insert", 100_000, 1000, 500, star="4l", quick=False),
        Workload("STAR4L, batches of 100,000", DATAFLOW + ["duckdb delta"], "insert", 100_000, 100_000, 10, 1, star="4l"),
        Workload("STAR4, mixed batches of 10,000", DATAFLOW + ["duckdb delta"], "mixed", 300_000, 10_000, 20, 2),
        Workload("STAR4, a dimension row at fan-out 1,000", [p for p in DATAFLOW if p != "differential pruned"] + ["duckdb delta"], "dimension",
                 1_000_000, 1000, 200, 8),
        Workload("STAR4, one-row pushes", DATAFLOW, "insert", 300_000, 1, 2000, 100, pushes_matter=True),
        Workload("STAR4, few one-row pushes", ["duckdb delta"], "insert", 300_000, 1, 200, 10, pushes_matter=True),
        Workload(f"STAR4L, 10,000 rows into {big:,}", ["duckdb delta"], "insert", big, 10_000, 5, 1, star="4l", quick=False),
        Workload(f"STAR4L, all of {big:,} rows", ["duckdb recompute"], "insert", 100_000, 100_000, big // 100_000 - 1, 1, star="4l", quick=False),
        Workload("small STAR4, batches of 1,000", ["sqlite triggers"], "insert", 20_000, 1000, 50),
        Workload("small STAR4, mixed batches of 1,000", ["sqlite triggers"], "mixed", 20_000, 1000, 40),
        Workload("small STAR4, a dimension row at fan-out 100", ["sqlite triggers"], "dimension", 100_000, 1000, 40, 8),
        Workload("small STAR4, one-row pushes", ["sqlite triggers"], "insert", 20_000, 1, 1000, 100, pushes_matter=True),
    ]


def quickened(workload):
    shrink = dataclasses.replace(workload, base=max(workload.base // 10, 4000), pushes=max(workload.pushes // 10, 2))
    if workload.batch == 100_000:
        shrink.base = 20_000
    return shrink


@dataclasses.dataclass
class Bar:
    """What ivm is held to against the fastest of some peers, where they do the same work."""
    what: str
    workload: str  # how its name begins
    peers: list
    metric: str  # how its name begins
    bar: float
    goal: float


BARS = [
    Bar("fact rows in batches of 1,000, over differential-dataflow", "STAR4, batches of 1,000", DATAFLOW[:2], "time", 10, 30),
    Bar("fact rows in batches of 1,000, over its hand-pruned program", "STAR4, batches of 1,000", DATAFLOW[2:3], "time", 5, 15),
    Bar("fact rows in batches of 1,000, over dbsp", "STAR4, batches of 1,000", ["dbsp"], "time", 10, 15),
    Bar("fact rows in batches of 100,000, over differential-dataflow", "STAR4, batches of 100,000", DATAFLOW[:2], "time", 10, 30),
    Bar("fact rows in batches of 100,000, over its hand-pruned program", "STAR4, batches of 100,000", DATAFLOW[2:3], "time", 5, 15),
    Bar("fact rows in batches of 100,000, over dbsp", "STAR4, batches of 100,000", ["dbsp"], "time", 10, 15),
    Bar("mixed batches, over differential-dataflow", "STAR4, mixed", DATAFLOW[:2], "time", 8, 20),
    Bar("mixed batches, over dbsp", "STAR4, mixed", ["dbsp"], "time", 5, 15),
    Bar("a dimension row at fan-out 1,000, over differential-dataflow", "STAR4, a dimension row", DATAFLOW[:2], "time", 10, 30),
    Bar("one-row pushes, median, over differential-dataflow", "STAR4, one-row", DATAFLOW[:2], "p50", 20, 60),
    Bar("every fact row over DuckDB's one recomputation", "STAR4L, all of 10,000,000", ["duckdb recompute"], "time", 1.2, 1.5),
    Bar("10,000 fact rows into 10,000,000, over DuckDB's delta query", "STAR4L, 10,000 rows into 10,000,000", ["duckdb delta"], "time", 20, 60),
]


class Failure(Exception):
    pass


def run(command, what):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{what} failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    return done.stdout


def dump(ivm, workload, folder):
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--star", workload.star, "--base", workload.base, "--batch", workload.batch, "--pushes", workload.pushes, "--warm", workload.warm]
    run([ivm, "bench", "dump", workload.kind, folder, *options], "ivm bench dump")


def view_rows(path):
    """The rows of a view's file as {attributes: (total, fact rows)}."""
    cells = array.array("q", path.read_bytes())
    if sys.byteorder == "big":
        cells.byteswap()
    rows = {tuple(cells[i:i + 4]): tuple(cells[i + 4:i + 6]) for i in range(0, len(cells), 6)}
    if len(rows) * 6 != len(cells):
        raise Failure(f"{path.name} has a group twice")
    return rows


def measure(command, view, what):
    return json.loads(run([*command, view], what).splitlines()[-1])


class Round:
    """One run of ours and one of a peer's on the same batches."""

    def __init__(self, ivm, program, plan, folder):
        ours_view, view = folder / "ours.view", folder / "peer.view"
        self.ours = measure([ivm, "bench", "stream", folder], ours_view, "ivm bench stream")
        self.peer = json.loads(run([program, folder, view] + ([plan] if plan else []), "the peer").splitlines()[-1])
        ours, peer = view_rows(ours_view), view_rows(view)
        differing = sum(ours.get(group) != peer.get(group) for group in ours.keys() | peer.keys())
        if differing or not ours:
            raise Failure(f"its view differs from ours in {differing} of {len(ours)} groups")
        self.groups = len(ours)


def figures(workload, rounds):
    """(metric, values of the peer, of ours), one of each a round, in nanoseconds."""
    if workload.pushes_matter:
        return [(f"{name} of a push", [r.peer[f"{name}_ns"] for r in rounds], [r.ours[f"{name}_ns"] for r in rounds]) for name in ("p50", "p99")]
    unit = rounds[0].ours["unit"].replace("_", " ")
    return [(f"{clock} of each {unit}", [r.peer[f"{key}_ns"] / r.peer["units"] for r in rounds], [r.ours[f"{key}_ns"] / r.ours["units"] for r in rounds])
            for clock, key in (("time", "timed"), ("processor time", "timed_cpu"))]


def report(workload, peer, rounds, setting, as_json):
    """Prints a line a figure and gives the figures."""
    told = []
    for metric, theirs, ours in figures(workload, rounds):
        ratios = sorted(a / b for a, b in zip(theirs, ours))
        value, our_value, ratio = statistics.median(theirs), statistics.median(ours), statistics.median(ratios)
        told.append({"peer": peer, "workload": workload.name, "metric": metric, "unit": "ns", "value": round(value, 1), "ours": round(our_value, 1),
                     "ratio": round(ratio, 2), "ratio_min": round(ratios[0], 2), "ratio_max": round(ratios[-1], 2), "rounds": len(rounds),
                     "base_rows": workload.base, "units": rounds[0].ours["units"], "pushes": rounds[0].ours["pushes"], "groups": rounds[0].groups,
                     "program": rounds[0].peer["program"], "allocator": rounds[0].peer["allocator"],
                     "our_allocator": rounds[0].ours["allocator"], **setting})
        if as_json:
            print(json.dumps(told[-1]), flush=True)
        else:
            print(f"  {peer:20} {metric:36} {value:12,.0f} ns   ours {our_value:10,.0f}   ratio {ratio:8.1f}  ({ratios[0]:.1f} to {ratios[-1]:.1f})", flush=True)
    return told


def bars_report(told, as_json):
    """Each bar whose figures are there: held against the least of its peers' ratios."""
    for bar in BARS:
        found = [f for f in told if f["workload"].startswith(bar.workload) and f["peer"] in bar.peers and f["metric"].startswith(bar.metric)]
        if len(found) < len(bar.peers):
            continue
        least = min(found, key=lambda f: f["ratio"])
        met, goal_met = least["ratio"] >= bar.bar, least["ratio"] >= bar.goal
        if as_json:
            print(json.dumps({"metric": "bar", "what": bar.what, "value": least["ratio"], "peer": least["peer"], "bar": bar.bar, "goal": bar.goal, "met": met,
                              "goal_met": goal_met}))
        else:
            verdict = "bar and goal met" if goal_met else "bar met, goal not" if met else "not met"
            print(f"{bar.what:68} bar {bar.bar:4g}, goal {bar.goal:3g}   {least['ratio']:7.1f} ({least['peer']})   {verdict}")


# ---- Drawing -----------------------------------------------------------------------------------------------------------------------

# How the names of a group of bars begin: a peer that takes long does fewer pushes, in a workload of its own.
DRAWN = [(("STAR4, batches of 1,000",), "1,000 fact rows"), (("STAR4, batches of 100,000",), "100,000 fact rows"), (("STAR4, mixed",), "mixed batch"),
         (("STAR4, a dimension row",), "dimension row"), (("STAR4, one-row", "STAR4, few one-row"), "one fact row")]
TITLE = r"Time of the same push: times as long as ivm (log scale, higher is slower)\ndifferential pruned cannot follow a dimension row that changes: no bar"


def drawing(told):
    """The gnuplot program of a chart: for each workload how many times longer than ivm each peer takes."""
    peers = [p for p in DATAFLOW + ["duckdb delta"] if any(f["peer"] == p for f in told)]
    lines = ["$ratios << E"]
    for begin, label in DRAWN:
        cells = [next((str(f["ratio"]) for f in told if f["peer"] == p and f["workload"].startswith(begin) and f["metric"].startswith(("time", "p50"))), "NaN")
                 for p in peers]
        lines.append(" ".join([f'"{label}"', *cells]))
    lines += ["E", f'set title "{TITLE}"', "set ylabel 'times as long as ivm'", "set style data histogram", "set style histogram clustered gap 1",
              "set style fill solid 0.8 noborder", "set boxwidth 0.9", "set logscale y 10", "set yrange [1:*]", "set grid y", "set key outside below"]
    bars = ", ".join(f"$ratios using {i + 2}{':xtic(1)' if i == 0 else ''} title '{peer}'" for i, peer in enumerate(peers))
    return "\n".join([*lines, f"plot {bars}"]) + "\n"


def draw(told, directory):
    """Writes the figures and their chart into a folder."""
    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.jsonl").write_text("".join(json.dumps(f) + "\n" for f in told), encoding="utf-8")
    if not any(f["workload"].startswith(begin) for begin, _ in DRAWN for f in told):
        raise Failure("none of the workloads that the chart shows was run")
    program = f"set terminal svg size 1000,500 background 'white' noenhanced\nset output '{folder}/peers.svg'\n" + drawing(told)
    done = subprocess.run(["gnuplot"], input=program, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"gnuplot: {done.stderr.strip()}")


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return "none"


def machine(compiler):
    here = pathlib.Path(__file__).resolve().parent
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return {"compiler": first_line([compiler, "--version"]), "rustc": first_line(["rustc", "--version"]),
            "commit": first_line(["git", "-C", str(here), "describe", "--always", "--dirty"]), "machine": f"{os.cpu_count()} x {model}"}


def programs_of(arguments):
    programs = {}
    for name in NAMES:
        path = getattr(arguments, name)
        if path and os.access(path, os.X_OK):
            programs[name] = path
        else:
            print(f"skipped: {NAMES[name]} (no program)", file=sys.stderr)
    return programs


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the ivm command, of a release build")
    for name in NAMES:
        parser.add_argument(f"--{name}", help=f"the program of {NAMES[name]}; without it that peer is skipped")
    parser.add_argument("--json", action="store_true", help="one JSON line a figure")
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the rows: that all of it works, and no more")
    parser.add_argument("--full", action="store_true", help="10,000,000 fact rows where the default takes 2,000,000")
    parser.add_argument("--rounds", type=int, help="rounds (default 3)")
    parser.add_argument("--peers", help="only those peers whose names contain one of these, comma between")
    parser.add_argument("--workloads", help="only those workloads whose names contain this")
    parser.add_argument("--plot", metavar="DIR", help="write the figures to DIR/peers.jsonl and draw them as DIR/peers.svg (needs gnuplot)")
    parser.add_argument("--folder", help="where batches are written and left (default: a temporary folder)")
    return parser.parse_args()


def chosen(arguments, programs):
    """The workloads to run, each with the peers that take part."""
    for workload in workloads(arguments.full):
        peers = [p for p in workload.peers if PEERS[p][0] in programs and (not arguments.peers or any(w in p for w in arguments.peers.split(",")))]
        wanted = not arguments.workloads or arguments.workloads in workload.name
        if peers and wanted and (workload.quick or not arguments.quick):
            yield dataclasses.replace(quickened(workload) if arguments.quick else workload, peers=peers)


def compare(arguments, programs, workload, folder, setting):
    """Runs one workload; gives the figures, and the number of peers that failed."""
    failed, told = 0, []
    dump(arguments.ivm, workload, folder)
    if not arguments.json:
        print(f"{workload.name}: {workload.base:,} fact rows before, {workload.pushes:,} pushes timed")
    for peer in workload.peers:
        program, plan = PEERS[peer]
        try:
            rounds = [Round(arguments.ivm, programs[program], plan, folder) for _ in range(arguments.rounds or (1 if arguments.quick else 3))]
            told += report(workload, peer, rounds, setting, arguments.json)
        except Failure as failure:
            failed += 1
            print(f"WRONG: {peer}, {workload.name}: {failure}", file=sys.stderr)
    for file in folder.iterdir():
        if not arguments.folder:
            file.unlink()
    return told, failed


def main():
    arguments = parse()
    programs = programs_of(arguments)
    setting = machine("cc")
    failed = compared = 0
    told = []
    if not arguments.json:
        print("; ".join(f"{key}: {value}" for key, value in setting.items()))
        print("ratio: the peer's time over ours, the median of the rounds (lowest to highest)")
    with tempfile.TemporaryDirectory() as temporary:
        for number, workload in enumerate(chosen(arguments, programs)):
            compared += len(workload.peers)
            more, wrong = compare(arguments, programs, workload, pathlib.Path(arguments.folder or temporary) / str(number), setting)
            told, failed = told + more, failed + wrong
    if not arguments.quick:
        bars_report(told, arguments.json)
    if arguments.plot:
        try:
            draw(told, arguments.plot)
        except (Failure, OSError) as failure:
            failed += 1
            print(f"--plot {arguments.plot}: {failure}", file=sys.stderr)
    print(f"{compared - failed} comparisons, {failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
