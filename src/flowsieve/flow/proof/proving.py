"""Proofs and explanations of a network, whatever its packets say: what is in them, or for whom they are."""

from __future__ import annotations

from collections.abc import Mapping

from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.proof.bloom_verify import verify_bloom
from flowsieve.flow.proof.explain import Explanation, explain
from flowsieve.flow.proof.label_explain import explain_labels
from flowsieve.flow.proof.label_verify import verify_labels
from flowsieve.flow.proof.verify import Verdict, verify
from flowsieve.flow.view import NetworkView

AnyView = NetworkView | LabelView | BloomView


def proved(view: AnyView) -> Verdict:
    """What a proof finds."""
    if isinstance(view, BloomView):
        return verify_bloom(view)
    return verify_labels(view) if isinstance(view, LabelView) else verify(view)


def explained(view: AnyView, host: str, values: Mapping[str, object]) -> Explanation:
    """Why an event that a host publishes goes where it goes, hop by hop."""
    if isinstance(view, LabelView | BloomView):
        return explain_labels(view, host, values)
    return explain(view, host, values)
