"""Calls through the network: answered once, in time, whatever happens on the way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy import SWITCH, CountingHandler, Network, Weather, message
from patience import run

from flowsieve.client.inband_transport import InbandTransport
from flowsieve.errors import BadInput, BadMessage, ControlLost, Refused, SwitchError
from flowsieve.header.frame import build, parse
from flowsieve.protocol.call import call_key
from flowsieve.protocol.call_datagram import CallDatagram, Gone, More, Part, decode, encode, unpack_answer
from flowsieve.serving.inband.inband_server import InbandServer, beside
from flowsieve.southbound.fabric import PuntedPacket

FAIR = Weather()


def packet(network: Network, datagram: Any, port: int = 1) -> PuntedPacket:
    return PuntedPacket(SWITCH, port, network.frame(port, encode(datagram)))


def call(**given: Any) -> CallDatagram:
    asked = message(**given)
    return CallDatagram(call_key(asked), asked)


async def settle() -> None:
    """Let all that is under way happen."""
    await asyncio.sleep(1)


@pytest.mark.parametrize("family", [4, 6])
def test_a_call_is_answered(family):
    async def main() -> None:
        handler = CountingHandler()
        network = Network(handler, FAIR, family=family)
        answer = await network.transport(3).call(message(host="h3"))
        assert answer == {"ok": {"n": 1, "long": ""}}
        assert handler.hosts == {"h3"}
        assert (network.server.counters.received, network.server.counters.answered) == (1, 1)

    run(main())


@pytest.mark.parametrize("loss", [0.1, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_every_call_is_answered_once_within_its_deadline_whatever_gets_lost(loss, seed):
    weather = Weather(loss=loss, double=0.2, cut=0.1, delay=0.3)
    hosts, calls = 5, 40

    async def main() -> None:
        handler = CountingHandler(seconds=0.05)
        network = Network(handler, weather, seed)
        loop = asyncio.get_running_loop()

        async def client(port: int) -> None:
            transport = network.transport(port)
            for n in range(1, calls + 1):
                began = loop.time()
                size = 20_000 if n % 10 == 0 else 0
                answer = await transport.call(
                    message(n, f"h{port}", session=f"{port:032x}", size=size, deadline=30)
                )
                assert answer == {"ok": {"n": n, "long": "x" * size}}
                assert loop.time() - began <= 30
            await transport.close()

        async with asyncio.TaskGroup() as group:
            for port in range(1, hosts + 1):
                group.create_task(client(port))
        assert len(handler.executed) == hosts * calls
        assert set(handler.executed.values()) == {1}
        assert network.server.counters.malformed > 0  # truncated ones came, too
        await settle()
        assert not network.server._under_way and not network.server._sending

    run(main())


@settings(max_examples=40)
@given(
    st.builds(
        Weather,
        loss=st.floats(0, 0.3),
        double=st.floats(0, 0.5),
        cut=st.floats(0, 0.2),
        delay=st.floats(0, 1.0),
    ),
    st.integers(0, 1 << 32),
    st.lists(st.integers(0, 30_000), min_size=1, max_size=5),
)
def test_answers_of_any_length_come_whole_in_any_weather(weather, seed, sizes):
    async def main() -> None:
        handler = CountingHandler()
        transport = Network(handler, weather, seed).transport(1)
        calls = [transport.call(message(n, size=size, deadline=300)) for n, size in enumerate(sizes, 1)]
        answers = await asyncio.gather(*calls)
        assert [len(answer["ok"]["long"]) for answer in answers] == sizes
        assert set(handler.executed.values()) == {1}

    run(main())


def test_a_long_answer_is_asked_for_a_few_parts_at_a_time():
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        answer = await network.transport(1).call(message(size=100_000))
        assert len(answer["ok"]["long"]) == 100_000
        kinds = [type(decode(parse(sent).payload)) for sent in network.sent]
        assert kinds == [Part] * 87
        assert network.server.counters.received == 1 + 6  # the call, and 86 parts by 16 at a time
        assert max(map(len, network.sent)) <= 1232 + 62

    run(main())


def test_a_call_that_nobody_answers_is_given_up_at_its_deadline():
    async def main() -> None:
        network = Network(CountingHandler(), Weather(loss=1.0))
        loop = asyncio.get_running_loop()
        with pytest.raises(
            ControlLost, match="did not answer 'renew' through the network: no answer in time"
        ):
            await network.transport(1).call(message(deadline=7))
        assert loop.time() == pytest.approx(7)

    run(main())


def test_calls_under_way_end_when_the_transport_is_closed():
    async def main() -> None:
        transport = Network(CountingHandler(), Weather(loss=1.0)).transport(1)
        asked = asyncio.create_task(transport.call(message()))
        await asyncio.sleep(1)
        await transport.close()
        with pytest.raises(ControlLost, match="closed"):
            await asked

    run(main())


def test_a_number_cannot_be_used_twice_at_a_time():
    async def main() -> None:
        transport = Network(CountingHandler(), FAIR).transport(1)
        first = asyncio.create_task(transport.call(message()))
        await asyncio.sleep(0)
        with pytest.raises(BadInput, match="under way already; right is a new number"):
            await transport.call(message())
        await first
        assert (await transport.call(message()))["ok"]["n"] == 1

    run(main())


def test_a_call_that_is_too_long_is_refused_before_it_is_sent():
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        with pytest.raises(BadMessage, match="ask the controller over HTTP"):
            await network.transport(1).call(message(filter="x" * 2000))
        assert network.server.counters.received == 0

    run(main())


def test_a_slow_handler_is_asked_once_however_often_the_call_comes():
    async def main() -> None:
        handler = CountingHandler(seconds=10)
        network = Network(handler, FAIR)
        await network.transport(1).call(message())
        assert handler.calls == 1
        assert network.server.counters.repeated > 5
        assert network.server.counters.answered == 1

    run(main())


def test_an_answer_whose_parts_are_gone_is_asked_for_anew():
    async def main() -> None:
        handler = CountingHandler()
        network = Network(handler, FAIR)
        transport = network.transport(1)
        asked = asyncio.create_task(transport.call(message(size=50_000)))
        while len(network.sent) < 5:
            await asyncio.sleep(0.0001)
        network.server._kept._answers.clear()  # as after a restart of the controller
        assert len((await asked)["ok"]["long"]) == 50_000
        assert Gone in {type(decode(parse(sent).payload)) for sent in network.sent}
        assert (handler.calls, handler.executed.total()) == (2, 1)

    run(main())


# What does no harm.


@given(st.data(), st.sampled_from([4, 6]))
def test_random_bytes_do_no_harm(data, family):
    async def main() -> None:
        handler = CountingHandler()
        network = Network(handler, FAIR, family=family)
        good = network.frame(1, encode(call()))
        for _ in range(20):
            payload = data.draw(st.binary(max_size=60))
            mangled = bytearray(good)
            mangled[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
            for one in (
                payload,
                network.frame(1, payload),
                good[: len(payload)],
                network.frame(1, b"\x93\2\2" + payload),
            ):
                network.server.heard(PuntedPacket(SWITCH, 1, one))
            if family == 6:  # there a checksum covers all but the Ethernet header and the length
                network.server.heard(PuntedPacket(SWITCH, 1, bytes(mangled)))
        await settle()
        before = network.server.counters
        assert before.received >= 80
        assert before.malformed + before.other_version >= 80
        network.server.heard(PuntedPacket(SWITCH, 1, good))
        await settle()
        assert network.server.counters.answered == before.answered + 1

    run(main())


def test_what_switches_say_to_each_other_is_passed_over_and_not_counted():
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        network.server.heard(PuntedPacket(SWITCH, 1, bytes(12) + b"\x88\xcc" + bytes(40)))
        assert network.server.counters.received == 0

    run(main())


def unfinished(network: Network, port: int) -> PuntedPacket:
    frame = replace(parse(network.frame(port, encode(call(host=f"h{port}")))), finished=False)
    return PuntedPacket(SWITCH, port, build(frame))


def test_an_unfinished_checksum_is_taken_at_a_hosts_port_and_nowhere_else(caplog):
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        network.server.heard(unfinished(network, 1))
        await settle()
        assert not caplog.records
        for _ in range(50):
            network.server.heard(unfinished(network, 100))
        await settle()
        counters = network.server.counters
        assert (counters.completed, counters.answered, counters.unfinished) == (1, 1, 50)
        (line,) = [record.getMessage() for record in caplog.records]
        assert "a call from port 100 of switch s1 is dropped: its checksum is unfinished" in line
        assert "ethtool -K INTERFACE tx off" in line

    run(main())


def test_what_is_dropped_is_told_once_for_each_port_and_reason_and_again_much_later(caplog):
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        damaged = bytearray(network.frame(2, encode(call(host="h2"))))
        damaged[-1] ^= 1
        for _ in range(100):
            network.server.heard(PuntedPacket(SWITCH, 2, bytes(damaged)))
            network.server.heard(PuntedPacket(SWITCH, 2, network.frame(2, b"nonsense")))
            network.server.heard(packet(network, call(host="h3"), port=2))
            network.server.heard(packet(network, call(host="h3"), port=200))
        first = [record.getMessage() for record in caplog.records]
        assert [line.split(": ")[1][:12] for line in first] == [
            "the UDP chec",
            "8 bytes that",
            "this is no p",
        ]
        counters = network.server.counters
        assert (counters.bad_checksum, counters.malformed, counters.forged, counters.foreign) == (100,) * 4
        await asyncio.sleep(5)  # a host that is not found by then is not about to be
        network.server.heard(packet(network, call(host="h3"), port=200))
        assert "port 200 of switch s1 is dropped (and 100 before it): no host" in caplog.messages[-1]
        await asyncio.sleep(600)
        network.server.heard(PuntedPacket(SWITCH, 2, bytes(damaged)))
        assert "dropped (and 99 before it): the UDP checksum" in caplog.messages[-1]
        assert len(caplog.messages) == 5

    run(main())


def test_a_port_that_is_no_hosts_gets_no_answer():
    async def main() -> None:
        handler = CountingHandler()
        network = Network(handler, FAIR)
        network.server.heard(packet(network, call(), port=100))
        network.server.heard(packet(network, More((bytes(16), 1), bytes(8), (0,)), port=100))
        await settle()
        assert network.server.counters.foreign == 2
        assert handler.calls == 0
        assert network.sent == []

    run(main())


def test_a_call_in_another_hosts_name_is_denied_and_the_handler_not_bothered():
    async def main() -> None:
        handler = CountingHandler()
        network = Network(handler, FAIR)
        answer = await network.transport(1).call(message(host="h2"))
        assert answer["error"]["kind"] == "denied"
        assert "no port of host 'h2'" in answer["error"]["text"]
        assert handler.calls == 0
        assert network.server.counters.forged == 1

    run(main())


def test_another_ports_answers_are_not_given_away():
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        network.server.heard(packet(network, call(size=5000)))
        await settle()
        first = decode(parse(network.sent.pop()).payload)
        assert isinstance(first, Part) and first.count == 5
        network.server.heard(packet(network, More(first.key, first.digest, (0, 1)), port=2))
        await settle()
        (answer,) = [decode(parse(sent).payload) for sent in network.sent]
        assert answer == Gone(first.key, first.digest)

    run(main())


@pytest.mark.parametrize(
    "datagram", [Gone((bytes(16), 1), bytes(8)), Part((bytes(16), 1), bytes(8), 1, 0, b"")]
)
def test_a_client_that_answers_is_passed_over(datagram):
    async def main() -> None:
        network = Network(CountingHandler(), FAIR)
        network.server.heard(packet(network, datagram))
        await settle()
        assert network.server.counters.malformed == 1
        assert network.sent == []

    run(main())


def test_a_call_of_another_version_is_answered_with_both_and_what_to_do():
    async def main() -> None:
        handler = CountingHandler()
        network = Network(handler, FAIR)
        for items in ([1, 0, message()], [3, 0, {"session": "?"}], [3, 9, b"something new"]):
            network.server.heard(PuntedPacket(SWITCH, 1, network.frame(1, msgpack.packb(items))))
        await settle()
        counters = network.server.counters
        assert (counters.other_version, counters.answered, counters.malformed) == (3, 1, 0)
        (part,) = [decode(parse(sent).payload) for sent in network.sent]
        assert isinstance(part, Part) and part.key == call_key(message())
        answer = unpack_answer(part.chunk)
        assert answer["error"]["kind"] == "bad"
        assert "the client speaks version 1" in answer["error"]["text"]
        assert "the controller version 2; install the same release" in answer["error"]["text"]
        assert handler.calls == 0

    run(main())


def test_a_controller_of_another_version_is_why_nobody_answers():
    class Newer:
        def send(self, datagram: bytes) -> None:
            self.hear(msgpack.packb([3, 7, "an answer that we cannot read"]))

        def listen(self, hear: Callable[[bytes], None]) -> None:
            self.hear = hear

        def close(self) -> None: ...

    async def main() -> None:
        wrong = "no answer in time; the client speaks version 2 .* and the controller version 3; install"
        with pytest.raises(ControlLost, match=wrong):
            await InbandTransport(Newer()).call(message(deadline=3))

    run(main())


# Bounds.


def test_beyond_so_many_calls_the_server_is_busy_and_says_so():
    async def main() -> None:
        handler = CountingHandler(seconds=5)
        network = Network(handler, FAIR, most_calls=3, most_of_a_host=2)
        for port, n in ((1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 6)):
            network.server.heard(packet(network, call(n=n, host=f"h{port}"), port))
        await settle()
        assert handler.calls == 3
        assert network.server.counters.busy == 3
        said = [decode(parse(sent).payload) for sent in network.sent]
        assert all(isinstance(part, Part) and b"busy" in part.chunk for part in said)
        assert [part.key[1] for part in said] == [3, 5, 6]
        await asyncio.sleep(5)
        network.server.heard(packet(network, call(n=7)))
        await settle()
        assert handler.calls == 4

    run(main())


def test_a_busy_server_is_asked_again_until_it_has_room():
    async def main() -> None:
        handler = CountingHandler(seconds=3)
        network = Network(handler, FAIR, most_of_a_host=1)
        transport = network.transport(1)
        answers = await asyncio.gather(*(transport.call(message(n, deadline=60)) for n in range(1, 6)))
        assert [answer["ok"]["n"] for answer in answers] == [1, 2, 3, 4, 5]
        assert set(handler.executed.values()) == {1}

    run(main())


def test_a_server_that_stays_busy_is_the_answer_at_the_deadline():
    async def main() -> None:
        network = Network(CountingHandler(seconds=100), FAIR, most_calls=1)
        transport = network.transport(1)
        first = asyncio.create_task(transport.call(message(1, deadline=200)))
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        answer = await transport.call(message(2, deadline=5))
        assert answer["error"]["kind"] == "busy"
        assert asyncio.get_running_loop().time() - began == pytest.approx(5)
        assert "ok" in await first

    run(main())


def test_what_waits_to_be_sent_is_bounded():
    async def main() -> None:
        never = asyncio.Event()

        async def send(switch: str, port: int, data: bytes) -> None:
            await never.wait()

        server = InbandServer(CountingHandler().call, send, lambda switch, port: f"h{port}")
        network = Network(CountingHandler(), FAIR)
        for n in range(1, 2001):
            server.heard(packet(network, call(n=n, host="h2")))
        await settle()
        assert server.counters.forged == 2000
        assert server._sending == 1024
        assert server.counters.unsent == 2000 - 1024
        await server.close()
        assert server._sending == 0

    run(main())


# Handlers and switches that fail.


class FailingHandler:
    def __init__(self, outcome: Exception | Mapping[str, Any]) -> None:
        self._outcome = outcome

    async def call(self, message: Mapping[str, Any], host: str | None) -> Mapping[str, Any]:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Refused("there is no room"), "there is no room"),
        (KeyError("a mistake of ours"), "has made a mistake"),
        ({"ok": {"x": {1, 2}}}, "no datagram can say"),
        ({"ok": {"x": bytes(5 << 20)}}, "ask the controller over HTTP"),
    ],
)
def test_a_handler_that_fails_is_an_answer_that_says_so(outcome, text):
    async def main() -> None:
        network = Network(FailingHandler(outcome), FAIR)
        answer = await network.transport(1).call(message())
        assert answer["error"]["kind"] == "failed"
        assert text in answer["error"]["text"]

    run(main())


def test_a_switch_that_cannot_send_is_counted():
    async def main() -> None:
        async def send(switch: str, port: int, data: bytes) -> None:
            raise SwitchError("it is not connected")

        server = InbandServer(CountingHandler().call, send, lambda switch, port: f"h{port}")
        server.heard(packet(Network(CountingHandler(), FAIR), call()))
        await settle()
        assert (server.counters.answered, server.counters.unsent) == (1, 1)

    run(main())


def test_after_it_was_closed_nothing_is_answered():
    async def main() -> None:
        handler = CountingHandler(seconds=5)
        network = Network(handler, FAIR)
        network.server.heard(packet(network, call(n=1)))
        await asyncio.sleep(1)
        await network.server.close()
        network.server.heard(packet(network, call(n=2)))
        await asyncio.sleep(10)
        assert handler.calls == 1
        assert network.sent == []

    run(main())


def test_an_ipv4_answer_seems_to_come_from_a_neighbour():
    draw = random.Random(1)
    for last in range(1, 255):
        address = bytes([10, draw.randrange(256), 0, last])
        near = beside(address)
        assert near != address
        assert near[:3] == address[:3]
        assert near[3] >> 2 == address[3] >> 2  # in the same network, be it as small as a /30
        assert near[3] not in (0, 255)
