#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Install what is missing, build into build/, run all tests, sum up.
#
# Usage: scripts/test.sh [MESON OPTION...]	for example -Dwerror=true
#
# The last line is: N passed, N failed, N skipped. The exit status is 0 only if
# none failed and some passed.
set -euo pipefail

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build=$root/build
log=$build/meson-logs/testlog

install_needs "${needs_of_build[@]}" "${needs_of_tests[@]}"
configure "$build" "${everything[@]}" "$@"
say "Building"
meson compile -C "$build"

say "Testing"
rm -f "$log.json"
# The summary judges: it also sees that tests ran at all.
meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 3 ||
	true

say "Summary"
"$root/scripts/test_summary.py" "gcc=$log.json"
