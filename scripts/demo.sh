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

say "Running weir-meter over it; all its packets come in on port 0"
# Port 1 has nothing to receive; what port 0 receives and passes leaves there.
status=0
set -x
"$build/dpdk_app/weir-meter" --no-huge -m 256 --no-pci --in-memory \
	--log-level=warning -l 0 \
	--vdev "net_pcap0,rx_pcap=$here/all.pcap,tx_pcap=$here/back.pcap" \
	--vdev "net_pcap1,tx_pcap=$here/passed.pcap" \
	-- --policy "$policy" --clock capture || status=$?
{ set +x; } 2>/dev/null
[[ $status -eq 0 ]] || die "weir-meter failed with status $status"

say "Done"
cat <<END
Every source was held to 100 packets/s and a burst of 20, by the clock of the
capture: the quiet ones lost nothing, the loud ones what was too much.

  policy          ${policy#"$PWD"/}
  what came in    ${here#"$PWD"/}/all.pcap
  what passed     ${here#"$PWD"/}/passed.pcap

Open either in wireshark, or with: tcpdump -n -r FILE
END
