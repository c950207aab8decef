# SPDX-License-Identifier: BSD-3-Clause
"""What the public headers declare: names, and whether a comment says what for.

A declaration counts as documented if a comment ends on the line before it, or
if it follows a documented declaration without an empty line in between.
"""
import re
from pathlib import Path

EXPORT_MARK = re.compile(r"^WEIR_API\b", re.M)
DECLARATION = re.compile(
    r"^WEIR_API\b[^;{]*?\b(weir_\w+)\s*\([^;{]*\)\s*;", re.M | re.S)


class Function:
    def __init__(self, name, header, documented):
        self.name = name
        self.header = header
        self.documented = documented


def blank_comments(text):
    """Spaces in place of comments, so that offsets stay what they are."""
    return re.sub(r"/\*.*?\*/",
                  lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def functions_of(header):
    text = Path(header).read_text()
    found = []
    end_of_last = None
    for match in DECLARATION.finditer(blank_comments(text)):
        before = text[:match.start()]
        documented = before.endswith("*/\n")
        if not documented and end_of_last is not None:
            between = text[end_of_last:match.start()]
            documented = between == "\n" and found[-1].documented
        found.append(Function(match.group(1), Path(header).name, documented))
        end_of_last = match.end()
    return found


def all_functions(headers):
    """Of all headers; and never an empty list, which would prove nothing."""
    functions = [f for header in headers for f in functions_of(header)]
    texts = [blank_comments(Path(header).read_text()) for header in headers]
    marks = sum(len(EXPORT_MARK.findall(text)) for text in texts)
    if not functions or marks != len(functions):
        raise SystemExit(f"understood {len(functions)} declarations of {marks}")
    return functions
