#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print what a run of weir-bench shows: medians, spread and ratios.

Usage: ratios.py [--strict] [--cpu-time] RUN.json...

RUN.json comes from weir-bench --benchmark_out=RUN.json. A row's number is the
median over its repetitions, of all files given. Beside the ratio of medians,
by which targets are judged, stands that of the least times, for noise only
adds. With --cpu-time, time is that on the processor, which leaves out the time
in which others had it. With --strict the exit status is 1 if a target is
missed. It is 2 if a row failed or one that is needed is missing.
"""
import argparse
import json
import statistics
import sys

# what, over what, keys, the bound, and on which side of it lies success
TARGETS = (
    ("check/burst", "floor/line", 1000000, 3.0, "at most"),
    ("check/burst", "floor/line", 8000000, 2.3, "at most"),
    ("peer/rte_hash_meter_spinlock", "check/burst", 1000000, 2.5, "at least"),
    ("peer/rte_hash_meter_spinlock", "check/burst", 8000000, 3.0, "at least"),
    ("check/pipelined", "floor/line", 1000000, 2.0, "at most"),
    ("check/pipelined", "floor/line", 8000000, 1.6, "at most"),
    ("peer/rte_hash_meter_spinlock", "check/pipelined", 1000000, 3.3,
     "at least"),
    ("peer/rte_hash_meter_spinlock", "check/pipelined", 8000000, 4.0,
     "at least"),
    # The same peer with its meters prefetched: for comparison.
    ("peer/rte_hash_meter_spinlock_prefetch", "check/burst", 1000000, None,
     ""),
    ("peer/rte_hash_meter_spinlock_prefetch", "check/burst", 8000000, None,
     ""),
)


def rows_read(paths, clock):
    """=> {row: [ns per decision, one for each repetition]}, [failed rows]"""
    rows, failed = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        for row in run["benchmarks"]:
            if row["run_type"] != "iteration":
                continue  # aggregates: formed here, over all files
            name = row["run_name"]
            if row.get("error_occurred"):
                failed.append(f"{name}: {row.get('error_message', '')}")
                continue
            if row["time_unit"] != "ns":
                raise ValueError(f"{path}: {name} is not in ns")
            rows.setdefault(name, []).append(row[clock])
    return rows, failed


def row_order(name):
    """Interleaved runs shuffle the rows: by case, then by number of keys."""
    case, _, keys = name.partition("/keys:")
    return case, int(keys)


def medians_print(rows):
    print("| row | median ns | least | most | n |")
    print("|---|---|---|---|---|")
    for name in sorted(rows, key=row_order):
        times = rows[name]
        print(f"| {name} | {statistics.median(times):.1f} | {min(times):.1f}"
              f" | {max(times):.1f} | {len(times)} |")


def ratios_print(rows):
    """=> the number of targets missed, and of those that can't be judged"""
    missed = unknown = 0
    print("| ratio | keys | of medians | of least | target | |")
    print("|---|---|---|---|---|---|")
    for upper, lower, keys, bound, side in TARGETS:
        names = f"{upper}/keys:{keys}", f"{lower}/keys:{keys}"
        if not all(name in rows for name in names):
            print(f"| {upper} over {lower} | {keys} | | | {side} {bound}"
                  " | not measured |")
            unknown += 1
            continue
        value = (statistics.median(rows[names[0]]) /
                 statistics.median(rows[names[1]]))
        least = min(rows[names[0]]) / min(rows[names[1]])
        if bound is None:
            print(f"| {upper} over {lower} | {keys} | {value:.2f} |"
                  f" {least:.2f} | none | |")
            continue
        met = value <= bound if side == "at most" else value >= bound
        missed += not met
        print(f"| {upper} over {lower} | {keys} | {value:.2f} | {least:.2f}"
              f" | {side} {bound} | {'met' if met else 'missed'} |")
    return missed, unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strict", action="store_true",
                        help="exit 1 if a target is missed")
    parser.add_argument("--cpu-time", action="store_const", dest="clock",
                        const="cpu_time", default="real_time",
                        help="take cpu_time in place of real_time")
    parser.add_argument("runs", nargs="+", metavar="RUN.json")
    arguments = parser.parse_args()

    rows, failed = rows_read(arguments.runs, arguments.clock)
    medians_print(rows)
    print()
    missed, unknown = ratios_print(rows)
    for row in failed:
        print(f"failed: {row}", file=sys.stderr)
    if failed or unknown:
        return 2
    return 1 if missed and arguments.strict else 0


if __name__ == "__main__":
    sys.exit(main())
