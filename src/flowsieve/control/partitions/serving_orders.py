"""A configurator at work on a socket: it takes an order, decides, answers, and so on until the other side is gone."""

from __future__ import annotations

import socket
from collections.abc import Callable

from flowsieve.control.partitions.configurator import Configurator
from flowsieve.control.partitions.orders import answer_to_bytes, order_from_bytes
from flowsieve.control.partitions.wire import (
    NONCE,
    PROOF,
    SIZE,
    configurator_proof,
    dispatcher_proof,
    hello,
    length_of,
    nonce,
    same,
)
from flowsieve.errors import FlowsieveError


class NotTrusted(FlowsieveError):
    """The other side does not know the secret."""


def serve_orders(connection: socket.socket, still: Callable[[], bool] = lambda: True) -> None:
    """Work until the dispatcher closes the connection, or is silent and does not count `still`."""
    configurator = Configurator()
    while True:
        head = _received(connection, SIZE, still)
        if head is None:
            return
        body = _received(connection, length_of(head), still)
        if body is None:
            return
        serial, order = order_from_bytes(body)
        connection.sendall(answer_to_bytes(serial, configurator.handle(order)))


def greet(connection: socket.socket, secret: bytes, name: str) -> None:
    """Say who this is, and have each side prove that it knows the secret."""
    own = nonce()
    connection.sendall(hello(own, name))
    answer = _received(connection, NONCE + PROOF)
    if answer is None or not same(answer[NONCE:], dispatcher_proof(secret, own, answer[:NONCE])):
        raise NotTrusted("what answers there is no dispatcher of this network")
    connection.sendall(configurator_proof(secret, answer[:NONCE], own))


def _received(
    connection: socket.socket, size: int, still: Callable[[], bool] = lambda: False
) -> bytes | None:
    """So many bytes; None where the other side is gone, or silent and does not count `still`."""
    found = bytearray(size)
    view, at = memoryview(found), 0
    while at < size:
        try:
            count = connection.recv_into(view[at:])
        except TimeoutError:
            if still():
                continue
            return None
        if count == 0:
            return None
        at += count
    return bytes(found)
