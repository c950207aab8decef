#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make a capture: many quiet sources and a few loud ones.

Every source sends once before any sends twice, if there are packets enough;
the rest are half from the loud sources and half from all of them. Packets
come at random times (a Poisson process) at the given rate on average. One
source in eight is IPv6. The same arguments make the same capture.
"""
import argparse
import ipaddress
import random

import frames
import pcapfile

START_NS = 1_700_000_000 * 10**9  # in November 2023
SIZES = (64, 64, 64, 64, 64, 64, 64, 576, 576, 576, 576, 1500)  # as the net
IPV6_EVERY = 8


def address(number):
    """The address of a source: 10.0.0.0/8, or one /64 each of 2001:db8::."""
    if number % IPV6_EVERY == IPV6_EVERY - 1:
        return ipaddress.IPv6Address((0x20010DB8 << 96) + (number << 64) + 1)
    return ipaddress.IPv4Address((10 << 24) + 1 + number)


def senders(count, sources, loud, dice):
    """Who sends each packet, as numbers; the loud sources come first."""
    order = list(range(sources))
    dice.shuffle(order)
    order = order[:count]
    while len(order) < count:
        among = loud if loud > 0 and dice.random() < 0.5 else sources
        order.append(dice.randrange(among))
    head, tail = order[:sources], order[sources:]
    # The first packet of a source may come at any time, too.
    mixed = head + tail
    dice.shuffle(mixed)
    return mixed


def packets(count, sources, loud, rate, size, seed):
    dice = random.Random(seed)
    built = {}
    now_ns = START_NS
    for number in senders(count, sources, loud, dice):
        now_ns += int(dice.expovariate(rate) * 10**9)
        length = size or dice.choice(SIZES)
        if (number, length) not in built:
            built[number, length] = frames.from_source(address(number), length)
        yield pcapfile.packet(now_ns, built[number, length])


def arguments():
    def positive(text):
        value = int(text)
        if value < 1:
            raise argparse.ArgumentTypeError("must be at least 1")
        return value
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=positive, default=300)
    parser.add_argument("--packets", type=positive, default=60000)
    parser.add_argument("--loud", type=int, default=5,
                        help="loud ones among the sources")
    parser.add_argument("--rate", type=positive, default=20000,
                        help="packets per second, all sources together")
    parser.add_argument("--size", type=int, default=0,
                        help="bytes of every frame; 0: a mix of 64 to 1500")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("output", help="the capture to write")
    options = parser.parse_args()
    if not 0 <= options.loud <= options.sources:
        parser.error("--loud: more than there are sources")
    if options.sources > 1 << 24:
        parser.error("--sources: at most 16777216")
    if options.size and not 62 <= options.size <= 9000:
        parser.error("--size: 62 to 9000 bytes hold the headers")
    return options


def main():
    o = arguments()
    pcapfile.write(o.output, packets(o.packets, o.sources, o.loud, o.rate,
                                     o.size, o.seed))


if __name__ == "__main__":
    main()
