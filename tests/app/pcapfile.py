# SPDX-License-Identifier: BSD-3-Clause
"""Classic capture files, read and written with nothing but struct.

Written apart from libpcap, which weir-meter reads with: a capture must mean
the same to both.
"""
import struct
from collections import namedtuple

MAGIC_US = 0xA1B2C3D4
MAGIC_NS = 0xA1B23C4D
ETHERNET = 1

# time_ns is the stamp in ns; wire_length what the packet had on the wire.
Packet = namedtuple("Packet", "time_ns data wire_length")


def packet(time_ns, data):
    return Packet(time_ns, data, len(data))


def header(magic=MAGIC_US, snap_length=262144, link_type=ETHERNET, order="<"):
    return struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_length,
                       link_type)


def record(p, unit_ns=1000, order="<"):
    seconds, rest_ns = divmod(p.time_ns, 10**9)
    return struct.pack(order + "IIII", seconds, rest_ns // unit_ns,
                       len(p.data), p.wire_length) + p.data


def write(path, packets, magic=MAGIC_US, order="<", **options):
    """Write a capture; the time of each packet is cut to the file's unit."""
    unit_ns = 1 if magic == MAGIC_NS else 1000
    with open(path, "wb") as f:
        f.write(header(magic=magic, order=order, **options))
        for p in packets:
            f.write(record(p, unit_ns, order))


def read(path):
    """All packets of a capture, in order."""
    with open(path, "rb") as f:
        data = f.read()
    for order in "<>":
        magic = struct.unpack_from(order + "I", data)[0]
        if magic in (MAGIC_US, MAGIC_NS):
            break
    else:
        raise ValueError(f"{path}: no classic capture")
    unit_ns = 1 if magic == MAGIC_NS else 1000
    packets, at = [], 24
    while at < len(data):
        seconds, fraction, length, wire = struct.unpack_from(
            order + "IIII", data, at)
        at += 16
        if at + length > len(data):
            raise ValueError(f"{path}: cut off")
        packets.append(Packet(seconds * 10**9 + fraction * unit_ns,
                              data[at:at + length], wire))
        at += length
    return packets
