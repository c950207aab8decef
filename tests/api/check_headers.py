#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every public header compiles alone, and twice, without a warning.

Usage: check_headers.py LANGUAGE INCLUDE_DIR HEADER... -- COMPILER [ARG...]
LANGUAGE is c11 or c++17.
"""
import subprocess
import sys
from pathlib import Path

STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-pedantic", "-Werror"]
LANGUAGES = {
    "c11": ["-x", "c", "-std=c11", "-Wstrict-prototypes"],
    "c++17": ["-x", "c++", "-std=c++17", "-Wold-style-cast"],
}
MAIN = "int main(void) { return 0; }\n"


def compiles(compiler, flags, source):
    result = subprocess.run([*compiler, *flags, "-fsyntax-only", "-"],
                            input=source, text=True, capture_output=True)
    print(result.stderr, end="")
    return result.returncode == 0


def main():
    split = sys.argv.index("--")
    language, include_dir, *headers = sys.argv[1:split]
    compiler = sys.argv[split + 1:]
    flags = [*LANGUAGES[language], *STRICT, "-I", include_dir]
    present = {p.name for p in Path(include_dir, "weir").glob("*.h")}
    bad = []

    if present != {Path(h).name for h in headers}:
        sys.exit("the installed headers are not those in include/weir")
    for name in sorted(present):
        line = f"#include <weir/{name}>\n"
        if not compiles(compiler, flags, line + line + MAIN):
            bad.append(name)
        print(f"{name}: {'bad' if name in bad else 'ok'} as {language}")
    # The flags do bite: what they are there for must not get through.
    if compiles(compiler, flags, "static int unused(int x) { return 0; }\n"):
        sys.exit("a warning was not an error")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
