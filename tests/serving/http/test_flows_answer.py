"""Tables as JSON, for many who ask for them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from office import Office, play

from flowsieve.errors import BadTopology
from flowsieve.scenario.plain import plain_flows
from flowsieve.serving.http import flows_answer
from flowsieve.serving.http.flows_answer import FlowsAnswer


async def filled(office: Office) -> None:
    await office.client("ann").ok(1, "hello")
    await office.client("ann").ok(2, "adv", filter="True")
    await office.client("cy", 2).ok(1, "hello")
    await office.client("cy", 2).ok(2, "sub", filter="price < 100")


def test_the_answer_is_what_the_switches_hold(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await filled(office)
        answer, topology = FlowsAnswer(office.dispatcher), office.dispatcher.state.topology
        tables = {switch: office.network.read(switch) for switch in topology.switches}
        assert json.loads(await answer.of()) == plain_flows(topology, tables)
        assert json.loads(await answer.of("s2")) == plain_flows(topology, {"s2": tables["s2"]})
        office.fabric.disconnect("s2")
        assert json.loads(await answer.of("s2")) == []
        with pytest.raises(BadTopology, match="s9"):
            await answer.of("s9")

    play(tmp_path, story)


def test_it_is_made_once_for_all_who_ask_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    async def story(office: Office) -> None:
        await filled(office)
        plain_flow = flows_answer.plain_flow
        monkeypatch.setattr(flows_answer, "plain_flow", lambda *args: made.append(args) or plain_flow(*args))
        answer = FlowsAnswer(office.dispatcher)
        bodies = await asyncio.gather(*(answer.of() for _ in range(100)))
        assert all(body is bodies[0] for body in bodies)
        assert len(made) == len(json.loads(bodies[0])) > 0

    play(tmp_path, story)


def test_answers_leave_at_a_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        await filled(office)
        answer, now = FlowsAnswer(office.dispatcher), asyncio.get_running_loop().time
        size = len(await answer.of())
        monkeypatch.setattr(flows_answer, "BYTES_PER_SECOND", size / 0.02)
        begin = now()
        await asyncio.gather(*(answer.of() for _ in range(11)))
        assert now() - begin >= 10 * 0.02

    play(tmp_path, story)
