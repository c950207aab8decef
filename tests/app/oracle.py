# SPDX-License-Identifier: BSD-3-Clause
"""What weir-meter should do, worked out the slow way.

Knows nothing of weir's arithmetic or header parser: addresses are found with
slices, and a bucket is a fraction of a token and the time it was right.
"""
import ipaddress
from collections import Counter, namedtuple
from fractions import Fraction

VLAN_TYPES = (0x8100, 0x88A8, 0x9100)
VLAN_TAGS_MAX = 4
MAPPED = ipaddress.ip_network("::ffff:0:0/96")
UNCLASSIFIED = None


def source(frame, prefix=64):
    """The source of a frame as text, or UNCLASSIFIED."""
    if len(frame) < 14:
        return UNCLASSIFIED
    at, tags = 12, 0
    kind = int.from_bytes(frame[12:14], "big")
    while kind in VLAN_TYPES:
        tags += 1
        at += 4
        if tags > VLAN_TAGS_MAX or len(frame) < at + 2:
            return UNCLASSIFIED
        kind = int.from_bytes(frame[at:at + 2], "big")
    packet = frame[at + 2:]
    if kind == 0x0800:
        return source4(packet)
    if kind == 0x86DD:
        return source6(packet, prefix)
    return UNCLASSIFIED


def source4(packet):
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return UNCLASSIFIED
    header = (packet[0] & 15) * 4
    total = int.from_bytes(packet[2:4], "big")
    if header < 20 or len(packet) < header or total < header:
        return UNCLASSIFIED
    return str(ipaddress.IPv4Address(packet[12:16]))


def source6(packet, prefix):
    if len(packet) < 40 or packet[0] >> 4 != 6:
        return UNCLASSIFIED
    address = ipaddress.IPv6Address(packet[8:24])
    if address in MAPPED:
        return str(ipaddress.IPv4Address(packet[20:24]))
    if prefix == 128:
        return str(address)
    return str(ipaddress.ip_network((address, prefix), strict=False))


class Limit:
    """rate is in tokens per second, any fraction of one."""

    def __init__(self, name, rate, burst, unit="packets"):
        self.name = name
        self.rate_per_ns = Fraction(rate) / 10**9
        self.burst = burst
        self.unit = unit
        self.buckets = {}
        self.passed = Counter()
        self.denied = Counter()

    def level(self, key, now_ns):
        """Tokens at an instant. A bucket looked at from before it was last
        touched held as much less as it has gained since."""
        if key not in self.buckets:
            return Fraction(self.burst)
        level, at_ns = self.buckets[key]
        return min(Fraction(self.burst),
                   level + (now_ns - at_ns) * self.rate_per_ns)

    def ask(self, key, length, now_ns):
        cost = length if self.unit == "bytes" else 1
        level = self.level(key, now_ns)
        # A packet of no bytes costs nothing and passes whatever the level.
        passes = cost == 0 or level >= cost
        if passes and cost > 0:
            self.buckets[key] = (level - cost, now_ns)
        counts = self.passed if passes else self.denied
        counts["packets"] += 1
        counts["bytes"] += length
        return passes


Outcome = namedtuple("Outcome", "passed unclassified denied limits")


def run(packets, limit, unclassified=None, prefix=64):
    """Meter packets (pcapfile.Packet). Times must be those the driver gives:
    whole microseconds. => The packets that pass, and the counts."""
    if unclassified is None:
        unclassified = Limit("unclassified", limit.rate_per_ns * 10**9,
                             limit.burst, limit.unit)
    passed, strangers, denied = [], 0, Counter()
    for p in packets:
        key = source(p.data, prefix)
        held_to = limit
        if key is UNCLASSIFIED:
            strangers += 1
            held_to = unclassified
        now_ns = p.time_ns // 1000 * 1000
        if held_to.ask(key, len(p.data), now_ns):
            passed.append(p)
        elif key is not UNCLASSIFIED:
            denied[key] += 1
    return Outcome(passed, strangers, denied, [limit, unclassified])


def as_number(key):
    """The order weir-meter lists equal counts in: that of the keys' bytes,
    IPv4 written as IPv4-mapped IPv6."""
    address = ipaddress.ip_address(key.split("/")[0])
    if address.version == 4:
        return 0xFFFF00000000 + int(address)
    return int(address)


def most_denied(denied, n=10):
    return sorted(denied.items(), key=lambda d: (-d[1], as_number(d[0])))[:n]
