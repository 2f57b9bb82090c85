"""docs/protocol.md says the truth: its examples are decoded, encoded again, and say what it says they do."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from flowsieve.client.outbox import Outbox
from flowsieve.content.filter import Filter
from flowsieve.index.plan import KINDS as PLANS
from flowsieve.index.plan import plan_from_json, plan_to_json
from flowsieve.protocol import call_datagram, event_message, limits, notice
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT, EVENT_PORT, NOTICE_PORT
from flowsieve.protocol.answer import KINDS, answer_of, error_of, is_answer, kind_in, outcome
from flowsieve.protocol.call import OPS, REPORT, Call
from flowsieve.protocol.call_datagram import CallDatagram, Gone, More, Part, digest_of, unpack_answer
from flowsieve.protocol.event_keys import EventKeys
from flowsieve.protocol.event_mac import MacChecker, Signer, publisher_key
from flowsieve.protocol.filter_page import HeldVersion
from flowsieve.protocol.report import Report
from flowsieve.protocol.sampling import event_hash
from flowsieve.protocol.told_index import ToldIndex
from flowsieve.protocol.version import VERSION
from flowsieve.protocol.welcome import Welcome
from flowsieve.serving.calls.event_secret import believed_epochs, signing_epoch
from flowsieve.serving.http.app import CALLS, STATUS
from flowsieve.serving.telemetry.rows import Reporting, checked_rows

TEXT = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
BLOCKS = re.findall(r"^```(\w+) (\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
JSON = [(what, json.loads(body)) for language, what, body in BLOCKS if language == "json"]


def examples(wanted: str) -> list[Any]:
    return [body for what, body in JSON if what == wanted]


def meant(wanted: str) -> list[tuple[bytes, Any]]:
    """The bytes of each example of a kind, and what the block after it says of them."""
    found = []
    for (language, what, body), (_, follows, meaning) in pairwise(BLOCKS):
        if (language, what) == ("hex", wanted):
            assert follows == "meaning"
            found.append((bytes.fromhex(re.sub(r"#.*", "", body)), json.loads(meaning)))
    return found


WELCOME = Welcome.parse(outcome(examples("welcome")[0]))
(KEYS,) = [EventKeys.parse(each["ok"]["keys"]) for each in examples("answer") if "keys" in each.get("ok", {})]


def test_every_block_is_looked_at() -> None:
    assert {what for _, what, _ in BLOCKS} == {
        "call",
        "answer",
        "welcome",
        "plan",
        "datagram",
        "event",
        "meaning",
        "notice",
    }
    assert len(re.findall(r"^```", TEXT, re.MULTILINE)) == 2 * len(BLOCKS)


@pytest.mark.parametrize("message", examples("call"), ids=lambda message: message["op"])
def test_a_call_is_read_and_written_down_the_same(message: dict[str, Any]) -> None:
    assert Call.parse(message).to_json() == message


@pytest.mark.parametrize("answer", examples("answer"))
def test_an_answer_is_read_and_written_down_the_same(answer: dict[str, Any]) -> None:
    assert is_answer(answer)
    kind = kind_in(answer)
    if kind is not None:
        assert answer_of(error_of(kind, answer["error"]["text"])) == answer


def test_the_answer_to_another_version_is_ours() -> None:
    hello = examples("call")[0] | {"version": VERSION + 1}
    with pytest.raises(KINDS["bad"]) as found:
        Call.parse(hello)
    assert answer_of(found.value) in examples("answer")


def test_the_welcome_is_read_and_written_down_the_same() -> None:
    assert {"ok": WELCOME.to_json()} == examples("welcome")[0]


def test_the_keys_of_the_examples_belong_together() -> None:
    assert WELCOME.publisher is not None and WELCOME.keys is not None
    assert WELCOME.keys == replace(KEYS, check=())
    assert [epoch for epoch, _ in KEYS.check] == list(believed_epochs(KEYS.stage))
    epoch, key = KEYS.sign
    assert epoch == signing_epoch(KEYS.stage)
    assert key == publisher_key(dict(KEYS.check)[epoch], WELCOME.publisher)
    assert f"of epoch {epoch} is `{dict(KEYS.check)[epoch].hex()}`" in " ".join(TEXT.split())


def test_the_report_of_the_examples_is_read_and_tells_of_events_of_its_share() -> None:
    (call,) = [each for each in examples("call") if each["op"] == REPORT]
    report = Report.parse(call["report"])
    assert report.to_json() == call["report"]
    assert report.publisher == WELCOME.publisher and report.share == WELCOME.telemetry.share
    known = Reporting("h1", report.publisher)
    rows = checked_rows(report, call["session"], known, WELCOME.schema, {})
    assert not rows.aside
    (answer,) = [each["ok"] for each in examples("answer") if "taken" in each.get("ok", {})]
    assert answer == {"taken": len(rows), "telemetry": WELCOME.telemetry.to_json()}
    assert f"h is `{event_hash(report.publisher, 1):08x}`" in TEXT
    assert {row[0] for row in rows_of_reports()} == set(call["report"])


def rows_of_reports() -> list[list[str]]:
    return [
        [name, *rest] for cell, *rest in rows("report | type") for name in cell.replace("`", "").split(", ")
    ]


@pytest.mark.parametrize("example", examples("plan"), ids=lambda example: example["plan"]["kind"])
def test_a_plan_gives_the_event_its_dz(example: dict[str, Any]) -> None:
    plan = plan_from_json(example["plan"], WELCOME.schema)
    assert plan_to_json(plan) == example["plan"]
    assert [str(dz) for dz in plan.encode(example["event"])] == example["dz"]


def test_an_index_that_is_told_is_read_and_written_down_the_same() -> None:
    (index,) = [each["ok"]["index"] for each in examples("answer") if "index" in each.get("ok", {})]
    assert ToldIndex.parse(index, WELCOME.schema).to_json() == index


def test_a_notice_says_what_it_is_said_to() -> None:
    ((data, meaning),) = meant("notice")
    assert meaning == {"index": notice.decode(data).version}
    assert notice.encode(notice.decode(data)) == data


def test_every_kind_of_plan_has_an_example() -> None:
    assert {example["plan"]["kind"] for example in examples("plan")} == set(PLANS)


@pytest.mark.parametrize(("data", "meaning"), meant("datagram"))
def test_a_datagram_in_band_says_what_it_is_said_to(data: bytes, meaning: dict[str, Any]) -> None:
    datagram = call_datagram.decode(data)
    assert not isinstance(datagram, call_datagram.Unreadable)
    assert call_datagram.encode(datagram) == data
    said: dict[str, Any] = {"session": datagram.key[0].hex(), "n": datagram.key[1]}
    match datagram:
        case CallDatagram(_, message):
            said["message"] = message
            assert message in examples("call")
        case Part(_, digest, count, index, chunk):
            said |= {"digest": digest.hex(), "count": count, "index": index, "answer": unpack_answer(chunk)}
            assert digest_of(chunk) == digest
            assert unpack_answer(chunk) in examples("answer")
        case More(_, digest, indices):
            said |= {"digest": digest.hex(), "indices": list(indices)}
        case Gone(_, digest):
            said["digest"] = digest.hex()
    assert said == meaning


def test_every_kind_of_datagram_has_an_example() -> None:
    kinds = {type(call_datagram.decode(data)) for data, _ in meant("datagram")}
    assert kinds == {CallDatagram, Part, More, Gone}


@pytest.mark.parametrize(("data", "meaning"), meant("event"))
def test_an_event_says_what_it_is_said_to(data: bytes, meaning: dict[str, Any]) -> None:
    message = event_message.decode(data)
    assert event_message.encode(message) == data
    assert meaning == {
        "kind": message.kind.name.lower(),
        "publisher": message.publisher.hex(),
        "seq": message.seq,
        "destination": str(ipaddress.ip_address(message.destination)),
        "dz": str(message.dz(WELCOME.encoding)),
        "stamps": list(message.stamps),
        "values": message.values,
        "data": message.data.decode(),
        "epoch": message.epoch,
        "mac": message.mac.hex(),
    }
    assert MacChecker(KEYS.check).holds(data)


def test_a_publisher_sends_the_events_and_the_digest_that_are_shown() -> None:
    first, second, digest = meant("event")
    assert WELCOME.publisher is not None and WELCOME.keys is not None
    outbox = Outbox(WELCOME.plan, WELCOME.encoding, WELCOME.publisher, Signer(*WELCOME.keys.sign))
    outbox.advertised["all"] = Filter.parse("True", WELCOME.schema)
    for data, meaning in (first, second):
        (sent,) = outbox.event(meaning["values"], meaning["data"].encode())
        assert sent.payload == data
        assert str(ipaddress.ip_address(sent.destination)) == meaning["destination"]
    outbox.event({"price": 20, "side": "sell"})
    assert digest[0] in [each.payload for each in outbox.digests()]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with a heading."""
    table = TEXT[TEXT.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in table]


def test_the_limits_are_those_of_the_code() -> None:
    assert len(rows("limit")) >= 10
    for name, value, _ in rows("limit"):
        assert int(value.replace(",", "")) == getattr(limits, name)


def test_the_kinds_of_errors_are_those_of_the_code() -> None:
    assert {kind: int(status) for kind, status, _ in rows("kind | HTTP status")} == STATUS
    assert STATUS.keys() == KINDS.keys()


def test_the_ops_are_those_of_the_code() -> None:
    assert {op for row in rows("op") for op in row[0].replace("`", "").split(", ")} == set(OPS)


def test_the_fields_of_a_call_are_those_of_the_code() -> None:
    hello, other = (
        Call("0f" * 16, 1, "h", "t", op, "i", "f", 1, 1.0, {}, 1, True, HeldVersion("e", 1), 1, {}).to_json()
        for op in ("hello", "bye")
    )
    assert {row[0] for row in rows("field")} == hello.keys() | other.keys()


def test_addresses_and_ports_are_those_of_the_code() -> None:
    for prefix in CONTROL_ADDRESSES.values():
        assert f"`{str(prefix).partition('/')[0]}`" in TEXT
    for said in (
        f"port {CONTROL_PORT}",
        f"port {EVENT_PORT}",
        f"port {NOTICE_PORT}",
        f"`POST {CALLS}`",
        f"This is version {VERSION}.",
    ):
        assert said in " ".join(TEXT.split())
