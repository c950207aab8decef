#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the smallest rows of weir-bench: are they there, and are they real?

Usage: sanity.py WEIR-BENCH

Each row checks its own results; a row that decided wrongly fails. Times are
not judged, except that a locked instruction cannot take less than 0.1 ns.
"""
import json
import subprocess
import sys
import tempfile

CASES = (
    "floor/line",
    "check/one",
    "check/burst",
    "check/pipelined",
    "peer/rte_hash_meter",
    "peer/rte_hash_meter_spinlock",
    "peer/rte_hash_meter_spinlock_prefetch",
)
KEYS = (1000, 100000, 1000000, 8000000)


def names_listed(program):
    listing = subprocess.run([program, "--benchmark_list_tests"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return set(listing.split())


def rows_run(program):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        status = subprocess.run(
            [program, "--benchmark_filter=keys:1000$",
             "--benchmark_min_time=0.01", f"--benchmark_out={out.name}",
             "--benchmark_out_format=json"], check=False).returncode
        return status, json.load(out)["benchmarks"]


def main():
    program = sys.argv[1]
    faults = []

    expected = {f"{case}/keys:{keys}" for case in CASES for keys in KEYS}
    listed = names_listed(program)
    if listed != expected:
        faults.append(f"rows differ: {sorted(listed ^ expected)}")

    status, rows = rows_run(program)
    if status != 0:
        faults.append(f"exit status {status}")
    ran = {row["name"] for row in rows}
    if ran != {f"{case}/keys:1000" for case in CASES}:
        faults.append(f"ran: {sorted(ran)}")
    for row in rows:
        if row.get("error_occurred"):
            faults.append(f"{row['name']}: {row['error_message']}")
        elif row["iterations"] < 1 or row["real_time"] < 0.1:
            faults.append(f"{row['name']}: measured nothing")

    for fault in faults:
        print(f"sanity.py: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
