"""A dispatcher that says of an index what a test has it say: clients go over to it, whatever the tables hold."""

from __future__ import annotations

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.index.dzset import DzSet


class IndexedDispatcher(Dispatcher):
    """`served` takes the place of the state's own index once it is there; `fenced` are old ones."""

    served: ServedIndex | None = None
    fenced: tuple[ServedIndex, ...] = ()

    @property
    def index(self) -> ServedIndex:
        return self.served or super().index

    @property
    def late(self) -> tuple[ServedIndex, ...]:
        return self.fenced or super().late

    def cover_now(self, id: str) -> DzSet | None:
        held = self.state.subscriptions.get(id)
        if self.served is None or held is None or held.filter is None:
            return super().cover_now(id)
        return self.served.plan.cover(held.filter, 0)
