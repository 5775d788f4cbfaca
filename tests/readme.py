#!/usr/bin/env python3
"""readme.py --build BUILD --ivm IVM --cc CC [--flags FLAGS] [--bench]: does what README.md says, in a fresh directory, from top to bottom, and compares.

    ```c FILE         a program, or the inside of one (FRAME below): written, compiled without a warning against what `cmake --install` puts in place
    ```console        "$ command" lines, run by a shell, and what each prints
    ```json FILE      written; must be JSON; ```jsonl FILE: each line must be
    ```sh             each line is among ELSEWHERE, with what shows that it works
    ```text           is only read

A command between backticks is run (`ivm ...`; benchmarks with small sizes, where --bench is given) or is among ELSEWHERE. What else stands between
backticks and looks like a name of the library, a path, an option of the command or a test must be one. A block or a command of any other kind
fails: it must be taught here how it is shown to work. The last line is "N passed, N failed"."""
import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
passed = failed = 0

# Fragments stand in this. Their README says so.
FRAME = """#include <ivm/ivm.h>
#include <stdio.h>
#include <stdlib.h>

static ivm_error error = IVM_ERROR_INIT;

static void must(ivm_status status)
{
    if (status != IVM_OK) {
        fprintf(stderr, "%%s: %%s\\n", ivm_status_name(status), error.message);
        exit(1);
    }
}

int main(void)
{
%s}
"""

# Sizes at which a benchmark is a matter of seconds.
SMALL = {
    "star": "--rows 4000 --runs 1", "prune": "--rows 2000 --batches 1 --runs 1", "snowflake": "--rows 2000 --batches 1 --runs 1",
    "hotkey": "--rows 1000 --statements 999 --batches 2 --runs 1", "latency": "--rows 1000 --pushes 50 --grow 300 --runs 1",
    "scale": "--rows 10000 --pushes 20 --runs 1", "tpch": "--scale 0.001 --sets 3 --runs 1", "memory": "--kept 2000 --rows 4000",
    "operators": "--few 500 --many 2000 --changes 40", "all": "--quick hotkey", "cancel": "--rows 2000 --batch 1000 --runs 1",
    "durable": "--pushes 50", "checkpoint": "--rows 20000 --products 1000 --runs 1", "arrow": "--rows 20000 --runs 1",
}

# Commands that are run elsewhere, or cannot be run here: where they, or what they come to, stand.
ELSEWHERE = {
    ".ci/install build": ("bench/run", ".ci/install build"),
    "cmake --preset release && cmake --build --preset release": ("bench/run", "cmake --preset release && cmake --build --preset release"),
    "sudo cmake --install build/release && sudo ldconfig": ("tests/package.py", '"cmake", "--install"'),
    "cmake --install build/release --prefix P": ("tests/package.py", '"cmake", "--install", given.build, "--prefix"'),
    "cc prog.c $(pkg-config --cflags --libs ivm)": ("tests/package.py", '"pkg-config", "--cflags", "--libs", "ivm"'),
    "(cd build/release && cpack -G DEB)": ("tests/package.py", '"cpack", "-G", "DEB"'),
    "cmake --build build/release --target ivm_amalgamation": (".ci/run", "--target all ivm_amalgamation"),
    "cmake --build build/release --target ivm_docs": (".ci/run", "--target ivm_docs"),
    "cc -std=gnu17 -O3 -DNDEBUG -c ivm.c": ("tests/package.py", '"-std=gnu17", "-O3", "-DNDEBUG"'),
    "cmake --preset dev && cmake --build --preset dev": ("tests/reliability", "cmake --preset $preset && cmake --build --preset $preset"),
    "bench/peers/run --full": ("bench/peers/compare.py", '"--full"'),
    "cc -static prog.c $(pkg-config --static --cflags --libs ivm)": ("tests/package.py", 'given.cc, "-static"'),
    "find_package(ivm REQUIRED)": ("tests/foreign/CMakeLists.txt", "find_package(ivm "),
    "target_link_libraries(app PRIVATE ivm::ivm)": ("tests/foreign/CMakeLists.txt", "ivm::"),
    "add_subdirectory(ivm)": ("tests/package.py", "add_subdirectory()"),
    "bench/run": (".ci/install", "peers"), "tests/run": (".ci/run", "tests/run"), "tests/nightly": (".ci/install", "nightly"),
    "tests/matrix": ("tests/nightly", "tests/matrix"), "tests/reliability": (".ci/install", "nightly"), "tests/fuzz/run": (".ci/run", "tests/fuzz/run 5"),
    "bench/peers/run": ("bench/peers/README.md", "bench/peers/run"),
    "test_soak --changes 10000000": ("tests/nightly", "test_soak --changes 10000000"),
    "man ivm": ("tests/manual.py", "ivm.1"),
    "ivm bench stream": ("tests/peers.py", "stream"),
}


def judge(name, ok, text=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"README: {name}: {text}")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


# ---- Blocks ----


class Place:
    """A directory as a reader has it: the library installed, the command and a compiler on the path."""

    def __init__(self, given, folder):
        self.folder = os.path.join(folder, "reader")
        self.build = given.build
        self.env = dict(os.environ)
        os.makedirs(os.path.join(folder, "bin"))
        os.makedirs(self.folder)
        prefix = os.path.join(folder, "prefix")
        subprocess.run(["cmake", "--install", given.build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        pc = os.path.dirname(glob.glob(f"{prefix}/**/ivm.pc", recursive=True)[0])
        compiler = os.path.join(folder, "bin", "cc")
        with open(compiler, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {given.cc} {given.flags} -Wall -Wextra -Werror "$@"\n')
        os.chmod(compiler, 0o755)
        os.symlink(given.ivm, os.path.join(folder, "bin", "ivm"))
        self.env.update(PATH=f"{folder}/bin:{os.environ['PATH']}", PKG_CONFIG_PATH=pc, LD_LIBRARY_PATH=os.path.dirname(pc))

    def run(self, command):
        return subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def program(place, name, text):
    judge(name, text.count("\n") < 120, "a program too long to be read")
    place.write(name, text if "int main" in text else FRAME % text)
    done = place.run(f"cc {name} -o {name[:-2]} $(pkg-config --cflags --libs ivm)")
    judge(name, done.returncode == 0, done.stdout)


def console(place, text):
    for command, said in re.findall(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        done = place.run(command)
        printed = re.sub(r"^(sh: .*|Killed)\n", "", done.stdout, flags=re.MULTILINE)
        judge(command.strip(), printed == said and done.returncode in (0, 128 + signal.SIGKILL),
              f"exit code {done.returncode}; printed:\n{printed}README says:\n{said}")


def block(place, language, name, text):
    if language == "c" and name.endswith(".c"):
        program(place, name, text)
    elif language == "console" and not name:
        judge("console", text.startswith("$ "), text)
        console(place, text)
    elif language in ("json", "jsonl") and name:
        for part in [text] if language == "json" else text.splitlines():
            json.loads(part)
        place.write(name, text)
        judge(name, True)
    elif language == "sh" and not name:
        for line in text.splitlines():
            elsewhere(re.sub(r" +#.*", "", line))
    else:
        judge(f"block {language} {name}", language == "text" and not name, "nobody knows how to run it")


# ---- Between backticks ----


def elsewhere(command):
    path, words = ELSEWHERE.get(command, ("", ""))
    judge(command, path and words in read(path), "nobody knows how to run it" if not path else f"no longer in {path}")
    for preset in re.findall(r"--preset (\w+)", command):
        presets = json.loads(read("CMakePresets.json"))
        judge(command, all(any(p["name"] == preset for p in presets[kind]) for kind in ("configurePresets", "buildPresets")), "there is no such preset")
    first = command.split()[0]
    if os.path.isfile(os.path.join(ROOT, first)):
        done = subprocess.run(["sh", "-n", os.path.join(ROOT, first)], check=False)
        judge(first, os.access(os.path.join(ROOT, first), os.X_OK) and done.returncode == 0, "is no program")


def ivm_command(place, command, bench):
    words = command.split()
    if words[:2] == ["ivm", "bench"] and command not in ELSEWHERE:
        judge(command, words[2] in SMALL, "nobody knows small sizes")
        # A size that README gives itself stands.
        small = SMALL.get(words[2], "").split()
        added = [word for at in range(0, len(small) - len(small) % 2, 2) for word in small[at:at + 2] if small[at] not in words]
        if "mixed" in words or "update" in words:
            added += ["--batch", "100"]
        if bench:
            done = place.run(" ".join(words + added))
            judge(command, done.returncode == 0, done.stdout)
    elif command in ELSEWHERE:
        elsewhere(command)
    else:
        if words[1] == "flights":
            words += ["--days", "3"]
        if words[1] == "explain":
            words = ["cat plan.jsonl pushes.jsonl | ivm explain -"]
        if words == ["ivm", "feed"]:
            words += ["plan.jsonl", "changes.jsonl"]
        for name, row in (("products.jsonl", {"id": 9, "name": "kiwi"}), ("sales.fifo", {"product_id": 9, "shop_id": 7, "amount": "1.00"})):
            place.write(name, json.dumps({"insert": row}) + "\n")
        done = place.run(" ".join(words))
        judge(command, done.returncode == 0, done.stdout)


def test_run(place, text):
    """A command that shows a guarantee: of Criterion it is run, and must try something; of CTest it must name a test."""
    words = text.replace("build/dev", place.build)
    done = place.run(words + (" -N" if words.startswith("ctest") else ""))
    judge(text, done.returncode == 0 and re.search(r"Tested: [1-9]|Total Tests: [1-9]", done.stdout), done.stdout)


def shown_by(place, text):
    """What the tables of guarantees and reliability name as their tests is one: of CTest, a suite, a program, or a figure's own words."""
    told = place.run(f"ctest --test-dir {place.build} -N").stdout
    tests = set(re.findall(r"Test +#\d+: (\w+)", told))
    suites = {suite for path in glob.glob(f"{HERE}/**/*.c", recursive=True) for suite in re.findall(r"^Test\((\w+),", read(os.path.relpath(path, ROOT)), re.MULTILINE)}
    cells = re.findall(r"^\| .* \| (`.*`|every suite) \|(?: .* \|)?$", text, re.MULTILINE)
    judge("tests that show", len(cells) > 10, cells)
    for name in re.findall(r"`([^`]+)`", " ".join(cells)):
        judge(name, name in tests or name.removesuffix("/*") in suites and name.endswith("/*") or os.access(os.path.join(ROOT, name), os.X_OK) or
              re.match(r"ivm |test_soak |IVM_", name), "shows nothing: no test, suite or program")


def names_known():
    """-> names of the headers, of tests and suites, and what the command's helps and CMake say."""
    headers = "".join(read(os.path.relpath(path, ROOT)) for path in glob.glob(f"{ROOT}/include/ivm/*.h"))
    tests = "".join(read(os.path.relpath(path, ROOT)) for path in glob.glob(f"{ROOT}/tests/**/*.c", recursive=True) +
                    glob.glob(f"{ROOT}/*/CMakeLists.txt") + [f"{ROOT}/CMakeLists.txt"])
    return headers, tests


def span(place, text, known, options, bench):
    headers, tests = known
    if text in ELSEWHERE:
        elsewhere(text)
    elif re.match(r"build/dev/test_|ctest ", text):
        if bench:  # sanitizers leave tests out
            test_run(place, text)
    elif re.match(r"ivm( |$)(?!\.)", text) and " " in text:
        ivm_command(place, text, bench)
    elif re.match(r"(ivm_|IVM_)\w+", text):
        name = re.match(r"\w+", text).group()
        judge(text, re.search(rf"\b{name}\b", headers), "is not in the headers")
        value = re.match(r"IVM_\w+$", text)
        judge(text, value or re.fullmatch(r"\w+(\(.*\))?", text), "is no name")
    elif re.match(r"test_\w+$|(engine|plan|view|operators|fuzz|package|durable)_\w+$", text):
        name = text.removeprefix("test_")
        judge(text, re.search(rf"\b({text}|{name}|{name.split('_')[0]}_\$\{{)", tests) and
              (not text.startswith("test_durable_") or os.path.exists(f"{HERE}/durable/{name.removeprefix('durable_')}.c")), "is no test")
    elif re.match(r"-D[A-Z_]+", text):
        name = re.match(r"-D(\w+)", text).group(1)
        judge(text, name.startswith("CMAKE_") or name in tests + read("include/CMakeLists.txt") + read("include/package/amalgamate.py"), "is no setting")
    elif re.match(r"--\w", text):
        judge(text, text.split()[0] in options or text == "--static", "is no option")
    elif re.match(r"[a-z_]+/\*$", text):
        judge(text, re.search(rf"^Test\({text[:-2]},", tests, re.MULTILINE), "is no suite")
    elif os.path.isdir(os.path.join(ROOT, text)):
        judge(text, True)
    elif re.match(r"[\w./-]+/[\w.*/-]*$", text):
        installed = os.path.join(place.folder, "..", "prefix", text)
        judge(text, glob.glob(os.path.join(ROOT, text)) or os.path.isdir(installed) or text in ("build/release", "amalgamation/ivm.c"), "is no file")
    else:
        judge(text, not re.match(r"(cmake|cc|cpack|sudo|apt|git|bench|tests|\./|\(cd)\b", text), "nobody knows how to run it")


def limits(text, headers):
    """The numbers of the table of limits are those of the headers."""
    found = re.findall(r"\| ([\d,^*\- ]+)((?:KB)?)[^|`]*`(IVM_\w+_MAX)` \|", text)
    judge("limits", len(found) >= 10, found)
    for value, unit, name in found:
        defined = re.search(rf"#define {name} +([\w() <]+?)(?: +/\*.*)?$", headers, re.MULTILINE).group(1)
        said = eval(value.strip(" -").replace(",", "").replace("^", "**") if not value.rstrip().endswith("- 1") else value.replace("^", "**"))
        judge(name, said * (1024 if unit else 1) == eval(re.sub(r"([0-9a-f])u\b", r"\1", defined)), f"{value}{unit}, {defined}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--build", "--ivm", "--cc"):
        parser.add_argument(name, required=True)
    parser.add_argument("--flags", default="")
    parser.add_argument("--bench", action="store_true")
    given = parser.parse_args()
    text = read("README.md")
    known = names_known()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(given, folder)
        helps = "".join(place.run(f"ivm {name} --help").stdout for name in ("", "flights", "replay", "explain", "feed", "bench", "bench all"))
        for language, name, content in re.findall(r"^```(\w*) ?(.*)\n((?:(?!```).*\n)*)^```$", text, re.MULTILINE):
            block(place, language, name, content)
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for words in dict.fromkeys(re.findall(r"`([^`\n]+)`", prose)):
            span(place, words, known, set(re.findall(r"--[a-z-]+", helps)), given.bench)
        for link in re.findall(r"\]\(([^)#]+)\)", prose):
            judge(link, os.path.exists(os.path.join(ROOT, link)), "is no file")
        anchors = {re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^## (.*)$", text, re.MULTILINE)}
        for anchor in re.findall(r"\]\(#([^)]+)\)", prose):
            judge(anchor, anchor in anchors, "is no section")
        for section in ("Guarantees", "Reliability") if given.bench else ():  # sanitizers leave tests out
            shown_by(place, re.search(rf"^## {section}\n((?:(?!## ).*\n)*)", text, re.MULTILINE).group(1))
    limits(text, known[0])
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
