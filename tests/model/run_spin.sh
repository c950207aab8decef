#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Search all interleavings of table.pml in the configurations below, and check
# that the search can fail: without the announcement or the scan it must find
# two live entries. Skipped where Spin is not installed.
set -eu

model=$1
if ! command -v spin >/dev/null; then
	echo "SKIPPED: spin is not installed"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# search MODEL DEFINES...: print what pan found
search() {
	spin -a "$@" >spin.log 2>&1 || { cat spin.log; exit 1; }
	cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c 2>/dev/null
	./pan -m200000
}

holds() {
	search "$@" "$model" >out
	grep -q 'errors: 0' out || { echo "VIOLATED: $*"; cat out; exit 1; }
	grep -q 'max search depth' out && { echo "CUT OFF: $*"; exit 1; }
	echo "holds: $* $(grep 'states, stored' out | tr -s ' ')"
}

breaks() {
	search -DN=2 -DSLOTS=2 "$1" >out
	grep -q 'errors: 1' out || { echo "NOT NOTICED: $2"; exit 1; }
	echo "noticed: $2"
}

holds -DN=2 -DSLOTS=2
holds -DN=2 -DSLOTS=2 -DKEYS=1
holds -DN=2 -DSLOTS=1 -DOLD=1 -DKEYS=1
holds -DN=2 -DSLOTS=2 -DOLD=1 -DFULL=1 -DKEYS=1
holds -DN=2 -DSLOTS=2 -DOLD=2 -DFULL=1 -DKEYS=1
holds -DN=2 -DSLOTS=3 -DFULL=1
holds -DN=3 -DSLOTS=2 -DOLD=1 -DFULL=1 -DKEYS=1 -DROUNDS=1

# Announce only after the scan.
awk '/^\tnamed\[slot\] = 1;/ { next } /write the key, publish/ {
	print "\tnamed[slot] = 1;" } { print }' "$model" >late.pml
breaks late.pml "the announcement comes after the scan"
# Ignore rivals.
awk '/:: i < slot -> goto give_up/ { sub(/i < slot -> goto give_up/,
	"true -> i++") } { print }' "$model" >blind.pml
breaks blind.pml "claimed slots are ignored"
