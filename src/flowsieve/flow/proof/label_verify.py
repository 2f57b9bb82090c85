"""A proof, over all sets of receivers, that tables for labels deliver to these and to nobody else.

For each switch, port and set of hosts it is worked out which of all labels are sent out of the port. That has to be
exactly those that name a host behind the port on the tree of the set, and what is sent to a host must be readdressed as
it takes events: a copy that is not counts as not sent. Then every receiver gets its copy along the tree, once, and
nothing loops: what the design says of trees does the rest, and publishers name exactly who wants an event.

What is counted, in the words of `flow.proof.verify`:
false_negatives: pairs of a publishing host and another for which there is an event that both an advertisement of the
    one and a subscription of the other match, and a set of receivers with which it gets stuck on its way on the tree.
duplicates: such pairs for which there is a set of receivers with which two copies are sent somewhere on that way.
strays: ports of switches out of which not exactly those labels are sent, once, that name somebody behind them; whether
    or not somebody wants to be sent something there now. Ports of publishers that take in labels that these may not
    send.
loops: switches that a label comes to without end. It is sought among those that are sent where nobody is whom they
    name: no others leave the tree.
undecided: switches of which nobody can tell what they do to labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from flowsieve.errors import BadInput
from flowsieve.flow.entry import Flow
from flowsieve.flow.label_view import Label, LabelView
from flowsieve.flow.proof.cubes import Cube, TooManyCubes
from flowsieve.flow.proof.endless import endless
from flowsieve.flow.proof.label_gates import dropped, let_in
from flowsieve.flow.proof.label_passage import arriving, strangers, unsent
from flowsieve.flow.proof.label_sends import PortSends, by_set, cube_of, sends_of
from flowsieve.flow.proof.verify import Verdict, Witness, named
from flowsieve.flow.tables.receiver_tables import set_ports
from flowsieve.header.address import WIDTH, address_text
from flowsieve.index.witness import EventValues, meet_anywhere

MOST_STRAYS_FOLLOWED = 64
MOST_NAMED = 5
Port = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Fault:
    """What goes wrong at a port of a switch: labels that are not sent, are sent twice, or stray; and one of them."""

    switch: str
    port: int
    labels: Cube
    label: int


@dataclass(frozen=True, slots=True)
class _Harmed:
    """A pair of hosts, an event between them, and a label with which it fails at a port."""

    publisher: str
    host: str
    event: EventValues | None
    fault: _Fault
    label: int


@dataclass(slots=True)
class _Findings:
    """All that is wrong with tables, port by port, and the switches of which nobody can tell."""

    unsent: list[_Fault] = field(default_factory=list)
    doubled: list[_Fault] = field(default_factory=list)
    strays: list[_Fault] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    @property
    def ports(self) -> set[Port]:
        """The ports at which something is wrong."""
        return {(each.switch, each.port) for each in (*self.unsent, *self.doubled, *self.strays)}


def verify_labels(view: LabelView) -> Verdict:
    """Prove that tables for labels send each label to exactly those whom it names."""
    found = _Findings(undecided=list(strangers(view)))
    tables = arriving(view)
    behind = _masks_behind(view)
    for switch in view.topology.switches:
        _look_at(view, switch, tables.get(switch, ()), behind[switch], found)
    losses, doubles = list(_harmed(view, found.unsent)), list(_harmed(view, found.doubled))
    shut = [pair for pair in dropped(view) if _between(view, *pair) is not None]
    leaks = dict(let_in(view))
    looping, loop = _loops(view, tables, found.strays)
    worst: list[Iterable[Witness]] = [
        (_loss(view, each) for each in losses),
        (_shut(view, *each) for each in shut),
        (_double(view, each) for each in doubles),
        loop,
        (_stray(view, each) for each in found.strays),
        (_leak(*each) for each in leaks.items()),
        # What harms no pair of hosts that talk to each other now would harm the next.
        (_latent(view, each, _unsent(view, each, each.label)) for each in found.unsent),
        (_latent(view, each, _done(view, each, "sends it twice to")) for each in found.doubled),
        (Witness(None, None, "undecided", why) for why in found.undecided),
    ]
    return Verdict(
        false_negatives=len(losses) + len(shut),
        duplicates=len(doubles),
        loops=len(looping),
        strays=len(found.ports) + len(leaks),
        undecided=tuple(found.undecided),
        witness=next((witness for some in worst for witness in some), None),
    )


def _masks_behind(view: LabelView) -> dict[str, dict[int, dict[int, int]]]:
    """For each switch and set, the bits of the hosts behind each port on the tree of the set."""
    found: dict[str, dict[int, dict[int, int]]] = {switch: {} for switch in view.topology.switches}
    for _, on_tree in set_ports(view.topology, view.trees, view.labels):
        for switch, ports in on_tree.items():
            for each in ports:
                for number, mask in view.labels.masks(each.hosts).items():
                    found[switch].setdefault(number, {})[each.port] = mask
    return found


def _look_at(
    view: LabelView,
    switch: str,
    table: Iterable[Flow],
    behind: Mapping[int, Mapping[int, int]],
    found: _Findings,
) -> None:
    """Compare what a switch does to all labels with what it should, set by set; numbers that no set has name nobody."""
    flows = by_set(view.labels, table)
    for number, some in enumerate(flows):
        group = view.labels.group(number)
        whole = cube_of(group)
        try:
            sends = sends_of(some, group)
        except (BadInput, TooManyCubes) as error:
            found.undecided.append(f"{switch}: {str(error) or 'labels fare in too many ways to follow'}")
            return
        expected = behind.get(number, {})
        for port in sorted(sends.keys() | expected.keys()):
            mask, done = expected.get(port, 0), sends.get(port) or PortSends([whole])
            missed = [(cube, label) for cube in done.unsent if (label := cube.with_some(mask)) is not None]
            astray = [cube for region in done.sent for cube in region if not cube.value & mask]
            found.unsent += [_Fault(switch, port, cube, label) for cube, label in missed]
            found.doubled += [_Fault(switch, port, cube, cube.value) for cube in done.doubled(whole)]
            found.strays += [_Fault(switch, port, cube, cube.value) for cube in astray[:1]]


def _harmed(view: LabelView, faults: list[_Fault]) -> Iterator[_Harmed]:
    """The pairs of hosts that want to talk to each other and have a fault on their way."""
    if not faults:
        return
    at: dict[Port, list[_Fault]] = {}
    for fault in faults:
        at.setdefault((fault.switch, fault.port), []).append(fault)
    for publisher in sorted({each.endpoint for each in view.advertisements}):
        for host in sorted({each.endpoint for each in view.subscriptions} - {publisher}):
            if not view.may_send(publisher, host):
                continue  # what it sends there is dropped at its own port, and owed to nobody
            place = view.labels.place(host)
            own = cube_of(view.labels.group(place.set))
            (bit,) = view.labels.masks([host]).values()
            on_way = (fault for step in view.way(publisher, host) for fault in at.get(step, ()))
            hit = next(
                (
                    (fault, label)
                    for fault in on_way
                    if (both := fault.labels.meet(own)) is not None
                    and (label := both.with_some(bit)) is not None
                ),
                None,
            )
            if hit is not None and (event := _between(view, publisher, host)) is not None:
                yield _Harmed(publisher, host, event, *hit)


def _between(view: LabelView, publisher: str, host: str) -> EventValues | None:
    """An event that one host may publish and another wants, if there is one."""
    offers = [each.filters for each in view.advertisements if each.endpoint == publisher]
    wants = [each.filters for each in view.subscriptions if each.endpoint == host]
    events = (meet_anywhere(view.schema, [*offer, *want]) for offer in offers for want in wants)
    return next((event for event in events if event is not None), None)


def _loops(
    view: LabelView, tables: Mapping[str, tuple[Flow, ...]], strays: list[_Fault]
) -> tuple[set[str], list[Witness]]:
    """The switches that labels which stray come to without end, and one such label."""
    looping: set[str] = set()
    found: list[Witness] = []
    family = view.labels.family
    for fault in strays[:MOST_STRAYS_FOLLOWED]:
        # With all bits that are free, since a switch sends a label the further the more it names.
        label = fault.labels.value | ((1 << WIDTH[family]) - 1) & ~fault.labels.mask
        switches = endless(view.topology, tables, family, Label(0, label))
        if switches and not found:
            names = ", ".join(sorted(switches))
            text = f"a packet to {address_text(family, label)} goes round without end at {names}"
            found.append(Witness(None, None, "loop", text))
        looping |= switches
    return looping, found


# Witnesses.


def _loss(view: LabelView, harmed: _Harmed) -> Witness:
    lost = f"{harmed.host} wants it and does not get it"
    where = f"{lost}; sent to {_shown(view, harmed.label)}, {_unsent(view, harmed.fault, harmed.label)}"
    return Witness(named(harmed.event), harmed.publisher, "false negative", where)


def _shut(view: LabelView, publisher: str, host: str) -> Witness:
    where = (
        f"{host} wants it and does not get it; the port of {publisher} does not take in labels that name it"
    )
    return Witness(named(_between(view, publisher, host)), publisher, "false negative", where)


def _leak(publisher: str, host: str) -> Witness:
    where = f"the port of {publisher} takes in labels that name {host}, which it may not address"
    return Witness(None, publisher, "stray", where)


def _double(view: LabelView, harmed: _Harmed) -> Witness:
    twice = f"it gets to {harmed.host} more than once"
    where = f"sent to {_shown(view, harmed.label)} {twice}: {_done(view, harmed.fault, 'sends it twice to')}"
    return Witness(named(harmed.event), harmed.publisher, "duplicate", where)


def _stray(view: LabelView, fault: _Fault) -> Witness:
    what = f"{_done(view, fault, 'sends it to')}, where nobody is whom it names"
    return Witness(None, None, "stray", f"of a packet to {_shown(view, fault.label)}, {what}")


def _latent(view: LabelView, fault: _Fault, what: str) -> Witness:
    return Witness(None, None, "stray", f"of a packet to {_shown(view, fault.label)}, {what}")


def _shown(view: LabelView, label: int) -> str:
    """A label, and whom it names."""
    names = view.labels.receivers(label)
    few = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    return f"{address_text(view.labels.family, label)} ({f'for {few}' if names else 'for nobody'})"


def _unsent(view: LabelView, fault: _Fault, label: int) -> str:
    """Why a label does not get through a port that it is to leave by."""
    why = unsent(view, fault.switch, fault.port, [Label(0, label)])
    assert why is not None, f"{fault} names a label that is sent"
    return why


def _done(view: LabelView, fault: _Fault, what: str) -> str:
    """What a switch does with a label at a port."""
    near = view.topology.neighbours(fault.switch)
    there = 1 <= fault.port <= len(near)
    far = near[fault.port - 1] if there else f"port {fault.port}, which is not there"
    return f"{fault.switch} {what} {far}"
