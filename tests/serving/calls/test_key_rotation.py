"""Keys for events: derived, given to those who may have them, and changed while nothing is dropped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lossy import Network, Weather
from office import SCHEMA, SECONDS, Office, fresh, play
from office import SECRET as OFFICE

from flowsieve.client.control_session import ControlConnection
from flowsieve.control.memory.journal import (
    Entry,
    Keyed,
    NoJournal,
    Past,
    Snapshot,
    entry_from_json,
    entry_to_json,
)
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.requests.ledger import FIRST_STAGE, Ledger
from flowsieve.errors import JournalError
from flowsieve.protocol.event_keys import UNSIGNED, EventKeys
from flowsieve.protocol.event_mac import MacChecker, Signer, publisher_key
from flowsieve.protocol.event_message import EVENT_ITEMS, MessageKind, pack, start_covered
from flowsieve.protocol.welcome import Welcome
from flowsieve.serving.calls import handler as handler_module
from flowsieve.serving.calls.event_secret import EventSecret, believed_epochs, signing_epoch
from flowsieve.serving.calls.key_rotation import DRAIN_SECONDS, GRACE_LEASES, Clocks, KeyRotation

SECRET = EventSecret(b"of the controller")
LEASE, PERIOD = 10.0, 1000.0


# What is derived.


@given(st.integers(2, 10_000), st.sampled_from([0, 1]))
def test_sessions_of_stages_that_follow_each_other_believe_one_another(stage: int, further: int) -> None:
    """All that the order of going over to new keys rests on."""
    assert signing_epoch(stage + further) in believed_epochs(stage)
    assert signing_epoch(stage) in believed_epochs(stage + further)


def test_keys_of_two_epochs_ago_are_believed_no_more() -> None:
    stage = 2 * 7
    assert signing_epoch(stage - 2) not in believed_epochs(stage)


def signed(signer: Signer, publisher: bytes) -> bytes:
    covered = start_covered(MessageKind.EVENT, publisher) + b"\1\x90\x80"
    return pack(EVENT_ITEMS, bytes(16), 0, signer.epoch, signer.mac(covered), covered)


def test_a_publisher_can_sign_for_itself_alone() -> None:
    ann, bob = SECRET.publisher("ann", "0f" * 16), SECRET.publisher("bob", "0f" * 16)
    keys = SECRET.keys(6, ann, checks=False)
    assert keys.check == ()
    checker, signer = MacChecker(SECRET.keys(6, bob, checks=True).check), Signer(*keys.sign)
    assert checker.holds(signed(signer, ann))
    assert not checker.holds(signed(signer, bob))
    assert not MacChecker(EventSecret(b"of another").keys(6, bob, checks=True).check).holds(
        signed(signer, ann)
    )


def test_ids_are_a_sessions_own_and_always_the_same() -> None:
    names = [(host, session * 32) for host in ("ann", "bob") for session in "01"]
    ids = {SECRET.publisher(*name) for name in names}
    assert len(ids) == len(names)
    assert {EventSecret(b"of the controller").publisher(*name) for name in names} == ids
    assert SECRET.publisher("\ud800", "0" * 32) not in ids


def test_the_memory_of_a_checker_is_bounded_and_filled_by_signers_alone() -> None:
    epoch, key = 3, SECRET.epoch_key(3)
    checker = MacChecker([(epoch, key)], publishers=4)
    for n in range(10):
        publisher = n.to_bytes(8)
        assert not checker.holds(signed(Signer(epoch, bytes(16)), publisher))
        assert checker.holds(signed(Signer(epoch, publisher_key(key, publisher)), publisher))
    assert len(checker) == 4


# When.


class Holders:
    def __init__(self) -> None:
        self.stages: list[int | None] = []

    def behind(self, stage: int) -> bool:
        return any(each != stage for each in self.stages)


class Time:
    """Clocks that are set by hand."""

    def __init__(self, passing: float = 0.0, of_day: float = 1e9) -> None:
        self.passing, self.of_day = passing, of_day

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.passing, lambda: self.of_day)

    def go(self, seconds: float) -> None:
        self.passing += seconds
        self.of_day += seconds


class Written(NoJournal):
    """A journal that can be full."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.full = False

    async def append(self, entries: Sequence[Entry]) -> int:
        if self.full:
            raise JournalError("no room")
        self.entries += entries
        return 0


class Scene:
    """A rotation, the time, and the sessions that have keys."""

    def __init__(self, rotation: KeyRotation, ledger: Ledger, time: Time, journal: Written) -> None:
        self.rotation, self.ledger, self.time, self.journal = rotation, ledger, time, journal
        self.holders = Holders()

    async def after(self, seconds: float) -> int:
        """The stage after a while, looked at in the end and a little later."""
        self.time.go(seconds)
        for _ in range(3):
            await self.rotation.look(self.holders, LEASE)
            self.time.go(DRAIN_SECONDS)
        return self.rotation.stage


@asynccontextmanager
async def rotating(ledger: Ledger | None = None, time: Time | None = None) -> AsyncIterator[Scene]:
    ledger, time, journal = ledger or Ledger(), time or Time(), Written()
    scribe = Scribe(journal)
    running = asyncio.create_task(scribe.run())
    try:
        yield Scene(KeyRotation(SECRET, ledger, scribe, PERIOD, time.clocks), ledger, time, journal)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_new_keys_come_with_the_period_and_when_all_have_them_the_old_ones_go() -> None:
    async def story() -> None:
        async with rotating() as scene:
            assert await scene.after(LEASE) == FIRST_STAGE
            scene.holders.stages = [FIRST_STAGE, None]
            assert await scene.after(PERIOD) == FIRST_STAGE  # one has not said that it has keys
            scene.holders.stages = [FIRST_STAGE] * 2
            assert await scene.after(0) == FIRST_STAGE + 1
            assert await scene.after(LEASE) == FIRST_STAGE + 1  # nobody signs with the new key yet
            scene.holders.stages = [FIRST_STAGE + 1] * 2
            assert await scene.after(0) == FIRST_STAGE + 2
            scene.holders.stages = [FIRST_STAGE + 2] * 2
            assert await scene.after(LEASE) == FIRST_STAGE + 2  # and now for a period

    asyncio.run(story())


def test_new_keys_can_be_asked_for() -> None:
    async def story() -> None:
        async with rotating() as scene:
            await scene.after(LEASE)
            scene.rotation.rotate()
            assert await scene.after(0) >= FIRST_STAGE + 1
            assert await scene.after(LEASE) == FIRST_STAGE + 2
            assert await scene.after(LEASE) == FIRST_STAGE + 2

    asyncio.run(story())


def test_a_session_that_says_nothing_of_its_keys_holds_up_the_others_for_a_while_only() -> None:
    async def story() -> None:
        async with rotating() as scene:
            await scene.after(20 * LEASE)
            scene.rotation.rotate()
            scene.holders.stages = [None]
            assert await scene.after(0) == FIRST_STAGE
            assert await scene.after((GRACE_LEASES - 1) * LEASE) == FIRST_STAGE
            assert await scene.after(LEASE) == FIRST_STAGE + 1
            assert await scene.after((GRACE_LEASES - 1) * LEASE) == FIRST_STAGE + 1

    asyncio.run(story())


def test_a_stage_survives_a_restart_and_the_next_waits_for_those_who_have_not_said_anything_since() -> None:
    async def story() -> None:
        async with rotating() as scene:
            await scene.after(LEASE)
            scene.rotation.rotate()
            scene.holders.stages = [FIRST_STAGE]
            assert await scene.after(0) == FIRST_STAGE + 1
            entries, time = scene.journal.entries, scene.time
        for past in (Past(None, entries), Past(snapshot_of(entries), ())):
            ledger = ledger_of(past)
            async with rotating(ledger, time) as scene:
                scene.holders.stages = [None]
                assert await scene.after(LEASE) == FIRST_STAGE + 1
                ledger.promise(5 * LEASE)
                assert await scene.after(2 * GRACE_LEASES * LEASE) == FIRST_STAGE + 1  # it was promised more
                scene.holders.stages = [FIRST_STAGE + 1]
                assert await scene.after(0) == FIRST_STAGE + 2

    asyncio.run(story())


def test_the_period_goes_on_across_restarts_and_a_clock_set_back_does_not_stop_it() -> None:
    async def story() -> None:
        ledger, time = Ledger(), Time()
        for _ in range(3):
            async with rotating(ledger, time) as scene:
                stage = await scene.after(PERIOD * 0.6)
        assert stage == FIRST_STAGE + 1
        async with rotating(ledger, time) as scene:
            assert await scene.after(LEASE) == FIRST_STAGE + 2
            time.of_day = 5.0
            assert await scene.after(LEASE) >= FIRST_STAGE + 3

    asyncio.run(story())


def test_where_nothing_can_be_written_the_stage_stays(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with rotating() as scene:
            await scene.after(LEASE)
            scene.rotation.rotate()
            scene.journal.full = True
            with caplog.at_level(logging.ERROR), pytest.raises(JournalError):
                await scene.after(0)
            assert scene.rotation.stage == FIRST_STAGE
            scene.journal.full = False
            assert await scene.after(0) > FIRST_STAGE

    asyncio.run(story())


def ledger_of(past: Past) -> Ledger:
    return recover(past, partial(fresh, None))[1]


def snapshot_of(entries: Sequence[Entry]) -> Snapshot:
    return snapshot(*recover(Past(None, entries), partial(fresh, None)))


def test_what_is_written_of_keys_is_read() -> None:
    entry = Keyed(7, 1.5)
    assert entry_from_json(entry_to_json(entry), SCHEMA) == entry


# Who gets them.


def test_keys_come_with_the_welcome_and_those_to_check_with_when_they_are_asked_for(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client("ann")
        welcome = Welcome.parse(await ann.ok(1, "hello"))
        assert welcome == Welcome.parse(await ann.ok(1, "hello"))
        assert welcome.publisher == OFFICE.publisher("ann", ann.session)
        assert welcome.keys == OFFICE.keys(FIRST_STAGE, welcome.publisher, checks=False)
        assert "keys" not in await ann.ok(2, "adv", filter="live", stage=FIRST_STAGE)
        asked = await ann.ok(3, "renew", checks=True)
        assert EventKeys.parse(asked["keys"]) == OFFICE.keys(FIRST_STAGE, welcome.publisher, checks=True)
        assert "keys" not in await ann.ok(4, "renew", checks=True, stage=FIRST_STAGE)
        assert "keys" not in await ann.ask(5, "sub", checks=True)  # it is bad

    play(tmp_path, story, signed=True)


def test_keys_come_in_band_as_well_though_packets_are_lost(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        network = Network(office.handler, Weather(loss=0.2, double=0.2), hosts={1: "ann"})
        connection = ControlConnection(network.transport(1), "ann")
        welcome = Welcome.parse(await connection.ask("hello"))
        assert welcome.publisher is not None and welcome.keys is not None
        got: list[EventKeys] = []
        connection.rekey = lambda told, before: got.append(EventKeys.parse(told))
        connection.checks = True
        await connection.ask("sub", filter="live")
        assert got == [OFFICE.keys(FIRST_STAGE, welcome.publisher, checks=True)]
        connection.stage = FIRST_STAGE
        await connection.close()
        assert len(got) == 1

    play(tmp_path, story, signed=True)


def test_an_answer_that_is_told_again_has_the_keys_of_now(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client("ann")
        call = {"filter": "live", "checks": True, "stage": FIRST_STAGE - 1}
        first = await ann.ok(1, "sub", **call)
        office.dispatcher.ledger.keyed(FIRST_STAGE + 1, 1.0)
        second = await ann.ok(1, "sub", **call)
        assert [each.pop("keys")["stage"] for each in (first, second)] == [FIRST_STAGE, FIRST_STAGE + 1]
        assert first == second

    play(tmp_path, story, signed=True)


def test_who_has_said_what_keys_it_has_is_known_and_a_session_that_ended_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_module, "TICK_SECONDS", 0.01)

    async def story(office: Office) -> None:
        sessions = office.handler._sessions
        await office.client("ann").ok(1, "hello")
        assert sessions.behind(FIRST_STAGE)
        await office.client("ann").ok(2, "renew", stage=FIRST_STAGE)
        assert not sessions.behind(FIRST_STAGE)
        await office.client("bob", 2).ok(1, "hello")  # and nothing more
        assert sessions.behind(FIRST_STAGE)
        async with asyncio.timeout(SECONDS):
            while office.handler._sessions.find(office.client("bob", 2).session) is not None:
                await office.client("ann").ok(3, "renew", stage=FIRST_STAGE)
                await asyncio.sleep(0.05)
        assert not sessions.behind(FIRST_STAGE)

    play(tmp_path, story, signed=True, lease=0.5)


@pytest.mark.parametrize("now", [True, False])
def test_a_session_that_does_otherwise_than_the_controller_does_now_is_told_to_begin_anew(
    tmp_path: Path, now: bool
) -> None:
    async def story(office: Office) -> None:
        ann, stage = office.client("ann"), UNSIGNED if now else FIRST_STAGE
        kind, text = await ann.wrong(1, "renew", stage=stage)
        assert kind == "bad"
        assert "event_mac was changed; begin another session" in text
        await ann.ok(2, "bye", stage=stage)

    play(tmp_path, story, signed=now)
