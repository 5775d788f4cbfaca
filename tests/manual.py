#!/usr/bin/env python3
"""manual.py --ivm IVM: the manual page bench/ivm.1 and what the command's --help prints name the same commands, measurements and options, each where it
belongs, and the same words that an option takes. Where mandoc is, the page must be without a warning of it. The last line is "N passed, N failed"."""
import argparse
import os
import re
import shutil
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench", "ivm.1")
COMMON = {"--json", "--plot", "--clock"}
passed = failed = 0


def judge(name, ok, text=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"{name}: {text}")


def options(text):
    return set(re.findall(r"--[a-z][a-z-]*", text.replace(".Fl -", ".Fl --").replace("Fl -", "Fl --").replace("---", "--")))


def words(text):
    """-> what options take by name, in the page and in a help."""
    return {word for group in re.findall(r"[a-z0-9]+(?: ?\| ?[a-z0-9]+)+", text) for word in re.split(r" ?\| ?", group)}


def sections(page):
    """-> the text of each command's section, and of each measurement in that of bench."""
    found = dict(re.findall(r"^\.Ss (\w+)\n((?:(?!\.S[sh] ).*\n)*)", page, re.MULTILINE))
    return found, dict(re.findall(r"^\.It Xo\n\.Cm (\w+)\n((?:(?!\.It |\.El).*\n)*)", found.get("bench", ""), re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ivm", required=True, help="the command")
    ivm = parser.parse_args().ivm

    def printed(*arguments):
        return subprocess.run([ivm, *arguments, "--help"], capture_output=True, text=True, check=True).stdout

    with open(PAGE, encoding="utf-8") as file:
        commands, measurements = sections(file.read())
    listed = set(re.findall(r"^  (\w+) .*  ", printed(), re.MULTILINE))
    judge("commands", listed == set(commands), f"{listed ^ set(commands)} in one of help and page alone")
    for name in sorted(listed & set(commands)):
        here, there = printed(name), commands[name]
        if name == "bench":
            judge("bench: of all", options(here) - {"--help"} == COMMON and COMMON <= options(there), f"{options(here)}")
            continue
        judge(name, options(here) == options(there), f"{options(here) ^ options(there)} in one of help and page alone")
        judge(f"{name}: words", words(here) <= words(there), f"{words(here) - words(there)} not in the page")
    listed = set(re.findall(r"^  (\w+)  +\S", printed("bench"), re.MULTILINE))
    items = re.findall(r"^\.It Xo\n\.Cm (\w+)$", commands["bench"], re.MULTILINE)
    judge("measurements", listed == set(measurements) and listed, f"{listed ^ set(measurements)} in one of help and page alone")
    judge("measurements", len(items) == len(set(items)), f"{sorted(items)}: one stands twice")
    for name in sorted(listed & set(measurements)):
        here, there = options(printed("bench", name)) - COMMON, options(measurements[name]) - COMMON
        judge(f"bench {name}", here == there, f"{here ^ there} in one of help and page alone")
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", PAGE], capture_output=True, text=True, check=False)
        judge("mandoc", done.returncode == 0, done.stdout)
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", PAGE], capture_output=True, text=True, check=False, env={**os.environ, "MANPAGER": "cat"})
        judge("man", done.returncode == 0 and not done.stderr and "audited" in done.stdout, done.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
