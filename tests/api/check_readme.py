#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The README is true: its example is examples/embed.c and prints what it says,
its links lead somewhere, and its folder map names the folders there are.

Usage: check_readme.py SOURCE_ROOT EMBED_PROGRAM
"""
import re
import subprocess
import sys
from pathlib import Path


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def check_example(root, text, program):
    example = Path(root, "examples/embed.c").read_text()
    licence, _, code = example.partition("\n")
    if "SPDX" not in licence:
        return "examples/embed.c does not start with its licence"
    if blocks(text, "c") != [code]:
        return "the C block is not examples/embed.c"
    output = subprocess.run([program], check=True, text=True,
                            capture_output=True).stdout
    if output not in blocks(text, "text"):
        return "the program does not print what the README says:\n" + output
    return None


def check_links(root, text):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    local = [t for t in targets if "://" not in t]
    missing = [t for t in local if not Path(root, t).exists()]
    if not local:
        return "the README has no links"
    return "dead links: " + " ".join(missing) if missing else None


def folders_of(root):
    """Top-level folders with something in them that git would know."""
    try:
        tracked = subprocess.run(["git", "-C", root, "ls-files"], check=True,
                                 text=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # an unpacked release: nothing to compare with
    return {p.split("/")[0] + "/" for p in tracked.stdout.splitlines()
            if "/" in p and not p.startswith(".")}


def check_map(root, text):
    there = folders_of(root)
    named = set(re.findall(r"^\| `(\w+/)` \|", text, re.M))
    if not named:
        return "the README has no folder map"
    missing = {n for n in named if not Path(root, n).is_dir()}
    if missing:
        return "folders that are not there: " + " ".join(sorted(missing))
    if there is not None and there - named:
        return "folders without a line: " + " ".join(sorted(there - named))
    return None


def main():
    root, program = sys.argv[1:]
    text = Path(root, "README.md").read_text()
    faults = [check_example(root, text, program), check_links(root, text),
              check_map(root, text)]
    faults = [fault for fault in faults if fault]
    print("\n".join(faults) or "README.md is true")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
