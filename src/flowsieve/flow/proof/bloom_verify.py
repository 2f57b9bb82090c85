"""A proof, over all packets, that tables for labels that are Bloom filters bring each to all whom it is for.

For each switch and port it is worked out which of all packets are sent out of the port. Those that are for a filter
which is wanted behind it on the tree must be among them, once; and each entry that sends must ask for the bits of such
a filter. What is sent to a host must be readdressed as it takes events: a copy that is not counts as not sent. Then
each packet gets along the tree to all whom it is for, once, and nothing loops. It may get to others, for whom it has
the bits by chance; `false_positive_share` prices that.

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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from flowsieve.errors import BadInput
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.label_view import Label
from flowsieve.flow.proof.bloom_sends import BloomTable, chain_of
from flowsieve.flow.proof.endless import endless
from flowsieve.flow.proof.label_passage import arriving, strangers, unsent
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
    ports: dict[str, list[PortTable]] = {switch: [] for switch in view.topology.switches}
    for each in view.labelling.ports:
        ports[each.switch].append(each)
    arrive = arriving(view)
    for switch, some in ports.items():
        try:
            chain = list(chain_of(arrive.get(switch, ()), view.labelling.labels))
        except BadInput as error:
            found.undecided.append(f"{switch}: {error}")
            continue
        _look_at(view, switch, some, chain, found)
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


def _look_at(
    view: BloomView, switch: str, ports: list[PortTable], chain: list[BloomTable], found: _Findings
) -> None:
    """Compare what a switch does to all packets with what it should, port by port."""
    behind = {each.port.port: each.port.hosts for each in ports}
    sending = {port for table in chain for each in table.entries for port in each.flow.ports}
    for port in sorted(sending | behind.keys()):
        hosts = behind.get(port, frozenset())
        texts = frozenset[str]().union(*(view.held.wanted.get(host, ()) for host in hosts))
        tables = [table for table in chain if table.sends(port)]
        whole = bool(tables) and all(not each.stops for each in chain[: chain.index(tables[0])])
        for text in sorted(texts):
            lost = _lost(view, port, text, texts, tables[0] if whole else None)
            # Where tables send twice, a later one may send it after all.
            if lost is not None and unsent(view, switch, port, [view.label(lost)]) is not None:
                found.unsent.append(_Fault(switch, port, NOT_SENT, lost, frozenset([text])))
        _look_for_doubles(switch, port, texts, tables, found)
        rightly = {view.labelling.labels.pattern(text) for text in texts}
        for each in (each for table in tables for each in table.sends(port)):
            if each.bits not in rightly and not any(not bits & ~each.bits for bits in rightly):
                what = "sends it, though nobody there wants that, to"
                found.strays.append(_Fault(switch, port, what, each.bits))


def _lost(
    view: BloomView, port: int, text: str, texts: frozenset[str], table: BloomTable | None
) -> int | None:
    """The bits of a packet for a filter that a table does not send out of a port, if there is one; None for the table
    means that packets do not come to it.

    Those for a filter have the bits of its covers as well; of others than the `texts`, which are wanted behind the
    port, this is not sure.
    """
    labels = view.labelling.labels
    patterns = {labels.pattern(each) for each in view.held.with_covers([text]) & texts}
    bits = labels.bits_of(patterns)
    if table is None:
        return bits
    return None if table.surely_sends(port, patterns) else table.unsent(port, bits)


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
                if (event := meet_anywhere(view.schema, [*offer, view.held.filters[text]])) is not None
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
        done = unsent(view, fault.switch, fault.port, [view.label(fault.bits)]) or done
    return f"of a packet from {source} to {destination}, {done}"
