#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Public captures of real traffic, where they are: in WEIR_PCAP_DIR, or in
../shared/pcaps beside the source tree. Skipped where they are not."""
import os
from fractions import Fraction
from pathlib import Path

import meter
import oracle
import pcapfile

SOURCE_ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("WEIR_PCAP_DIR",
                             SOURCE_ROOT.parent / "shared" / "pcaps"))
CAPTURES = sorted(FOLDER.glob("*.pcap")) if FOLDER.is_dir() else []
LIMITS = (  # as the policy has it, and the oracle
    ("1000 packets/s", "200 packets", (1000, 200, "packets")),
    ("10 packets/s", "5 packets", (10, 5, "packets")),
    ("1 packet/10s", "2 packets", (Fraction(1, 10), 2, "packets")),
    ("64 kbit/s", "3000 bytes", (8000, 3000, "bytes")),
)


class SharedCaptures(meter.Case):

    def assertOracle(self, capture, rate, burst, numbers):
        packets = pcapfile.read(capture)
        expected = oracle.run(packets, oracle.Limit("per-source", *numbers))
        report = self.replay(capture, [
            "--policy", self.policy(rate, burst), "--clock", "capture"]).report
        self.assertAdds(report)
        self.assertEqual(report["packets"], len(packets))
        self.assertEqual(report["unclassified"], expected.unclassified)
        self.assertEqual(
            [(d["key"], d["denied_packets"], d["error"])
             for d in report["top_denied"]],
            [(key, n, 0) for key, n in oracle.most_denied(expected.denied)])
        self.assertEqual([p.data for p in pcapfile.read(self.path("out.pcap"))],
                         [p.data for p in expected.passed])

    def test_all(self):
        for capture in CAPTURES:
            for rate, burst, numbers in LIMITS:
                with self.subTest(capture=capture.name, rate=rate,
                                  burst=burst):
                    self.assertOracle(capture, rate, burst, numbers)


if __name__ == "__main__":
    meter.main(None if CAPTURES else f"no captures in {FOLDER}; set "
               "WEIR_PCAP_DIR to a folder that has some")
