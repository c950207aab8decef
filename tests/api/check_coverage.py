#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each public function has a comment, an example and a test that call it.

Usage: check_coverage.py SOURCE_ROOT HEADER...
"""
import re
import sys
from pathlib import Path

from prototypes import all_functions, blank_comments


def calls_in(folder):
    called = set()
    for source in Path(folder).rglob("*.c"):
        text = blank_comments(source.read_text())
        called |= set(re.findall(r"\b(weir_\w+)\s*\(", text))
    return called


def main():
    root = Path(sys.argv[1])
    in_examples = calls_in(root / "examples")
    in_tests = calls_in(root / "tests")
    bad = 0

    for function in all_functions(sys.argv[2:]):
        lacks = []
        if not function.documented:
            lacks.append("a comment")
        if function.name not in in_examples:
            lacks.append("an example")
        if function.name not in in_tests:
            lacks.append("a test")
        if lacks:
            bad += 1
            print(f"{function.header}: {function.name}() lacks {', '.join(lacks)}")
        else:
            print(f"{function.header}: {function.name}() ok")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
