#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Damaged, empty and absurd captures end in counts or in a refusal that says
why, and never in a crash."""
import os
import random
import struct

import frames
import meter
import pcapfile

SEED = int(os.environ.get("WEIR_SEED", "0"), 0) or \
    random.SystemRandom().randrange(1, 2**32)
START_NS = 1_700_000_000 * 10**9


def plain(n):
    return [pcapfile.packet(START_NS + i * 1000, frames.from_source(
        f"10.0.0.{i % 200}", 100)) for i in range(n)]


class Damaged(meter.Case):

    def setUp(self):
        super().setUp()
        self.capture = self.path("in.pcap")
        self.options = ["--policy", self.policy(), "--clock", "capture"]

    def put(self, data):
        with open(self.capture, "wb") as f:
            f.write(data)

    def refused(self, bad=None, good=()):
        """Refused, whether it is alone or there are good devices as well.
        => What was said the last time."""
        bad = bad or f"net_pcap0,rx_pcap={self.capture}"
        good = good or [f"net_pcap1,tx_pcap={self.path('out.pcap')}"]
        for vdevs in ([bad], [bad] + good, good + [bad]):
            run = self.run_meter(vdevs, self.options + ["--stats", "json"])
            self.assertEqual(run.status, 2, run.err)
            self.assertEqual(run.out, "")
            self.assertNotIn("running", run.err)
        return run.err

    def refused_by_name(self, bad, good=()):
        """Refused for having become no port, with the device named."""
        name, _, arguments = bad.partition(",")
        said = self.refused(bad, good)
        self.assertIn(f"device {name} ({arguments}) has not become a port",
                      said)
        return said

    def test_cut_at_every_byte_of_the_last_record(self):
        """100 whole packets, and what is left of one more."""
        pcapfile.write(self.capture, plain(101))
        with open(self.capture, "rb") as f:
            whole = f.read()
        record = 16 + 100
        for left in (1, 15, 16, 17, record - 1):
            with self.subTest(left=left):
                self.put(whole[:len(whole) - record + left])
                run = self.replay(self.capture, self.options, status=1)
                self.assertAdds(run.report)
                self.assertEqual(run.report["packets"], 100)
                self.assertEqual(run.report["passed"], 100)
                self.assertEqual(run.report["rx_errors"], 1)
                self.assertFalse(run.report["accounted"])
                self.assertIn("could not be received", run.err)

    def test_header_only(self):
        pcapfile.write(self.capture, [])
        report = self.replay(self.capture, self.options).report
        self.assertEqual(
            (report["packets"], report["passed"], report["dropped"],
             report["mpps"], report["seconds"], report["top_denied"]),
            (0, 0, 0, 0, 0, []))
        self.assertTrue(report["accounted"])

    def test_zero_bytes(self):
        self.put(b"")
        self.refused_by_name(f"net_pcap0,rx_pcap={self.capture}")

    def test_cut_header(self):
        self.put(pcapfile.header()[:23])
        self.refused_by_name(f"net_pcap0,rx_pcap={self.capture}")

    def test_no_capture_at_all(self):
        self.put(random.Random(SEED).randbytes(5000))
        self.refused_by_name(f"net_pcap0,rx_pcap={self.capture}")

    def test_missing(self):
        self.refused_by_name(
            f"net_pcap0,rx_pcap={self.path('none.pcap')}")

    def test_missing_among_several(self):
        """Left out, it would let the ports behind it move up: what comes in
        at one network would leave at another."""
        pcapfile.write(self.capture, plain(10))
        self.refused_by_name(
            f"net_pcap0,rx_pcap={self.path('none.pcap')}",
            [f"net_pcap{i},rx_pcap={self.capture},"
             f"tx_pcap={self.path(f'out{i}.pcap')}" for i in (1, 2, 3)])

    def test_cannot_be_written(self):
        """All that passed would be written nowhere."""
        pcapfile.write(self.capture, plain(10))
        self.refused_by_name(
            f"net_pcap1,tx_pcap={self.path('none/out.pcap')}",
            [f"net_pcap0,rx_pcap={self.capture}"])

    def test_too_many_captures(self):
        pcapfile.write(self.capture, plain(10))
        self.refused_by_name(
            "net_pcap0" + f",rx_pcap={self.capture}" * 17)

    def test_not_ethernet(self):
        """The driver would take raw IP for Ethernet and say nothing."""
        pcapfile.write(self.capture, plain(3), link_type=101)
        self.assertIn("link type RAW, not EN10MB", self.refused())

    def test_garbage_packets(self):
        """Whatever is in the packets, all of them are accounted for."""
        print(f"WEIR_SEED={SEED}")
        dice = random.Random(SEED)
        starts = (b"", frames.MACS, frames.MACS + b"\x08\x00",
                  frames.MACS + b"\x08\x00\x45", frames.MACS + b"\x86\xdd\x60",
                  frames.MACS + b"\x81\x00", frames.MACS + b"\x88\xa8")
        packets = [pcapfile.packet(
            dice.randrange(2**32) * 10**9,
            dice.choice(starts) + dice.randbytes(dice.choice(
                (0, 1, 20, 40, 60, dice.randrange(3000)))))
            for _ in range(5000)]
        pcapfile.write(self.capture, packets)
        for clock in ("tsc", "capture"):
            with self.subTest(clock=clock):
                report = self.replay(self.capture, [
                    "--policy", self.policy(), "--clock", clock]).report
                self.assertAdds(report)
                self.assertEqual(report["packets"], 5000)
                self.assertGreater(report["unclassified"], 100)
                self.assertTrue(report["accounted"])

    def test_garbage_records(self):
        """A good header, then anything: libpcap reads on until it cannot."""
        dice = random.Random(SEED)
        for _ in range(10):
            self.put(pcapfile.header() + dice.randbytes(20000))
            run = self.run_meter(
                [f"net_pcap0,rx_pcap={self.capture}"],
                self.options + ["--stats", "json"])
            self.assertIn(run.status, (0, 1), run.err)
            self.assertAdds(run.report)

    def test_wrong_times(self):
        """Microseconds of more than a second, and times of 0 and the end."""
        frame = frames.from_source("10.0.0.1", 64)
        self.put(pcapfile.header() + b"".join(
            struct.pack("<IIII", seconds, micros, 64, 64) + frame
            for seconds in (0, 1, 2**31 - 1, 2**31, 2**32 - 1)
            for micros in (0, 999999, 10**6, 2**31, 2**32 - 1)))
        report = self.replay(self.capture, self.options).report
        self.assertAdds(report)
        self.assertEqual(report["packets"], 25)

    def test_sizes(self):
        """Every size class of the driver: one mbuf, several, and more than
        64 KiB, of which it copies less than it says (DPDK 22.11)."""
        sizes = (0, 1, 13, 14, 60, 1514, 2047, 2048, 2049, 9000, 65535)
        pcapfile.write(self.capture, [pcapfile.packet(
            START_NS, b"\x02" * n) for n in sizes])
        report = self.replay(self.capture, self.options).report
        self.assertEqual(report["packets"], len(sizes))
        # The driver writes out no more than this of a packet in pieces.
        written = [min(n, 16128) for n in sizes]
        self.assertEqual(
            [len(p.data) for p in pcapfile.read(self.path("out.pcap"))],
            written)
        self.assertEqual(report["limits"][1]["passed_bytes"], sum(sizes))

    def test_beyond_64_kib(self):
        for size in (65536, 65536 + 2048, 70000, 131072, 200000, 262144):
            with self.subTest(size=size):
                pcapfile.write(self.capture, [pcapfile.packet(
                    START_NS, frames.from_source("10.0.0.1", 1000) +
                    bytes(size - 1000))] * 3)
                run = self.run_meter(
                    [f"net_pcap0,rx_pcap={self.capture}",
                     f"net_pcap1,tx_pcap={self.path('out.pcap')}"],
                    self.options + ["--stats", "json"])
                self.assertEqual(run.report["packets"], 3)
                self.assertAdds(run.report)
                # Whole, or cut, and then it says so.
                whole = run.report["limits"][0]["passed_bytes"] == 3 * size
                self.assertEqual(run.report["rx_cut"], 0 if whole else 3)
                self.assertEqual(run.status, 0 if whole else 1, run.err)


if __name__ == "__main__":
    meter.main()
