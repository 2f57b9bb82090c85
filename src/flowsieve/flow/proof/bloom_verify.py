"""A proof, over all packets, that tables for labels that are Bloom filters bring each to all whom it is for.

For each switch and port it is worked out which of all packets are sent out of the port. Those that are for a filter
which is wanted behind it on the tree, and which somebody who is not behind it may publish, must be among them, once.
Each entry that sends must ask for the bits of a filter that is wanted there, or for just those that several of these
share: that is a merged entry. What is sent to a host must be readdressed as it takes events: a copy that is not counts
as not sent. Then each packet gets along the tree to all whom it is for, once, and nothing loops. It may get to others,
for whom it has the bits by chance; `false_positive_share` prices that.

What is counted, in the words of `flow.proof.verify`:
false_negatives: pairs of a publishing host and another for which there is an event that both an advertisement of the
    one and a filter of the other match, and a packet for this filter that gets stuck on its way on the tree.
duplicates: such pairs for which there is a packet of which two copies are sent somewhere on that way.
strays: ports of switches at which something is wrong: a packet for a filter that is wanted behind it is not sent, or
    one is sent twice, or an entry sends what is wanted by nobody there.
loops: switches that a packet comes to without end. It is sought where something strays: nothing else leaves the tree.
undecided: switches of which nobody can tell what they do to labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from flowsieve.content.filter import Filter
from flowsieve.errors import BadInput
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.label_view import Label
from flowsieve.flow.proof.bloom_sends import BloomTable, chain_of, unsent
from flowsieve.flow.proof.endless import endless
from flowsieve.flow.proof.label_passage import arriving, strangers
from flowsieve.flow.proof.label_passage import unsent as why_unsent
from flowsieve.flow.proof.verify import Verdict, Witness, named
from flowsieve.flow.tables.bloom_tables import PortTable
from flowsieve.header.address import address_text
from flowsieve.index.witness import EventValues, meet_anywhere

Port = tuple[str, int]
NOT_SENT = "does not send it to"


@dataclass(frozen=True, slots=True)
class _Fault:
    """What goes wrong at a port of a switch: what it does, to a packet with which bits, and whose filters it harms."""

    switch: str
    port: int
    what: str
    bits: int
    harmed: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Findings:
    unsent: list[_Fault] = field(default_factory=list)
    doubled: list[_Fault] = field(default_factory=list)
    strays: list[_Fault] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[_Fault]:
        return [*self.unsent, *self.doubled, *self.strays]


def verify_bloom(view: BloomView) -> Verdict:
    """Prove that tables send each packet to all whom it is for."""
    found = _Findings(undecided=list(strangers(view)))
    filters = _Filters.of(view)
    ports: dict[str, list[PortTable]] = {switch: [] for switch in view.topology.switches}
    for each in view.labelling.ports:
        ports[each.switch].append(each)
    arrive = arriving(view)
    for switch, some in ports.items():
        try:
            chain = list(chain_of(arrive.get(switch, ()), view.labelling.labels))
            _look_at(view, filters, switch, some, chain, found)
        except BadInput as error:
            found.undecided.append(f"{switch}: {error}")
    losses = list(_harmed(view, found.unsent))
    doubles = list(_harmed(view, found.doubled))
    looping = endless(view.topology, arrive, view.family, _all_bits(view)) if found.strays else set()
    witnesses: list[Iterable[Witness]] = [
        (_loss(view, *each) for each in losses),
        (_double(view, *each) for each in doubles),
        [_loop(view, looping)] if looping else [],
        (Witness(None, None, "stray", _told(view, each)) for each in found.all),
        (Witness(None, None, "undecided", why) for why in found.undecided),
    ]
    return Verdict(
        false_negatives=len(losses),
        duplicates=len(doubles),
        loops=len(looping),
        strays=len({(each.switch, each.port) for each in found.all}),
        undecided=tuple(found.undecided),
        witness=next((witness for some in witnesses for witness in some), None),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Filters:
    """Of each filter who may publish what matches it, and its bits."""

    publishers: Mapping[str, frozenset[str]]
    patterns: Mapping[str, int]

    @classmethod
    def of(cls, view: BloomView) -> _Filters:
        offers: dict[str, list[Filter]] = {}
        for each in view.advertisements:
            offers.setdefault(each.endpoint, []).extend(each.filters)
        return cls(
            {
                text: frozenset(
                    publisher
                    for publisher, some in offers.items()
                    if any(map(view.held[text].filter.overlaps, some))
                )
                for text in view.held
            },
            {text: view.labelling.labels.pattern(text) for text in view.held},
        )


def _look_at(
    view: BloomView,
    filters: _Filters,
    switch: str,
    ports: list[PortTable],
    chain: list[BloomTable],
    found: _Findings,
) -> None:
    """Compare what a switch does to all packets with what it should, port by port."""
    behind = {each.port.port: each.port.hosts for each in ports}
    sending = {port for table in chain for each in table.entries for port in each.flow.ports}
    for port in sorted(sending | behind.keys()):
        hosts = behind.get(port, frozenset())
        wanted = frozenset[str]().union(*(view.held.wanted.get(host, ()) for host in hosts))
        texts = frozenset(text for text in wanted if filters.publishers[text] - hosts)
        tables = [table for table in chain if table.sends(port)]
        whole = bool(tables) and all(not each.stops for each in chain[: chain.index(tables[0])])
        sent = tables[0].first_senders(port) if whole else frozenset()
        for text in sorted(texts):
            # Those for a filter have the bits of its covers as well; of others than are sent there this is not sure.
            patterns = {filters.patterns[each] for each in view.held.with_covers([text]) & texts}
            lost = None if _surely_sent(patterns, sent) else unsent(chain, port, reduce(or_, patterns))
            if lost is not None:
                found.unsent.append(_Fault(switch, port, NOT_SENT, lost, frozenset([text])))
        _look_for_doubles(switch, port, texts, tables, found)
        rightly = {filters.patterns[text] for text in wanted}
        for each in (each for table in tables for each in table.sends(port)):
            right = each.bits in rightly or each.bits in view.passing
            if not right and not _is_merged(each.bits, rightly):
                what = "sends it, though nobody there wants that, to"
                found.strays.append(_Fault(switch, port, what, each.bits))


def _is_merged(bits: int, patterns: Collection[int]) -> bool:
    """Whether an entry asks for what some patterns have in common, or for all bits of one and more."""
    shared = [pattern for pattern in patterns if not bits & ~pattern]
    return (bool(shared) and reduce(and_, shared) == bits) or any(not each & ~bits for each in patterns)


def _surely_sent(patterns: set[int], sent: frozenset[int]) -> bool:
    """Whether packets with the bits of some patterns are sent, if those are that have all bits of one of `sent`."""
    bits = reduce(or_, patterns)
    return not patterns.isdisjoint(sent) or any(not each & ~bits for each in sent)


def _look_for_doubles(
    switch: str, port: int, texts: frozenset[str], tables: list[BloomTable], found: _Findings
) -> None:
    """Packets that two tables send out of one port, or an entry twice."""
    once: list[int] = []
    for table in tables:
        for each in table.sends(port):
            twice = each.flow.ports.count(port) > 1
            if once or twice:
                bits = each.bits if twice else each.bits | once[0]
                found.doubled.append(_Fault(switch, port, "sends it twice to", bits, texts))
                return
        once += [each.bits for each in table.sends(port)]


def _harmed(view: BloomView, faults: list[_Fault]) -> Iterator[tuple[str, str, EventValues | None, _Fault]]:
    """The pairs of hosts that want to talk to each other and have a fault on their way, with an event."""
    if not faults:
        return
    at: dict[Port, list[_Fault]] = {}
    for fault in faults:
        at.setdefault((fault.switch, fault.port), []).append(fault)
    for publisher in sorted({each.endpoint for each in view.advertisements}):
        offers = [each.filters for each in view.advertisements if each.endpoint == publisher]
        for host, texts in view.held.wanted.items():
            if host == publisher:
                continue
            on_way = [fault for step in view.way(publisher, host) for fault in at.get(step, ())]
            events = (
                (event, fault)
                for fault in on_way
                for text in sorted(texts & fault.harmed)
                for offer in offers
                if (event := meet_anywhere(view.schema, [*offer, view.held[text].filter])) is not None
            )
            hit = next(events, None)
            if hit is not None:
                yield publisher, host, *hit


def _all_bits(view: BloomView) -> Label:
    """The packet that is sent the furthest."""
    return view.label((1 << view.labelling.labels.m) - 1)


# Witnesses.


def _loss(view: BloomView, publisher: str, host: str, event: EventValues | None, fault: _Fault) -> Witness:
    where = f"{host} wants it and does not get it; {_told(view, fault)}"
    return Witness(named(event), publisher, "false negative", where)


def _double(view: BloomView, publisher: str, host: str, event: EventValues | None, fault: _Fault) -> Witness:
    where = f"it gets to {host} more than once; {_told(view, fault)}"
    return Witness(named(event), publisher, "duplicate", where)


def _loop(view: BloomView, switches: set[str]) -> Witness:
    names = ", ".join(sorted(switches))
    return Witness(None, None, "loop", f"a packet with all bits goes round without end at {names}")


def _told(view: BloomView, fault: _Fault) -> str:
    """What a switch does to a packet at a port."""
    near = view.topology.neighbours(fault.switch)
    there = 1 <= fault.port <= len(near)
    far = near[fault.port - 1] if there else f"port {fault.port}, which is not there"
    source, destination = (address_text(view.family, address) for address in view.label(fault.bits))
    done = f"{fault.switch} {fault.what} {far}"
    if fault.what == NOT_SENT:
        done = why_unsent(view, fault.switch, fault.port, [view.label(fault.bits)]) or done
    return f"of a packet from {source} to {destination}, {done}"
