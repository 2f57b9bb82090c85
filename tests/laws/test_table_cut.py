"""What holds for the cut of every table: nothing is lost, and it fits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import EVERY_KIND, cases, filters

from flowsieve.pipeline.evaluation.table_cut import cut_table

kinds = pytest.mark.parametrize("kind", EVERY_KIND.split())
fewer = settings(max_examples=settings.default.max_examples // 2)


@kinds
@fewer
@given(st.data(), st.integers(1, 30))
def test_an_event_lies_in_a_cell_that_all_who_match_it_touch(
    kind: str, data: st.DataObject, capacity: int
) -> None:
    case = data.draw(cases(kinds=kind))
    wanted = [case.wanted, *data.draw(st.lists(filters(case.plan.schema, 3), max_size=4))]
    planned_on = data.draw(st.integers(0, len(case.events)))
    cut = cut_table(case.plan, wanted, case.batch.take(np.arange(planned_on)), capacity)
    assert len(cut) <= capacity
    for one in wanted:
        touched, cover = cut.touched(one), cut.cover(one)
        for event in case.events:
            if one.matches(event):
                codes = case.plan.encode(event)
                assert codes
                assert all(cover.covers(dz) for dz in codes)
                hi = np.array([dz.aligned >> 64 for dz in codes], np.uint64)
                lo = np.array([dz.aligned & (1 << 64) - 1 for dz in codes], np.uint64)
                found = cut.find(hi, lo)
                assert (found >= 0).all() and touched[found].all()


@kinds
@fewer
@given(st.data(), st.integers(1, 30))
def test_no_cell_of_a_cut_lies_inside_another(kind: str, data: st.DataObject, capacity: int) -> None:
    case = data.draw(cases(kinds=kind))
    cut = cut_table(case.plan, [case.wanted], case.batch, capacity)
    texts = sorted(
        format((int(hi) << 64 | int(lo)) >> 128 - int(length), f"0{length}b") if length else ""
        for hi, lo, length in zip(cut.hi, cut.lo, cut.length, strict=True)
    )
    assert not any(b.startswith(a) for a, b in pairwise(texts))
