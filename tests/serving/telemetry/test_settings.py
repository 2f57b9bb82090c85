"""[telemetry] in a configuration: off unless asked for, and bad values are told with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.errors import BadInput
from flowsieve.serving.config import read_config
from flowsieve.serving.telemetry.settings import Keep, TelemetrySettings

BASE = """
[schema]
price = { type = "int", min = 0, max = 1023 }
[network]
links = [["s1", "s2"]]
[network.hosts]
h1 = "s1"
"""


def settings(folder: Path, text: str, base: str = BASE) -> TelemetrySettings:
    path = folder / "config.toml"
    path.write_text(base + text)
    return read_config(path).telemetry


def test_without_a_section_nothing_is_reported(tmp_path: Path) -> None:
    assert not settings(tmp_path, "").on
    assert not settings(tmp_path, "[telemetry]\nfolder = 'there'\n").on


def test_all_of_it_is_read(tmp_path: Path) -> None:
    text = """
[telemetry]
mode = "sampled"
share = 0.05
folder = "landed"
interval = 2
rate = 1000
keep = { hours = 0.5, bytes = 1_000_000, files = 100 }
"""
    assert settings(tmp_path, text) == TelemetrySettings(
        0.05, tmp_path / "landed", 2, 1000, Keep(0.5, 1_000_000, 100)
    )
    assert settings(tmp_path, '[telemetry]\nmode = "sampled"\n').share == 0.01
    assert settings(tmp_path, '[telemetry]\nmode = "full"\n').share == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mode = 'some'", "right is 'off' or 'sampled' or 'full'"),
        ("mode = 'sampled'\nshare = 0", "from 1e-06 to 1"),
        ("mode = 'sampled'\nshare = true", "from 1e-06 to 1"),
        ("mode = 'full'\nshare = 0.1", "share is for mode = 'sampled'"),
        ("share = 0.1", "share is for mode = 'sampled'"),
        ("interval = 0", "interval is 0; right is a number from 0.05 to 60: seconds"),
        ("rate = 1.5", "rate is 1.5; right is a whole number"),
        ("keep = 3", "keep is 3; right is a table"),
        ("keep = { days = 1 }", "[telemetry.keep] has no key 'days'"),
        ("keep = { bytes = 0 }", "bytes is 0"),
        ("modus = 'off'", "did you mean 'mode'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadInput) as found:
        settings(tmp_path, f"[telemetry]\n{text}\n")
    assert told in str(found.value) and "config.toml" in str(found.value)


def test_an_attribute_with_the_name_of_a_column_of_its_own_is_a_mistake(tmp_path: Path) -> None:
    base = BASE.replace("price", "weight")
    assert not settings(tmp_path, "[telemetry]\nmode = 'off'\n", base).on
    with pytest.raises(BadInput, match="columns weight of their own"):
        settings(tmp_path, "[telemetry]\nmode = 'full'\n", base)
