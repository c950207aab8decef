#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The shared library exports what the headers declare, and nothing else.

Usage: check_symbols.py NM LIBRARY HEADER...
"""
import subprocess
import sys

from prototypes import all_functions


def exported(nm, library):
    """Names of code and data; A is the version node itself."""
    output = subprocess.run([nm, "-D", "--defined-only", library], text=True,
                            check=True, capture_output=True).stdout
    rows = [line.split() for line in output.splitlines()]
    return {row[2].split("@")[0] for row in rows if row[1] != "A"}


def main():
    nm, library, *headers = sys.argv[1:]
    declared = {f.name for f in all_functions(headers)}
    there = exported(nm, library)

    for name in sorted(declared - there):
        print(f"{name}: declared but not exported")
    for name in sorted(there - declared):
        print(f"{name}: exported but not declared")
    print(f"{len(declared & there)} functions declared and exported")
    sys.exit(0 if declared == there else 1)


if __name__ == "__main__":
    main()
