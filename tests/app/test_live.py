#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs that somebody must end, ports in all arrangements, and captures larger
than the mbuf pool."""
import signal
import subprocess
import time

import frames
import meter
import oracle
import pcapfile

START_NS = 1_700_000_000 * 10**9


def packets(n, sources=50, gap_ns=1000, prefix="10.0.0"):
    return [pcapfile.packet(START_NS + i * gap_ns, frames.from_source(
        f"{prefix}.{i % sources}", 64)) for i in range(n)]


def data(path):
    return [p.data for p in pcapfile.read(path)]


class Live(meter.Case):

    def setUp(self):
        super().setUp()
        self.capture = self.path("in.pcap")
        pcapfile.write(self.capture, packets(500))
        self.loop = f"net_pcap0,rx_pcap={self.capture},infinite_rx=1"
        self.options = ["--policy", self.policy(), "--stats", "json"]

    def assertLoop(self, run):
        """How much is done in a time is the machine's affair; not what may
        pass in it."""
        self.assertEqual(run.status, 0, run.err)
        report = run.report
        self.assertAdds(report)
        self.assertTrue(report["accounted"])
        self.assertGreater(report["packets"], 0)
        self.assertGreater(report["mpps"], 0)
        self.assertGreater(report["passed"], 0)
        # 50 sources, 200 packets at once and 1000 a second.
        self.assertLessEqual(report["passed"],
                             50 * (200 + 1000 * report["seconds"] + 1))
        self.assertEqual(len(report["top_denied"]) > 0, report["dropped"] > 0)

    def test_duration(self):
        started = time.monotonic()
        run = self.run_meter([self.loop], self.options + ["--duration", "0.7"])
        self.assertGreaterEqual(time.monotonic() - started, 0.7)
        self.assertLoop(run)

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                process = self.start([self.loop], self.options)
                said = self.wait_until_running(process)
                # Give it something to report.
                with self.assertRaises(subprocess.TimeoutExpired):
                    process.wait(timeout=0.5)
                process.send_signal(number)
                self.assertLoop(self.finish(process, said))

    def test_inherited_ignore(self):
        """What whoever starts it has ignored stays ignored."""
        process = self.start([self.loop], self.options,
                             ignored=[signal.SIGINT])
        said = self.wait_until_running(process)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.send_signal(signal.SIGTERM)
        self.assertLoop(self.finish(process, said))

    def test_report_that_nobody_reads(self):
        process = self.start([f"net_pcap0,rx_pcap={self.capture}"],
                             self.options)
        process.stdout.close()
        said = process.stderr.read()
        self.assertEqual(process.wait(timeout=meter.PATIENCE_S), 1, said)
        self.assertIn("the report is not written: Broken pipe", said)

    def test_two_cores_on_loops(self):
        run = self.run_meter(
            [self.loop, f"net_pcap1,rx_pcap={self.capture},infinite_rx=1"],
            self.options + ["--duration", "0.7"], cores=2)
        self.assertLoop(run)

    def test_more_cores_than_queues(self):
        run = self.run_meter([self.loop], self.options + [
            "--duration", "0.5"], cores=4)
        self.assertLoop(run)

    def test_null_port(self):
        """Packets of zeros, on a port that knows neither captures nor time,
        and has a queue for each core."""
        run = self.run_meter(["net_null0", "net_null1"], self.options + [
            "--duration", "0.5"], cores=2)
        self.assertEqual(run.status, 0, run.err)
        self.assertAdds(run.report)
        self.assertGreater(run.report["packets"], 0)
        self.assertEqual(run.report["unclassified"], run.report["packets"])
        self.assertEqual(run.report["top_denied"], [])

    def test_more_packets_than_mbufs(self):
        pcapfile.write(self.capture, packets(100_000, 200, 20_000))
        report = self.replay(self.capture, self.options + [
            "--clock", "capture"], memory_mb=64).report
        self.assertEqual(report["packets"], 100_000)
        # 200 sources, 250 packets/s each, of 1000 that are allowed.
        self.assertEqual(report["passed"], 100_000)
        self.assertEqual(len(data(self.path("out.pcap"))), 100_000)

    def test_loop_of_more_packets_than_usual(self):
        pcapfile.write(self.capture, packets(100_000, 200))
        run = self.run_meter([self.loop], self.options + [
            "--duration", "0.5"], memory_mb=512)
        self.assertEqual(run.status, 0, run.err)
        self.assertAdds(run.report)
        self.assertGreater(run.report["packets"], 0)

    def test_both_ways(self):
        """Four ports: two pairs, each sending what the other received."""
        names = [self.path(f"{i}.pcap") for i in range(4)]
        sent = [self.path(f"sent{i}.pcap") for i in range(4)]
        for i, name in enumerate(names):
            pcapfile.write(name, packets(300 + i, 20, prefix=f"10.0.{i}"))
        for cores in (1, 2, 3):
            with self.subTest(cores=cores):
                run = self.run_meter(
                    [f"net_pcap{i},rx_pcap={names[i]},tx_pcap={sent[i]}"
                     for i in range(4)], self.options, cores=cores)
                self.assertEqual(run.status, 0, run.err)
                self.assertEqual(run.report["passed"], 1206)
                for i in range(4):
                    self.assertEqual(data(sent[i ^ 1]), data(names[i]))

    def test_several_captures_on_one_port(self):
        """Each is a queue; all must be read, by however few cores, and go to
        as few queues as the partner has."""
        names = [self.path(f"{i}.pcap") for i in range(3)]
        for i, name in enumerate(names):
            pcapfile.write(name, packets(400, 20, prefix=f"10.0.{i}"))
        for cores in (1, 2):
            with self.subTest(cores=cores):
                run = self.run_meter(
                    ["net_pcap0," + ",".join(f"rx_pcap={n}" for n in names),
                     f"net_pcap1,tx_pcap={self.path('out.pcap')}"],
                    self.options, cores=cores)
                self.assertEqual(run.status, 0, run.err)
                self.assertEqual(run.report["packets"], 1200)
                self.assertEqual(sorted(data(self.path("out.pcap"))),
                                 sorted(sum(map(data, names), [])))

    def test_port_without_partner(self):
        run = self.run_meter(
            [f"net_pcap0,rx_pcap={self.capture},"
             f"tx_pcap={self.path('own.pcap')}"], self.options)
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.report["packets"], 500)
        self.assertEqual(run.report["passed"], 500)
        self.assertEqual(run.report["tx_failed"], 0)
        self.assertEqual(data(self.path("own.pcap")), [])

    def test_third_port_has_no_partner(self):
        run = self.run_meter(
            [f"net_pcap0,tx_pcap={self.path('zero.pcap')}",
             f"net_pcap1,rx_pcap={self.capture}",
             f"net_pcap2,rx_pcap={self.capture},"
             f"tx_pcap={self.path('own.pcap')}"], self.options)
        self.assertEqual(run.status, 0, run.err)
        self.assertEqual(run.report["packets"], 1000)
        self.assertEqual(data(self.path("zero.pcap")), data(self.capture))
        self.assertEqual(data(self.path("own.pcap")), [])

    def interface(self, state):
        """=> What runs a command beside an interface x0 that takes frames of
        1500 bytes and their headers and answers nothing."""
        within = ["unshare", "--net", "sh", "-ec",
                  "ip link add x0 type veth peer name x1 && "
                  f"ip link set x1 up && ip link set x0 {state} && "
                  "exec \"$@\"", "sh"]
        try:
            able = subprocess.run(within + ["true"], capture_output=True,
                                  timeout=meter.PATIENCE_S)
        except FileNotFoundError:
            self.skipTest("there is no unshare")
        if able.returncode != 0:
            self.skipTest("may not make a network interface")
        return within

    def test_packet_that_cannot_be_sent(self):
        """The driver stops at it; those behind it are other people's."""
        made = packets(40)
        made[7] = pcapfile.packet(START_NS, frames.from_source(
            "10.9.9.9", 12000))
        pcapfile.write(self.capture, made)
        run = self.run_meter(
            [f"net_pcap0,rx_pcap={self.capture}", "net_pcap1,tx_iface=x0"],
            self.options, within=self.interface("up"))
        self.assertAdds(run.report)
        self.assertEqual(run.report["passed"], 40)
        self.assertEqual(run.report["tx_failed"], 1)
        self.assertEqual(run.status, 0, run.err)

    def test_interface_that_is_down(self):
        run = self.run_meter(
            [f"net_pcap0,rx_pcap={self.capture}",
             "net_af_packet1,iface=x0"],
            self.options + ["--duration", "0.5"],
            within=self.interface("down"))
        self.assertAdds(run.report)
        self.assertEqual(run.report["packets"], 500)
        self.assertEqual(run.report["tx_failed"], 0)
        self.assertEqual(run.report["tx_errors"], 500)
        self.assertEqual(run.status, 1, run.err)
        self.assertFalse(run.report["accounted"])
        self.assertIn("500 errors in sending", run.err)

    def test_no_meter(self):
        """Nobody is asked, nothing is counted as limited, all of it passes."""
        pcapfile.write(self.capture, packets(5000, 3) + [
            pcapfile.packet(START_NS, frames.arp())])
        for policy in ([], self.options[:2]):
            with self.subTest(policy=policy):
                report = self.replay(self.capture,
                                     policy + ["--no-meter"]).report
                self.assertEqual(
                    (report["packets"], report["passed"], report["dropped"]),
                    (5001, 5001, 0))
                self.assertEqual(report["limits"], [])
                self.assertEqual(report["top_denied"], [])
                self.assertEqual(data(self.path("out.pcap")),
                                 data(self.capture))

    def test_table_full(self):
        """More sources than the table holds, in each of the ways to go on."""
        many = [pcapfile.packet(START_NS, frames.from_source(
            f"10.{i >> 8}.{i & 255}.1", 64)) for i in range(3000)]
        pcapfile.write(self.capture, many * 2)
        for full in ("deny", "allow", "shared"):
            with self.subTest(full=full):
                policy = self.policy(
                    "1 packet/s", "1 packet",
                    f"\n[table]\ncapacity = 100\nfull = {full}\n")
                report = self.replay(self.capture, [
                    "--policy", policy, "--clock", "capture"]).report
                self.assertAdds(report)
                limit = report["limits"][0]
                self.assertGreater(limit["table_full"], 0)
                self.assertEqual(limit["passed_packets"] +
                                 limit["denied_packets"] +
                                 limit["table_full"], 6000)
                if full == "deny":
                    self.assertEqual(limit["table_full_passed_packets"], 0)
                elif full == "allow":
                    self.assertEqual(limit["table_full_denied_packets"], 0)

    def test_text(self):
        pcapfile.write(self.capture, packets(1000, 1))
        run = self.run_meter(
            [f"net_pcap0,rx_pcap={self.capture}"],
            ["--policy", self.policy("1 packet/s", "10 packets"),
             "--clock", "capture"])
        self.assertEqual(run.status, 0, run.err)
        words = [line.split() for line in run.out.splitlines()]
        self.assertIn(["passed", "10"], words)
        self.assertIn(["dropped", "990"], words)
        self.assertIn(["per-source", "10", "640", "990", "63360", "0",
                       "0"], words)
        self.assertIn(["10.0.0.0", "990"], words)

    def test_text_columns(self):
        """Rows stand in line with their heads, however long a name, and tell
        what became of packets that found no room."""
        many = [pcapfile.packet(START_NS, frames.from_source(
            f"10.{i >> 8}.{i & 255}.1", 64)) for i in range(3000)]
        pcapfile.write(self.capture, many)
        name = "n" * 50
        policy = self.write(
            "long.ini", f"[limit {name}]\nkey = src\nrate = 1 packet/s\n"
            "burst = 1 packet\naction = drop\n"
            "[table]\ncapacity = 100\nfull = allow\n")
        run = self.run_meter([f"net_pcap0,rx_pcap={self.capture}"],
                             ["--policy", policy, "--clock", "capture"])
        self.assertEqual(run.status, 0, run.err)
        lines = run.out.splitlines()
        at = next(i for i, line in enumerate(lines)
                  if line.startswith("limit "))
        self.assertEqual(len({len(line) for line in lines[at:at + 3]}), 1)
        row = lines[at + 1].split()
        self.assertEqual(row[0], name)
        self.assertGreater(int(row[5]), 0)
        self.assertEqual(row[5], row[6])
        self.assertEqual(int(row[1]) + int(row[6]), 3000)

    def test_many_denied_sources(self):
        """More than the report can follow: the loudest are still found, and
        the counts say how far they may be off."""
        crowd = [frames.from_source(crowd_address(i), 64)
                 for i in range(6000)]
        loud = [frames.from_source(f"192.0.2.{i}", 64) for i in range(5)]
        mixed = []
        for i, frame in enumerate(crowd * 3):
            mixed += [frame, loud[i % 5]]
        made = [pcapfile.packet(START_NS, frame) for frame in mixed]
        pcapfile.write(self.capture, made)
        expected = oracle.run(made, oracle.Limit("per-source", 1, 1))
        report = self.replay(self.capture, [
            "--policy", self.policy("1 packet/s", "1 packet"),
            "--clock", "capture"]).report
        top = report["top_denied"]
        self.assertEqual(sorted(d["key"] for d in top[:5]),
                         [f"192.0.2.{i}" for i in range(5)])
        for d in top:
            true = expected.denied[d["key"]]
            self.assertLessEqual(true, d["denied_packets"])
            self.assertGreaterEqual(true, d["denied_packets"] - d["error"])


def crowd_address(i):
    return f"10.1.{i >> 8}.{i & 255}"


if __name__ == "__main__":
    meter.main()
