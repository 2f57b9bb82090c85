"""The `[policy]` of a controller's configuration: which hosts a publisher may address."""

from __future__ import annotations

from flowsieve.config.toml import Section
from flowsieve.content.schema import shown
from flowsieve.flow.send_policy import EVERYBODY, MaySend, SendPolicy
from flowsieve.header.receivers import HEADER as RECEIVERS

POLICY = "policy"
RULES = "may_send"
SENDERS, RECEIVERS_KEY = "from", "to"


def read_policy(top: Section, header: str | None) -> SendPolicy:
    """What the operator lets hosts do; without the section everybody may address everybody."""
    if POLICY not in top:
        return EVERYBODY
    section = top.section(POLICY)
    section.only((RULES,))
    if header is not None and header != RECEIVERS:
        top.wrong(
            POLICY,
            f"packets name no hosts here, so no switch can tell to whom they are sent; right is header = {RECEIVERS!r} "
            f"in [index], or no [{POLICY}]",
        )
    if RULES not in section:
        right = f"right is [[{POLICY}.{RULES}]] with from and to, or no [{POLICY}]"
        top.wrong(POLICY, f"[{POLICY}] has no rule, so that nobody may send anything to anybody; {right}")
    rules = []
    for rule in section.sections(RULES):
        rule.only((SENDERS, RECEIVERS_KEY))
        senders, receivers = _names(rule, SENDERS), _names(rule, RECEIVERS_KEY)
        if senders and receivers:
            rules.append(MaySend(senders, receivers))
    return SendPolicy(tuple(rules))


def _names(rule: Section, key: str) -> tuple[str, ...]:
    """Hosts, or patterns of their names."""
    value = rule.table.get(key)
    if isinstance(value, list) and value and all(isinstance(each, str) and each for each in value):
        return tuple(value)
    rule.wrong(key, f'{key} is {shown(value)}; right is a list of hosts, such as ["h1", "cam*"]')
    return ()
