#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Reserve huge pages of 2 MB for weir-bench, and say how many there are.
#
# Usage: bench/hugepages.sh [N]
#
# Without N nothing changes; 0 gives all back. All rows together need 850: the
# largest table takes 750, the keys 85. Reserving needs root, and succeeds best
# soon after boot, while memory is in large pieces. Without any, weir-bench
# asks for transparent huge pages.
set -eu

pool=/proc/sys/vm/nr_hugepages

size=$(awk '/^Hugepagesize:/ { print $2 }' /proc/meminfo)
if [ "$size" != 2048 ]; then
	echo "hugepages.sh: this machine's pages are of ${size:-0} kB" >&2
	exit 1
fi

if [ $# -gt 0 ]; then
	case $1 in
	'' | *[!0-9]*)
		echo "usage: hugepages.sh [N]" >&2
		exit 2
		;;
	esac
	if [ ! -w "$pool" ]; then
		echo "hugepages.sh: cannot write $pool (not root?)" >&2
		exit 1
	fi
	# Best effort: move small pages together first.
	if [ "$1" -gt 0 ] && [ -w /proc/sys/vm/compact_memory ]; then
		echo 1 2>/dev/null >/proc/sys/vm/compact_memory || true
	fi
	echo "$1" >"$pool"
fi

got=$(cat "$pool")
free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
echo "2 MB pages: $got reserved, $free free"
if [ $# -gt 0 ] && [ "$got" -lt "$1" ]; then
	echo "hugepages.sh: got $got of $1" >&2
	exit 1
fi
