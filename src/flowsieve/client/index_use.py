"""The index that a session uses, and what its subscriptions are owed under it; answers come late, and in any order."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadMessage
from flowsieve.index.dzset import DzSet
from flowsieve.protocol.told_index import FIRST_INDEX, ToldIndex, is_of_schema, told_cells
from flowsieve.protocol.welcome import Welcome

log = logging.getLogger(__name__)


class IndexUse:
    """What is known of the index of now; `owed` are the dz of subscriptions, by the controller's ids."""

    def __init__(self, welcome: Welcome) -> None:
        self.version = welcome.index
        self._schema: Schema = welcome.schema
        self._family = welcome.encoding.family
        self._owed: dict[str, DzSet] = {}
        self._foreign = False  # there is an index for events of another schema

    def owed(self, id: str) -> DzSet | None:
        """What the network owes a subscription under the index of now; None where that is not known."""
        return self._owed.get(id)

    def subscribed(self, id: str, answer: Mapping[str, Any]) -> None:
        """A subscription was answered. Its dz may be of an index that we have left; then we were told others."""
        try:
            dz = told_cells(answer["dz"])
        except (KeyError, ValueError, BadInput) as error:
            raise BadMessage(f"the controller's answer to a subscription has no dz: {error!r}") from None
        if answer.get("dz_index", FIRST_INDEX) == self.version:
            self._owed[id] = dz

    def ended(self, id: str) -> None:
        """A subscription is no more."""
        self._owed.pop(id, None)

    def take(self, told: object, said: int) -> ToldIndex | None:
        """Go over to the index of an answer, to a call that said which one we used; None if there is no reason to.

        An older one is of an answer that came late, unless we still use what the call said: then the controller has
        forgotten the newer one.
        """
        if not is_of_schema(told, self._schema):
            if not self._foreign:
                log.warning("the controller has gone over to events of another schema; this client has not")
            self._foreign = True
            return None
        index = ToldIndex.parse(told, self._schema)
        if index.tag.group.family != self._family:
            raise BadMessage(
                f"the controller's index has the tag {index.tag.group}, of another kind of address"
            )
        if index.version == self.version or (index.version < self.version and said != self.version):
            return None
        self.version, self._owed = index.version, dict(index.dz)
        return index
