#!/usr/bin/env python3
"""tally.py FILE: counts the tests in CTest's report. A Criterion program counts its own tests, a script what its last line says, and
anything else is one test. A program that failed has failed at least one; one that skipped itself is told of and not counted. The last line is "N passed, N failed"."""
import re
import sys
import xml.etree.ElementTree

SYNTHESIS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)


def counts(text, ok):
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    synthesis, told = SYNTHESIS.search(text), COUNTS.findall(text)
    passed, failed = 1, 0
    if synthesis and int(synthesis[1]):
        passed, failed = int(synthesis[2]), int(synthesis[3]) + int(synthesis[4])
    elif told:
        passed, failed = (int(n) for n in told[-1])
    elif not ok:
        passed = 0
    return passed, failed if ok else max(failed, 1)


def main(path):
    passed = failed = 0
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("message", "").startswith("SKIP_RETURN_CODE"):
            print(f"{case.get('name')}: {(case.findtext('system-out') or 'skipped').strip()}")
            continue
        good, bad = counts(case.findtext("system-out") or "", case.get("status") == "run")
        if bad:
            print(f"{case.get('name')}: {bad} failed")
        passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")


main(sys.argv[1])
