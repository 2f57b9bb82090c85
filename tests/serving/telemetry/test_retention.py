"""What is kept of telemetry: no more hours, bytes and files than the operator wants."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.serving.telemetry.retention import LandedFile, outdated
from flowsieve.serving.telemetry.settings import Keep

STANDING = {"index": 2}
files = st.lists(
    st.builds(
        LandedFile,
        st.integers(0, 10_000).map(float),
        st.sampled_from(("events", "counts", "index")),
        st.text("abcdef0123456789", min_size=8, max_size=8),
        st.integers(0, 100),
    ),
    max_size=60,
    unique_by=lambda file: (file.kind, file.name),
)


@given(
    files=files,
    hours=st.floats(0.1, 3),
    most=st.integers(1, 3000),
    count=st.integers(1, 20),
    now=st.floats(0, 12_000),
)
def test_what_stays_is_within_all_bounds_and_nothing_goes_without_need(
    files: list[LandedFile], hours: float, most: int, count: int, now: float
) -> None:
    keep = Keep(hours, most, count)
    gone = outdated(files, keep, now, STANDING)
    left = sorted(set(files) - set(gone), reverse=True)
    assert gone == sorted(gone)
    index = sorted((file for file in files if file.kind == "index"), reverse=True)
    assert set(index[:2]) <= set(left)  # they say what is in force
    free = [file for file in left if file not in index[:2]]
    assert all(file.written >= now - 3600 * hours for file in free)
    assert all(
        sum(file.kind == kind for file in left) <= max(count, 2) for kind in ("events", "counts", "index")
    )
    if free:
        assert sum(file.size for file in left if file >= free[-1]) <= most
    for file in gone:  # each has a reason
        newer = [each for each in left if each > file]
        assert (
            file.written < now - 3600 * hours
            or sum(each.size for each in newer) + file.size > most
            or sum(each.kind == file.kind for each in files if each >= file) > count
        )
