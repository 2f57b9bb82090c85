"""What a controller tells a client that says hello: all that it takes to speak with the other hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadMessage
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import Encoding, PrefixEncoding
from flowsieve.header.tag import LABEL_HEADERS, POOLS, Tag
from flowsieve.index.plan import IndexPlan, plan_from_json, plan_to_json
from flowsieve.protocol.event_keys import EventKeys
from flowsieve.protocol.limits import LONGEST_LEASE, LONGEST_NAME, PUBLISHER_BYTES
from flowsieve.protocol.report import NO_TELEMETRY, TelemetryTerms
from flowsieve.protocol.told_index import FIRST_INDEX, index_version
from flowsieve.protocol.version import FIRST_VERSION, VERSION, check_version


@dataclass(frozen=True, slots=True)
class Welcome:
    """The content space, the index, the tag in force, and where events for the host come in.

    `address` is the host's own group; `interface` the one that events come and go by, None for the only one.
    What the client asks for ends when the client has been silent for `lease` seconds. `publisher` is the id that it
    publishes under, and `keys` what it signs with; both None where events are not signed. The `tag` is that of what it
    publishes; where that names receivers and events of others go by dz, these have the `dz_tag`. `network` tells this
    network from others, however the controller is reached; empty where it has no name. `receiver` is the number that
    publishers know the host by, where digests name their receivers. `index` is the version of the index: of the plan,
    and of the tag of dz. `telemetry` says what is reported of events.
    """

    host: str
    plan: IndexPlan
    tag: Tag
    address: str
    interface: str | None = None
    lease: float = 30.0
    publisher: bytes | None = None
    keys: EventKeys | None = None
    dz_tag: Tag | None = None
    network: str = ""
    receiver: int | None = None
    index: int = FIRST_INDEX
    telemetry: TelemetryTerms = NO_TELEMETRY

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    @property
    def encoding(self) -> Encoding:
        """How dz stand in packets."""
        return PrefixEncoding(self.dz_tag or self.tag)

    @property
    def labelled(self) -> bool:
        """Whether what it publishes says for whom it is, and it has to match events: the tag tells."""
        return any(self.tag in POOLS[header] for header in LABEL_HEADERS)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "host": self.host,
            "schema": self.schema.to_json(),
            "plan": plan_to_json(self.plan),
            "tag": str(self.tag.group),
            **({} if self.dz_tag is None else {"dz_tag": str(self.dz_tag.group)}),
            "address": self.address,
            "interface": self.interface,
            "lease": self.lease,
            "publisher": self.publisher.hex() if self.publisher is not None else None,
            "keys": self.keys.to_json() if self.keys is not None else None,
            "network": self.network,
            "receiver": self.receiver,
            "index": self.index,
            "telemetry": self.telemetry.to_json(),
        }

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Welcome:
        """What `to_json` wrote down; OtherVersion if a controller of another version did."""
        check_version(controller=data.get("version", FIRST_VERSION))
        try:
            schema = Schema.parse(data["schema"])
            tag = Tag(Prefix.parse(data["tag"]))
            plan = plan_from_json(data["plan"], schema, PrefixEncoding(tag).room)
            lease = float(data["lease"])
            if not 0 < lease <= LONGEST_LEASE:
                raise BadInput(f"a lease of {lease} seconds; right is up to {LONGEST_LEASE:g}")
            publisher, keys = _identity(data)
            other = data.get("dz_tag")
            dz_tag = None if other is None else Tag(Prefix.parse(other))
            network, receiver = str(data.get("network", ""))[:LONGEST_NAME], data.get("receiver")
            if receiver is not None and (type(receiver) is not int or receiver < 0):
                raise BadInput("a receiver that is no number")
            where = data["address"], data["interface"]
            index = index_version(data.get("index", FIRST_INDEX))
            told = cls(data["host"], plan, tag, *where, lease, publisher, keys, dz_tag, network, receiver)
            return replace(told, index=index, telemetry=TelemetryTerms.parse(data.get("telemetry")))
        except (KeyError, TypeError, ValueError, BadInput) as error:
            raise BadMessage(f"the controller's welcome cannot be read: {error}") from None


def _identity(data: Mapping[str, Any]) -> tuple[bytes | None, EventKeys | None]:
    """The id to publish under, and the keys for it; neither or both."""
    if data["keys"] is None:
        return None, None
    publisher = bytes.fromhex(data["publisher"])
    if len(publisher) != PUBLISHER_BYTES:
        raise BadInput(f"a publisher's id of {len(publisher)} bytes; right are {PUBLISHER_BYTES}")
    return publisher, EventKeys.parse(data["keys"])
