"""The controller's configuration in a story."""

from __future__ import annotations

from pathlib import Path

from flowsieve.loop.workload import CLIMATE, schema_toml

FIRST_DIMENSIONS = CLIMATE  # what a person would choose who looks at the first traffic


def write_config(folder: Path, share: float, bits: int) -> Path:
    """An index for the first traffic, telemetry of a share of events, offers that are approved at once."""
    telemetry = folder / "telemetry"
    telemetry.mkdir()
    mode = 'mode = "full"' if share >= 1 else f'mode = "sampled"\nshare = {share:.6f}'
    dimensions = ", ".join(f'"{name}"' for name in FIRST_DIMENSIONS)
    config = folder / "loop.toml"
    config.write_text(
        f"{schema_toml()}"
        f'[index]\nheader = "ipv6"\nbits = {bits}\ndimensions = [{dimensions}]\n'
        f'[controller]\nstate = "state"\n'
        f'[telemetry]\n{mode}\nfolder = "{telemetry}"\nrate = 100000\ninterval = 0.5\n'
        f"[offers]\nauto = true\n"
    )
    return config
