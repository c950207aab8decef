#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Do the table and the arithmetic compile as plain C11, with no header but the
# language's own? Usage: plain_c11.sh ENGINE_FOLDER COMPILER...
set -eu

engine=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# By themselves in a folder, no other header of the engine can help.
cp "$engine"/table.c "$engine"/table.h "$engine"/pair.h \
	"$engine"/vclock.h "$engine"/ratio.h "$scratch"
for header in table.h pair.h vclock.h ratio.h; do
	printf '#include "%s"\n' "$header" >"$scratch/alone_${header%.h}.c"
done
for source in "$scratch"/*.c; do
	# Which headers does it reach? Only freestanding ones may be there.
	"$@" -std=c11 -Wall -Wextra -Werror -c -o /dev/null "$source"
	"$@" -std=c11 -M "$source" | tr ' \\' '\n\n' | grep '\.h$' |
		while read -r header; do
			case ${header##*/} in
			table.h | pair.h | vclock.h | ratio.h | stdatomic.h | \
				stdbool.h | *stddef*.h | stdint*.h)
				;;
			*)
				case $header in
				*/bits/* | */sys/cdefs.h | */gnu/* | \
					*/features*.h | */stdc-predef.h)
					;;
				*)
					echo "$source needs $header" >&2
					exit 1
					;;
				esac
				;;
			esac
		done
done
