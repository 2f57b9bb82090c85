"""What publishers are told, step by step, is what they have to know."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.interest import Interest
from flowsieve.flow.publisher_filters import FilterChange, PublisherFilters
from flowsieve.flow.send_policy import EVERYBODY, MaySend, SendPolicy
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import WHOLE

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 9}})
TEXTS = ("x < 3", "x >= 3", "2 <= x < 5", "True", "x == 9", "x < 1 or x > 8")
HOSTS = ("h1", "h2", "h3")
steps = st.lists(
    st.tuples(st.sampled_from(Side), st.sampled_from(HOSTS), st.sampled_from(TEXTS), st.booleans()),
    max_size=40,
)


def interest(host: str, text: str) -> Interest:
    return Interest("i", host, Filter.parse(text, SCHEMA), WHOLE)


some = st.lists(st.sampled_from(HOSTS), min_size=1, max_size=2).map(tuple)
rules = st.lists(st.builds(MaySend, some, some), max_size=3).map(tuple).map(SendPolicy)


@given(steps, st.integers(1, 5), st.just(EVERYBODY) | rules)
def test_steps_lead_every_publisher_to_what_it_has_to_know(
    steps: list[tuple[Side, str, str, bool]], at_a_time: int, policy: SendPolicy
) -> None:
    book = PublisherFilters(policy)
    there: list[tuple[Side, str, str]] = []
    held: dict[str, set[tuple[str, str]]] = {host: set() for host in HOSTS}
    for number, (side, host, text, adding) in enumerate(steps, 1):
        if adding:
            there.append((side, host, text))
        elif (side, host, text) in there:
            there.remove((side, host, text))
        else:
            continue
        book.change(interest(host, text), side, adding=adding)
        if number % at_a_time:
            continue
        for publisher, changes in book.update().items():
            for filter, receiver, wanted in changes:
                pair = (filter.text, receiver)
                assert (pair in held[publisher]) is not wanted, "only what is new is told"
                (held[publisher].add if wanted else held[publisher].remove)(pair)
        for publisher in HOSTS:
            offers = [Filter.parse(t, SCHEMA) for s, h, t in there if s is Side.PUBLISHER and h == publisher]
            wants = {(t, h) for s, h, t in there if s is Side.SUBSCRIBER and h != publisher}
            heard = {(t, h) for t, h in wants if any(map(Filter.parse(t, SCHEMA).overlaps, offers))}
            right = {(t, h) for t, h in heard if policy.allows(publisher, h)}
            assert held[publisher] == right
            assert set(book.all_forbidden().get(publisher, ())) == {h for _, h in heard - right}
            assert {(f.text, h) for f, hosts in book.held_by(publisher) for h in hosts} == right


def test_those_are_concerned_who_could_publish_what_is_wanted() -> None:
    book = PublisherFilters()
    low, high = interest("h1", "x < 3"), interest("h2", "x > 5")
    book.change(low, Side.PUBLISHER, adding=True)
    book.change(high, Side.PUBLISHER, adding=True)
    wanted = interest("h3", "x == 9")
    book.change(wanted, Side.SUBSCRIBER, adding=True)
    assert book.update() == {"h2": [FilterChange(wanted.filters[0], "h3", True)]}
    assert list(book.concerned(wanted, Side.SUBSCRIBER)) == ["h2"]
    assert list(book.concerned(low, Side.PUBLISHER)) == ["h1"]
    assert set(book.publishers) == {"h1", "h2"}


def test_what_comes_and_goes_again_before_anybody_was_told_is_no_news() -> None:
    book = PublisherFilters()
    book.change(interest("h1", "True"), Side.PUBLISHER, adding=True)
    book.update()
    wanted = interest("h2", "x < 3")
    book.change(wanted, Side.SUBSCRIBER, adding=True)
    book.change(wanted, Side.SUBSCRIBER, adding=False)
    assert book.update() == {}


def test_a_publisher_is_not_told_of_hosts_that_it_may_not_address_and_that_is_no_secret() -> None:
    book = PublisherFilters(SendPolicy((MaySend(("h1",), ("h2",)),)))
    for host in ("h1", "h2"):
        book.change(interest(host, "True"), Side.PUBLISHER, adding=True)
    wanted = interest("h3", "x < 3")
    book.change(wanted, Side.SUBSCRIBER, adding=True)
    assert (book.update(), list(book.concerned(wanted, Side.SUBSCRIBER))) == ({}, [])
    assert book.forbidden(wanted) == ["h1", "h2"]
    assert book.all_forbidden() == {"h1": ["h3"], "h2": ["h3"]}
