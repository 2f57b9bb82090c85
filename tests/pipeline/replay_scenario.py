"""A small network for tests of replay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

HOSTS = ("ann", "bob", "cy", "dee", "eve")

SCENARIO = """\
[schema]
price = { type = "int", min = 0, max = 1023 }
ratio = { type = "float", min = -1.0, max = 1.0 }
side = { type = "enum", values = ["buy", "sell"] }
name = { type = "string" }
[index]
bits = 9
max_dz_per_filter = 4
[network]
links = [["s1", "s2"], ["s2", "s3"], ["s3", "s4"], ["s4", "s1"], ["s2", "s4"]]
trees = 4
table_capacity = 12
[network.hosts]
ann = "s1"
bob = "s2"
cy = "s3"
dee = "s3"
eve = "s4"
[[step]]
requests = "requests.csv"
[[step]]
events = "events.csv"
"""


def write_scenario(folder: Path, events: int = 4_000, text: str = SCENARIO) -> Path:
    """A network on which tables are tight, covers coarse, and some events may not be sent."""
    rng = np.random.default_rng(4)
    offers = ["True", "price < 700", "ratio > -0.5 and side == 'sell'", "price >= 300 or ratio < 0"]
    rows = [f'adv,a{i},{HOSTS[i]},"{offer}"' for i, offer in enumerate(offers)]
    for i in range(60):
        low, width = rng.integers(0, 900), rng.integers(1, 250)
        text_of = (
            f"{low} <= price < {low + width} and side == 'buy'",
            f"name in ('n{low % 7}', 'n{width % 7}') or price == {low}",
            f"ratio > {rng.uniform(0.2, 0.9):.3f} and price < {low}",
        )[i % 3]
        rows.append(f'sub,s{i},{HOSTS[rng.integers(0, 5)]},"{text_of}"')
    hosts = {row.split(",")[1]: row.split(",")[2] for row in rows}
    rows += [f"unsub,{id},{hosts[id]}," for id in ("s3", "s10")]
    (folder / "requests.csv").write_text("op,id,host,filter\n" + "\n".join(rows) + "\n")
    frame = pd.DataFrame(
        {
            "id": [f"e{i}" for i in range(events)],
            "host": rng.choice(HOSTS, events),
            "price": rng.integers(0, 1050, events),
            "ratio": rng.uniform(-1, 1, events),
            "side": rng.choice(["buy", "sell"], events),
            "name": [f"n{i}" for i in rng.integers(0, 9, events)],
        }
    )
    frame.to_csv(folder / "events.csv", index=False)
    frame.to_parquet(folder / "events.parquet")
    path = folder / "scenario.toml"
    path.write_text(text)
    return path
