"""A folder that cannot be is refused before anything depends on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.errors import BadInput
from flowsieve.serving.state_folder import check_folder


def test_a_folder_that_is_there_or_can_be_made_is_right_and_left_alone(tmp_path: Path) -> None:
    check_folder(tmp_path)
    check_folder(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_missing_or_closed_is_said(tmp_path: Path) -> None:
    file, loop = tmp_path / "file", tmp_path / "loop"
    file.write_text("")
    loop.symlink_to(loop)
    for folder, wrong in (
        (file, f"{file} is no folder"),
        (file / "state", f"{file} is no folder"),
        (loop, f"{loop} is no folder"),
        (tmp_path / "not" / "there", f"there is no {tmp_path / 'not'}; make it, or mount"),
        (Path("/proc/flowsieve"), "cannot be kept in /proc/flowsieve: "),
    ):
        with pytest.raises(BadInput, match=wrong):
            check_folder(folder)
