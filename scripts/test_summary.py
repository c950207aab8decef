#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sum up what meson's logs say about test runs.

Usage: test_summary.py TITLE=TESTLOG.json... TITLE=status:N...

Prints a table by suite for each log, every test that failed or was skipped by
name, and as the last line, alone: N passed, N failed, N skipped. A status is
that of some other command, which counts as one test.

A program that uses check or unittest counts by its cases, any other as one. The
exit status is 0 only if something passed and nothing failed in every log.
"""
import json
import re
import sys

CHECKS = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$",
                    re.M)
CASES = re.compile(r"^Ran (\d+) tests? in .*\n+(?:OK|FAILED)(?: \((.*)\))?$",
                   re.M)
GOOD = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed = passed
        self.failed = failed
        self.skipped = skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return (f"{self.passed} passed, {self.failed} failed, "
                f"{self.skipped} skipped")


def cases_in(output):
    """What a program says of its own cases; zeros if it does not."""
    count = Count()
    for row in CHECKS.findall(output):
        ran, failures, errors = (int(n) for n in row)
        count.add(Count(ran - failures - errors, failures + errors))
    for ran, remarks in CASES.findall(output):
        of = {kind: int(n) for kind, n in re.findall(r"(\w+)=(\d+)", remarks)}
        failed = of.get("failures", 0) + of.get("errors", 0)
        skipped = of.get("skipped", 0)
        count.add(Count(int(ran) - failed - skipped, failed, skipped))
    return count


def count_of(test):
    """What one program is worth. Whatever is not known to be good has failed."""
    if test["result"] in SKIPPED:
        return Count(skipped=1)
    count = cases_in((test.get("stdout") or "") + (test.get("stderr") or ""))
    if test["result"] not in GOOD:
        count.failed = max(count.failed, 1)
    elif count.passed + count.failed + count.skipped == 0:
        count.passed = 1
    return count


def suite_and_name(test):
    """Meson writes 'project:suite / name', or without the project."""
    suite, slash, name = test["name"].partition(" / ")
    if not slash:
        return "-", test["name"]
    return suite.split(":")[-1], name


def read_log(title, path):
    if path.startswith("status:"):
        return [{"name": title, "result": "OK" if path == "status:0" else "FAIL"}]
    try:
        with open(path, encoding="utf-8") as log:
            return [json.loads(line) for line in log if line.strip()]
    except OSError as error:
        print(f"no log: {error}")
        return []


def sum_up(title, path):
    """Print one log's table. => Its count."""
    suites = {}
    remarks = []
    total = Count()

    for test in read_log(title, path):
        suite, name = suite_and_name(test)
        count = count_of(test)
        row = suites.setdefault(suite, [0, Count(), 0.0])
        row[0] += 1
        row[1].add(count)
        row[2] += test.get("duration") or 0.0
        total.add(count)
        if count.failed or count.skipped:
            remarks.append(f"  {test['result']:<8} {suite} / {name}")
    print(f"{title}:")
    for suite, (programs, count, seconds) in sorted(suites.items()):
        print(f"  {suite:<8} {programs:>3} programs {seconds:>6.1f} s   {count}")
    print("\n".join(remarks + [f"  {'in all':<29} {total}", ""]))
    return total


def main():
    total = Count()
    empty = []

    for argument in sys.argv[1:]:
        title, _, path = argument.partition("=")
        count = sum_up(title, path)
        if count.passed + count.failed == 0:
            empty.append(title)
        total.add(count)
    for title in empty:
        print(f"{title}: no test ran, which counts as a failure")
    total.failed += len(empty)
    print(total)
    sys.exit(0 if total.passed > 0 and total.failed == 0 else 1)


if __name__ == "__main__":
    main()
