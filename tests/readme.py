#!/usr/bin/env python3
"""readme.py program README.md OUT: writes the first C program of README to a file.
readme.py check README.md PROGRAM: runs it and compares what it prints with the block that follows it in README."""
import re
import subprocess
import sys


def blocks(path):
    """-> (language, text) of each fenced block."""
    with open(path, encoding="utf-8") as file:
        return re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


def main(task, readme, path):
    found = blocks(readme)
    at = next(i for i, (language, text) in enumerate(found) if language == "c" and "int main" in text)
    if task == "program":
        with open(path, "w", encoding="utf-8") as out:
            out.write(found[at][1])
        return 0
    done = subprocess.run([path], capture_output=True, text=True, timeout=60)
    if done.returncode != 0 or done.stdout != found[at + 1][1]:
        print(f"exit code {done.returncode}; printed:\n{done.stdout}{done.stderr}\nREADME says:\n{found[at + 1][1]}")
        return 1
    return 0


sys.exit(main(*sys.argv[1:]))
