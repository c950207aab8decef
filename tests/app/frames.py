# SPDX-License-Identifier: BSD-3-Clause
"""Frames to put into captures."""
import ipaddress
import struct

MACS = bytes.fromhex("020000000002020000000001")
ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ETHERTYPE_IPV6 = 0x86DD
DESTINATION4 = ipaddress.IPv4Address("192.0.2.1").packed
DESTINATION6 = ipaddress.IPv6Address("2001:db8:ffff::1").packed
UDP = 17


def ethernet(ethertype, payload, tags=()):
    """tags are (type, VLAN number), the outermost first."""
    stack = b"".join(struct.pack("!HH", kind, vlan) for kind, vlan in tags)
    return MACS + stack + struct.pack("!H", ethertype) + payload


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(source, payload, options=b""):
    words = 5 + len(options) // 4
    def header(check):
        return struct.pack("!BBHHHBBH", 0x40 | words, 0,
                           words * 4 + len(payload), 0, 0, 64, UDP, check) + \
            ipaddress.IPv4Address(source).packed + DESTINATION4 + options
    return header(checksum(header(0))) + payload


def ipv6(source, payload, next_header=UDP):
    return struct.pack("!IHBB", 6 << 28, len(payload), next_header, 64) + \
        ipaddress.IPv6Address(source).packed + DESTINATION6 + payload


def udp(length):
    """A datagram of so many bytes, eight at least; without a checksum."""
    length = max(length, 8)
    return struct.pack("!HHHH", 40000, 9, length, 0) + bytes(length - 8)


def from_source(source, size, tags=()):
    """A UDP frame of an IPv4 or IPv6 address, size bytes long or as short as
    its headers allow."""
    address = ipaddress.ip_address(source)
    if address.version == 4:
        room = size - 14 - 4 * len(tags) - 20
        return ethernet(ETHERTYPE_IPV4, ipv4(address, udp(room)), tags)
    room = size - 14 - 4 * len(tags) - 40
    return ethernet(ETHERTYPE_IPV6, ipv6(address, udp(room)), tags)


def arp(size=60):
    return ethernet(ETHERTYPE_ARP, bytes(size - 14))
