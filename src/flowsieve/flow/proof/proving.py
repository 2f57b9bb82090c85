"""Proofs and explanations of a network, whatever its packets say: what is in them, for whom they are, or some each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import reduce

from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.interest import Interest
from flowsieve.flow.joint_view import JointView
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.mixed_view import MixedView
from flowsieve.flow.proof.bloom_verify import verify_bloom
from flowsieve.flow.proof.explain import Explanation, explain
from flowsieve.flow.proof.label_explain import explain_labels
from flowsieve.flow.proof.label_verify import verify_labels
from flowsieve.flow.proof.verify import Verdict, verify
from flowsieve.flow.view import NetworkView

AnyView = NetworkView | LabelView | BloomView | MixedView | JointView


def about(
    view: AnyView, advertisements: Collection[Interest], subscriptions: Collection[Interest]
) -> AnyView:
    """The same network with other interests."""
    if isinstance(view, MixedView | JointView):
        return view.about(advertisements, subscriptions)
    return replace(view, advertisements=advertisements, subscriptions=subscriptions)


def proved(view: AnyView) -> Verdict:
    """What a proof finds."""
    if isinstance(view, MixedView):
        return _joined(verify(view.dz), verify_labels(view.labels))
    if isinstance(view, JointView):
        return reduce(_joined, map(verify, view.sides.values()))
    if isinstance(view, BloomView):
        return verify_bloom(view)
    return verify_labels(view) if isinstance(view, LabelView) else verify(view)


def explained(view: AnyView, host: str, values: Mapping[str, object]) -> Explanation:
    """Why an event that a host publishes goes where it goes, hop by hop."""
    if isinstance(view, MixedView):
        view = view.labels if view.labelled.hold(host) else view.dz
    elif isinstance(view, JointView):
        view = view.sides[view.served]
    if isinstance(view, LabelView | BloomView):
        return explain_labels(view, host, values)
    return explain(view, host, values)


def _joined(one: Verdict, other: Verdict) -> Verdict:
    """What two proofs of one network find; a switch at which packets of either kind go round counts for each."""
    both = (one, other)
    return Verdict(
        false_negatives=sum(each.false_negatives for each in both),
        duplicates=sum(each.duplicates for each in both),
        loops=sum(each.loops for each in both),
        strays=sum(each.strays for each in both),
        undecided=tuple(dict.fromkeys((*one.undecided, *other.undecided))),
        witness=one.witness or other.witness,
    )
