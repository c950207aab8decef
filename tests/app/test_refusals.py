#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be done as asked is refused before any port runs, and the
message says what is wrong where."""
import frames
import meter
import pcapfile

SECTION = "[limit per-source]\n"
GOOD = {"key": "src", "rate": "1000 packets/s", "burst": "200 packets",
        "action": "drop"}


def section(**changes):
    fields = {**GOOD, **changes}
    return SECTION + "".join(f"{name.replace('_', '-')} = {value}\n"
                             for name, value in fields.items()
                             if value is not None)


# What the file says, and what the message must name.
BAD_POLICIES = (
    (section(rate="1000"), "rate"),
    (section(rate="0 packets/s"), "rate"),
    (section(rate="-1 packets/s"), "rate"),
    (section(rate="a lot"), "rate"),
    (section(rate="99999999999 Tbit/s", burst="9000 bytes"), "rate"),
    (section(rate=None), "rate"),
    (section(burst="0 packets"), "burst"),
    (section(burst="200 bytes"), "burst"),
    (section(key="dst"), "key"),
    (section(key=None), "key"),
    (section(action="explode"), "action"),
    (section(colour="green"), "colour"),
    (section(ipv6_prefix="129"), "ipv6-prefix"),
)


class Refusals(meter.Case):

    def setUp(self):
        super().setUp()
        self.capture = self.path("in.pcap")
        pcapfile.write(self.capture, [pcapfile.packet(
            10**18, frames.from_source("10.0.0.1", 64))])
        self.vdev = f"net_pcap0,rx_pcap={self.capture}"

    def refused(self, options, vdevs=None, **settings):
        """=> What it said."""
        run = self.run_meter([self.vdev] if vdevs is None else vdevs, options,
                             **settings)
        self.assertEqual(run.status, 2, run.err)
        self.assertEqual(run.out, "")
        self.assertNotIn("running", run.err)
        return run.err

    def test_bad_policies(self):
        for text, field in BAD_POLICIES:
            with self.subTest(policy=text):
                path = self.write("bad.ini", text)
                said = self.refused(["--policy", path])
                self.assertIn(path, said)
                self.assertIn("[limit per-source]", said)
                self.assertIn(field, said)

    def test_bad_files(self):
        for text in ("", "rate = 1 packet/s\n", "[limit]\n", "[limit a\n",
                     "\x00", section() + section(), "[nonsense]\n"):
            with self.subTest(policy=text):
                path = self.write("bad.ini", text)
                self.assertIn(path, self.refused(["--policy", path]))
        self.assertIn("none.ini", self.refused(["--policy", "none.ini"]))
        self.assertIn(str(self.folder),
                      self.refused(["--policy", str(self.folder)]))

    def test_bad_policy_without_meter(self):
        path = self.write("bad.ini", section(rate="1000"))
        self.assertIn("rate", self.refused(["--policy", path, "--no-meter"]))

    def test_too_much_memory(self):
        """A table of 256 GiB, in a process that may have 16."""
        process = self.start([], ["--help"], address_space=16 << 30)
        if process.wait(timeout=meter.PATIENCE_S) != 0:
            self.skipTest("does not even start there (sanitizers do not)")
        path = self.policy(more="\n[table]\ncapacity = 4294967296\n")
        said = self.refused(["--policy", path], address_space=16 << 30)
        self.assertIn(path, said)
        self.assertIn("[table] capacity: ", said)
        self.assertIn("4294967296", said)

    def test_bad_options(self):
        policy = ["--policy", self.policy()]
        for options, word in (
                ([], "--policy"),
                (policy + ["--clock", "sundial"], "sundial"),
                (policy + ["--stats", "xml"], "xml"),
                (policy + ["--duration", "0"], "--duration"),
                (policy + ["--duration", "-1"], "--duration"),
                (policy + ["--duration", "soon"], "--duration"),
                (policy + ["--duration", "1s"], "--duration"),
                (policy + ["--duration", "nan"], "--duration"),
                (policy + ["--duration", "1e300"], "--duration"),
                (policy + ["--duration"], "duration"),
                (policy + ["--frobnicate"], "frobnicate"),
                (policy + ["more"], "more"),
                (policy + ["-x"], "x")):
            with self.subTest(options=options):
                self.assertIn(word, self.refused(options))

    def test_help(self):
        run = self.run_meter([], ["--help"])
        self.assertEqual(run.status, 0)
        for word in ("--policy", "--clock", "--stats", "--duration",
                     "--no-meter"):
            self.assertIn(word, run.out)

    def test_no_port(self):
        self.assertIn("no port", self.refused(
            ["--policy", self.policy()], vdevs=[]))

    def test_no_such_device(self):
        self.assertIn("EAL", self.refused(
            ["--policy", self.policy()], vdevs=["net_nonsense0"]))

    def test_clock_needs_time_stamps(self):
        options = ["--policy", self.policy(), "--clock", "capture"]
        for vdevs in (["net_null0"], [self.vdev + ",infinite_rx=1"],
                      [self.vdev, "net_null0"]):
            with self.subTest(vdevs=vdevs):
                self.assertIn("time stamps", self.refused(options, vdevs))

    def test_loop_larger_than_memory(self):
        """infinite_rx keeps the capture in mbufs: all of it, or nothing."""
        pcapfile.write(self.capture, [pcapfile.packet(
            10**18, frames.from_source("10.0.0.1", 64))] * 100_000)
        said = self.refused(
            ["--policy", self.policy()], [self.vdev + ",infinite_rx=1"],
            memory_mb=128)
        self.assertIn("mbufs", said)
        self.assertIn("EAL has 128 MiB in all", said)

    def test_loop_of_jumbo_frames(self):
        pcapfile.write(self.capture, [pcapfile.packet(10**18, bytes(9000))])
        self.assertIn("receive queue", self.refused(
            ["--policy", self.policy()], [self.vdev + ",infinite_rx=1"]))


if __name__ == "__main__":
    meter.main()
