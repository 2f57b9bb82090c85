"""Sends numbered datagrams as fast as asked, until its standard input is closed; run on a host of a lab.

The number of the last packet that may have been sent stands in a file that others map as well: it is written before
the packet is sent. Arguments: that file, packets per second, first address, how many addresses.
"""

import ipaddress
import mmap
import select
import socket
import struct
import sys
import time
from pathlib import Path

BURST = 20


def main(place: str, rate: str, first: str, count: str) -> None:
    start = int(ipaddress.IPv6Address(first))
    step = 1 << 112 - (int(count) - 1).bit_length()
    targets = [(str(ipaddress.IPv6Address(start + i * step)), 9) for i in range(int(count))]
    sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex("eth0"))
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 64)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
    number, began = 0, time.monotonic()
    with Path(place).open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        while not select.select([sys.stdin], [], [], 0)[0]:
            for _ in range(BURST):
                number += 1
                shared[:] = struct.pack("=Q", number)
                sender.sendto(struct.pack("!Q", number), targets[number % len(targets)])
            time.sleep(max(0.0, began + number / float(rate) - time.monotonic()))


main(*sys.argv[1:])
