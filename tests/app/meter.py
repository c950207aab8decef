# SPDX-License-Identifier: BSD-3-Clause
"""Run weir-meter and read what it says.

WEIR_METER names the executable. Every run has a folder of its own and shares
nothing with other runs, so that they may go on side by side.
"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

METER = os.environ.get("WEIR_METER", "weir-meter")
SKIPPED = 77  # what meson takes for "skipped"
PATIENCE_S = 100  # for a run that hangs; generous, as machines may be busy


def lcores(n):
    """n logical cores on the processors this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    return ",".join(f"{i}@{usable[i % len(usable)]}" for i in range(n))


def eal(cores=1, memory_mb=256):
    """EAL options that need neither huge pages, nor devices, nor a name.
    Without a shared configuration instances do not meet."""
    return ["--no-huge", "-m", str(memory_mb), "--no-pci", "--no-shconf",
            "--no-telemetry", "--log-level=warning",
            "--lcores", lcores(cores)]


class Run:
    """The end of a run: .status, .report (of JSON), .out, .err."""

    def __init__(self, process, out, err):
        self.status = process.returncode
        self.out, self.err = out, err
        lines = out.splitlines()
        self.report = None
        if lines and lines[-1].startswith("{"):
            self.report = json.loads(lines[-1])

    @property
    def crashed(self):
        return self.status < 0 or "Sanitizer" in self.err or \
            "runtime error" in self.err


class Case(unittest.TestCase):
    """A test with a folder, and ways to run weir-meter in it."""

    maxDiff = 4000

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="weir-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, text):
        Path(self.path(name)).write_text(text)
        return self.path(name)

    def policy(self, rate="1000 packets/s", burst="200 packets", more=""):
        return self.write("policy.ini", "[limit per-source]\nkey = src\n"
                          f"rate = {rate}\nburst = {burst}\naction = drop\n" +
                          more)

    def start(self, vdevs, options, cores=1, memory_mb=256,
              address_space=resource.RLIM_INFINITY, ignored=(), within=()):
        """ignored are signals; within is a command to run it under."""
        def prepare():
            resource.setrlimit(resource.RLIMIT_AS, (
                address_space, resource.RLIM_INFINITY))
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        command = list(within) + [METER] + eal(cores, memory_mb)
        for vdev in vdevs:
            command += ["--vdev", vdev]
        process = subprocess.Popen(
            command + ["--"] + options, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.folder,
            preexec_fn=prepare)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, said=""):
        out, err = process.communicate(timeout=PATIENCE_S)
        run = Run(process, out, said + err)
        self.assertFalse(run.crashed, f"status {run.status}\n{run.err}")
        return run

    def run_meter(self, vdevs, options, **settings):
        return self.finish(self.start(vdevs, options, **settings))

    def wait_until_running(self, process):
        """=> What it said on stderr so far."""
        said = ""
        for line in process.stderr:
            said += line
            if "weir-meter: running" in line:
                return said
        self.fail(f"ended before it ran\n{said}")

    def replay(self, capture, options, out="out.pcap", status=0, **settings):
        """Replay a capture from port 0 to a capture behind port 1."""
        run = self.run_meter(
            [f"net_pcap0,rx_pcap={capture},tx_pcap={self.path('back.pcap')}",
             f"net_pcap1,tx_pcap={self.path(out)}"],
            options + ["--stats", "json"], **settings)
        self.assertEqual(run.status, status, run.err)
        return run

    def assertAdds(self, report):
        """What every report must satisfy, whatever the traffic."""
        self.assertEqual(report["passed"] + report["dropped"],
                         report["packets"])
        self.assertLessEqual(report["unclassified"], report["packets"])
        if report["limits"]:
            sums = {side: sum(limit[f"{side}_packets"] +
                              limit[f"table_full_{side}_packets"]
                              for limit in report["limits"])
                    for side in ("passed", "denied")}
            self.assertEqual(sums["passed"], report["passed"])
            self.assertEqual(sums["denied"], report["dropped"])


def main(reason_to_skip=None):
    """unittest.main(), with an exit status that meson knows for skipped."""
    if reason_to_skip:
        print(f"SKIPPED: {reason_to_skip}", file=sys.stderr)
        sys.exit(SKIPPED)
    # As in a shell: a test may be started by something that ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
