#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A replay passes exactly what the oracle passes, packet by packet."""
import os
import random
from collections import Counter
from fractions import Fraction

import frames
import meter
import oracle
import pcapfile

START_NS = 1_700_000_000 * 10**9
SEED = int(os.environ.get("WEIR_SEED", "0"), 0) or \
    random.SystemRandom().randrange(1, 2**32)
QINQ = ((0x88A8, 100), (0x8100, 7))
ODD = (
    b"",                                            # nothing at all
    b"\x02\x00\x00",                                # less than an address
    frames.MACS,                                    # no EtherType
    frames.arp(),
    frames.from_source("10.1.1.1", 60)[:33],        # one byte short
    frames.from_source("2001:db8::1", 80)[:53],     # one byte short
    frames.ethernet(0x0800, bytes(46)),             # version 0
    frames.ethernet(0x8100, b"\x00"),               # half a tag
    frames.ethernet(0x0800, frames.ipv4("10.1.1.1", b""),
                    ((0x8100, 1),) * 9),            # nine tags
)


def draw_source(dice, number):
    """An address for a source: IPv4, IPv6 or IPv4-mapped IPv6."""
    kind = number % 5
    if kind == 3:
        return f"2001:db8:{number:x}::{dice.randrange(1, 9):x}"
    if kind == 4:  # the same source as the IPv4 one before it
        return f"::ffff:10.0.{(number - 1) >> 8}.{(number - 1) & 255}"
    return f"10.0.{number >> 8}.{number & 255}"


def draw_frame(dice, sources):
    if dice.random() < 0.03:
        return dice.choice(ODD)
    # A few loud ones among the first, the others alike.
    loud = dice.random() < 0.5
    number = dice.randrange(8 if loud else sources)
    tags = dice.choice(((), (), (), ((0x8100, 5),), QINQ))
    size = dice.choice((60, 64, 100, 590, 1514, 4000))
    return frames.from_source(draw_source(dice, number), size, tags)


def draw_step_ns(dice):
    """Mostly a short way forward; also not at all, far, and back."""
    kind = dice.random()
    if kind < 0.4:
        return 0
    if kind < 0.93:
        return dice.randrange(1, 400) * 1000
    if kind < 0.97:
        return -dice.randrange(1, 20_000) * 1000
    return dice.randrange(1, 300_000) * 1000


def draw_capture(seed, count=12000, sources=400):
    dice = random.Random(seed)
    now_ns = START_NS
    for _ in range(count):
        now_ns += draw_step_ns(dice)
        yield pcapfile.packet(now_ns, draw_frame(dice, sources))


class Replay(meter.Case):

    @classmethod
    def setUpClass(cls):
        print(f"WEIR_SEED={SEED}")
        cls.packets = list(draw_capture(SEED))

    def setUp(self):
        super().setUp()
        self.capture = self.path("in.pcap")
        pcapfile.write(self.capture, self.packets)

    def assertLimits(self, report, limits):
        found = [{k: limit[k] for k in (
            "name", "passed_packets", "passed_bytes", "denied_packets",
            "denied_bytes", "table_full")} for limit in report["limits"]]
        self.assertEqual(found, [{
            "name": limit.name,
            "passed_packets": limit.passed["packets"],
            "passed_bytes": limit.passed["bytes"],
            "denied_packets": limit.denied["packets"],
            "denied_bytes": limit.denied["bytes"],
            "table_full": 0} for limit in limits])

    def assertReplay(self, policy, limit, packets=None, prefix=64,
                     unclassified=None):
        """=> The report."""
        packets = packets or self.packets
        expected = oracle.run(packets, limit, unclassified, prefix)
        run = self.replay(self.capture,
                          ["--policy", policy, "--clock", "capture"])
        report = run.report
        self.assertAdds(report)
        self.assertEqual(report["packets"], len(packets))
        self.assertEqual(report["passed"], len(expected.passed))
        self.assertEqual(report["unclassified"], expected.unclassified)
        self.assertLimits(report, expected.limits)
        self.assertEqual(
            report["top_denied"],
            [{"key": key, "limit": limit.name, "denied_packets": n,
              "error": 0} for key, n in oracle.most_denied(expected.denied)])
        self.assertEqual([p.data for p in pcapfile.read(self.path("out.pcap"))],
                         [p.data for p in expected.passed])
        self.assertEqual(pcapfile.read(self.path("back.pcap")), [])
        self.assertEqual(len(run.out.splitlines()), 1)
        return report

    def test_packets(self):
        report = self.assertReplay(
            self.policy("1000 packets/s", "20 packets"),
            oracle.Limit("per-source", 1000, 20))
        # The capture must be one that tells right from wrong.
        self.assertGreater(report["dropped"], 500)
        self.assertGreater(report["unclassified"], 100)
        self.assertGreater(report["limits"][1]["denied_packets"], 0)
        self.assertEqual(len(report["top_denied"]), 10)

    def test_bytes(self):
        report = self.assertReplay(
            self.policy("3 Mbit/s", "9000 bytes"),
            oracle.Limit("per-source", 375000, 9000, "bytes"))
        self.assertGreater(report["dropped"], 500)

    def test_odd_rate(self):
        self.assertReplay(
            self.policy("7 packets/13s", "3 packets"),
            oracle.Limit("per-source", Fraction(7, 13), 3))

    def test_ipv6_prefix(self):
        self.assertReplay(
            self.policy("100 packets/s", "5 packets", "ipv6-prefix = 128\n"),
            oracle.Limit("per-source", 100, 5), prefix=128)

    def test_unclassified_limit(self):
        policy = self.policy(
            "500 packets/s", "10 packets", "\n[limit strangers]\n"
            "key = unclassified\nrate = 20 packets/s\nburst = 4 packets\n"
            "action = drop\n")
        self.assertReplay(policy, oracle.Limit("per-source", 500, 10),
                          unclassified=oracle.Limit("strangers", 20, 4))

    def test_same_again(self):
        options = ["--policy", self.policy("1000 packets/s", "20 packets"),
                   "--clock", "capture"]
        first = self.replay(self.capture, options, out="first.pcap")
        again = self.replay(self.capture, options, out="again.pcap")
        self.assertEqual(
            [p.data for p in pcapfile.read(self.path("first.pcap"))],
            [p.data for p in pcapfile.read(self.path("again.pcap"))])
        for name in ("seconds", "mpps"):
            del first.report[name], again.report[name]
        self.assertEqual(first.report, again.report)

    def test_orders_and_units(self):
        """Both byte orders; and nanoseconds, which the driver cuts to us."""
        limit = ("900 packets/s", "6 packets")
        shifted = [p._replace(time_ns=p.time_ns + 789) for p in self.packets]
        for magic, order in ((pcapfile.MAGIC_US, ">"),
                             (pcapfile.MAGIC_NS, "<")):
            with self.subTest(magic=hex(magic), order=order):
                pcapfile.write(self.capture, shifted, magic=magic, order=order)
                self.assertReplay(self.policy(*limit),
                                  oracle.Limit("per-source", 900, 6), shifted)

    def test_after_2038(self):
        """Seconds beyond 31 bits are later, not a long time ago."""
        start = (2**31 - 3) * 10**9
        late = [pcapfile.packet(start + i * 10_000_000, frames.from_source(
            "10.0.0.1", 64)) for i in range(600)]
        pcapfile.write(self.capture, late)
        report = self.assertReplay(
            self.policy("50 packets/s", "5 packets"),
            oracle.Limit("per-source", 50, 5), late)
        self.assertEqual(report["passed"], 304)  # 5 + 50/s over 5.99 s

    def test_back_behind_a_denial(self):
        """A denial long after a packet passed, and then a time before that
        packet: what it spent is still spent."""
        made = [pcapfile.packet(seconds * 10**9, frames.from_source(
            "10.0.0.1", size)) for seconds, size in
            ((10000, 1514), (10100, 1600), (9900, 1514))]
        pcapfile.write(self.capture, made)
        report = self.assertReplay(
            self.policy("999983 bytes/17ms", "1515 bytes"), oracle.Limit(
                "per-source", Fraction(999983 * 1000, 17), 1515, "bytes"),
            made)
        self.assertEqual((report["passed"], report["dropped"]), (1, 2))

    def test_two_cores(self):
        """Two workers on one table, each with a capture of its own: nothing
        is lost, and no source gets more than its limit in all."""
        policy = self.policy("1 packet/1000s", "20 packets")
        run = self.run_meter(
            [f"net_pcap0,rx_pcap={self.capture},"
             f"tx_pcap={self.path('zero.pcap')}",
             f"net_pcap1,rx_pcap={self.capture},"
             f"tx_pcap={self.path('one.pcap')}"],
            ["--policy", policy, "--clock", "capture", "--stats", "json"],
            cores=2)
        self.assertEqual(run.status, 0, run.err)
        self.assertAdds(run.report)
        self.assertEqual(run.report["packets"], 2 * len(self.packets))
        passed = pcapfile.read(self.path("zero.pcap")) + pcapfile.read(
            self.path("one.pcap"))
        self.assertEqual(len(passed), run.report["passed"])
        seen = Counter(oracle.source(p.data) for p in passed)
        wanted = Counter(oracle.source(p.data) for p in self.packets * 2)
        # The capture lasts a few seconds: nothing is refilled. But the worker
        # that is behind in time sees a little less than the other has left,
        # which may cost a token.
        for key, n in wanted.items():
            entitled = min(n, 20)
            self.assertIn(seen[key], (entitled, entitled - 1), key)


if __name__ == "__main__":
    meter.main()
