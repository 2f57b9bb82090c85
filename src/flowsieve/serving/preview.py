"""What a controller would find and do if it started now, without starting it."""

from __future__ import annotations

from collections import Counter
from functools import partial

from flowsieve.control.memory.recovery import last_found, recover
from flowsieve.control.memory.sqlite_journal import look
from flowsieve.control.switches.belief import Belief
from flowsieve.flow.diff import changes_between
from flowsieve.flow.guard import guard_of
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.network.topology import Topology
from flowsieve.serving.config import Config
from flowsieve.serving.site.site import Site, described
from flowsieve.southbound.numbered import NumberedSwitches

CONNECT_SECONDS = 10.0


async def would_change(config: Config, site: Site) -> dict[str, dict[str, int]]:
    """What a controller would change in each switch if it started now; nothing is changed."""
    past = look(site.folder / "journal.db", config.index.plan.schema, config.base(site.topology))
    state, _ = recover(past, partial(config.fresh, site.topology))
    if state.found:
        state.grow(described(state.topology, site.topology))
    encoding = config.index.encoding
    rewritten = deliveries_of(state.topology, encoding.family)
    guarding = config.guarding(partial(site.sources, family=encoding.family))
    found: dict[str, dict[str, int]] = {}
    async with site.fabric(lambda event: None) as fabric:
        await fabric.wait_connected(CONNECT_SECONDS)
        counted = NumberedSwitches(fabric, lambda: state.topology)
        for switch in state.topology.switches:
            belief = Belief(encoding, rewritten.get(switch))
            there, strange = await fabric.look(switch)
            strays = belief.read(counted.told(switch, there))
            _, ops = belief.steps(changes_between(belief.held, state.table(switch)), None, ())
            kinds = Counter(op.kind.name.lower() for op in [*strays, *ops])
            guard = guard_of(
                state.topology, switch, encoding, state.advertised_at(switch), guarding(state.topology)
            )
            made, gone = await fabric.look_guard(switch, counted.guard_there(switch, guard))
            kinds["install"] += made
            kinds["remove"] += strange + gone
            if +kinds:
                found[switch] = dict(+kinds)
    return found


def known_topology(config: Config, site: Site) -> Topology:
    """The network as far as it is known without asking any switch: as described, or as it was found before."""
    if not config.finds:
        return site.topology
    past = look(site.folder / "journal.db", config.index.plan.schema, config.base(site.topology))
    found = last_found(past)
    return described(found, site.topology) if found is not None else site.topology
