#!/usr/bin/env python3
"""examples.py SOURCE PROGRAM: runs an example and compares what it prints with what the comment at the head of its source says it prints."""
import re
import subprocess
import sys


def main(source, program):
    with open(source, encoding="utf-8") as file:
        head = file.read().split("*/")[0]
    said = "".join(line + "\n" for line in re.findall(r"^ \*     (.*)$", head.split("It prints:")[1], re.MULTILINE))
    done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode != 0 or done.stdout != said or not said:
        print(f"exit code {done.returncode}; printed:\n{done.stdout}{done.stderr}\n{source} says:\n{said}")
        return 1
    return 0


sys.exit(main(*sys.argv[1:]))
