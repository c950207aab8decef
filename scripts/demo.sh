#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Show weir-meter at work: make a capture of some hundred sources of which a
# few are loud, hold every source to 100 packets/s, write what passes to
# another capture. Needs no network card, no huge pages and no privileges
# beyond those to install what is missing.
#
# Usage: scripts/demo.sh
set -euo pipefail

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build=$root/build
here=$build/demo
policy=$root/examples/demo.ini

install_needs "${needs_of_build[@]}" "${needs_of_tests[@]}"
configure "$build" "${everything[@]}"
say "Building weir-meter"
meson compile -C "$build" weir-meter

say "Making a capture: 300 sources, 5 of them loud"
mkdir -p "$here"
python3 "$root/tests/app/make_capture.py" --sources 300 --loud 5 \
	--packets 60000 --rate 20000 --seed 1 "$here/all.pcap"

# meter MEMORY OPTION...: say and run the command. Everything comes in on port
# 0, and what is passed leaves on port 1, which has nothing to receive.
meter()
{
	local command=(weir-meter "$@" -m 256 -l "$core" --no-pci
		--no-telemetry --log-level=error
		--vdev "net_pcap0,rx_pcap=all.pcap,tx_pcap=back.pcap"
		--vdev "net_pcap1,tx_pcap=passed.pcap"
		-- --policy policy.ini --clock capture)
	local shown=${command[*]}

	shown=${shown/ --no-telemetry/ \\$'\n'    --no-telemetry}
	shown=${shown// --vdev/ \\$'\n'    --vdev}
	printf '%s\n\n' "${shown/ -- / \\$'\n'    -- }"
	PATH=$build/dpdk_app:$PATH "${command[@]}"
}

# In one folder, so that the command can be read.
cd "$here"
cp "$policy" policy.ini
# The first core that this process may use, and the free huge pages.
core=$(awk '/^Cpus_allowed_list:/ { split($2, a, /[-,]/); print a[1] }' \
	/proc/self/status)
free=$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)
say "Running weir-meter over it"
if [[ $EUID -eq 0 && ${free:-0} -ge 256 ]] && meter --in-memory; then
	: # huge pages were there, and they are faster
else
	meter --no-huge --no-shconf || die "weir-meter failed with status $?"
fi

say "Done"
cat <<END
By the clock of the capture, every source was held to 100 packets/s and a burst
of 20. The five loud ones sent some 2000 packets/s each and lost what was too
much; the quiet ones sent a third of what they may.

  policy          $policy
  what came in    $here/all.pcap
  what passed     $here/passed.pcap

Open either in wireshark, or with: tcpdump -n -r FILE
END
