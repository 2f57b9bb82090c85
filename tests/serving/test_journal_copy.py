"""What a controller remembers goes from its folder to etcd and back, with its tokens, and by nobody's mistake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsieve.cli.main import app
from flowsieve.content.filter import Filter
from flowsieve.control.memory.journal import Asked, Origin, Past
from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput
from flowsieve.serving.config import Config, read_config
from flowsieve.serving.memory import Memory, memory_of
from flowsieve.serving.site.site import OwnSite
from flowsieve.testing.etcd_servers import EtcdServers, etcd_installed

pytestmark = pytest.mark.skipif(not etcd_installed(), reason="there is no etcd; apt-get install etcd-server")

CONFIG = """\
[schema]
price = {{ type = "int", min = 0, max = {most} }}
[network]
links = [["s1", "s2"]]
[network.hosts]
h1 = "s1"
h2 = "s1"
[controller]
state = "{state}"
http = ["tcp:127.0.0.1:7420"]
[switches.s1]
address = "tcp:127.0.0.1:6653"
datapath_id = 1
[switches.s2]
address = "tcp:127.0.0.1:6654"
datapath_id = 2
{control}
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServers]:
    with EtcdServers(tmp_path_factory.mktemp("etcd")) as made:
        yield made


def config(path: Path, servers: EtcdServers | None = None, most: int = 1023, state: str = "state") -> Path:
    shared = (
        ""
        if servers is None
        else f"[control]\netcd = {json.dumps(servers.addresses)}\nname = {path.parent.name!r}"
    )
    path.write_text(CONFIG.format(most=most, state=state, control=shared))
    return path


def memory(path: Path) -> tuple[Memory, Config, str]:
    found = read_config(path)
    site = OwnSite(found)
    return memory_of(found, site), found, found.base(site.topology)


async def remember(path: Path, count: int, compacted: bool) -> bytes:
    """Have something remembered; the secret."""
    there, found, base = memory(path)
    await there.win()
    opened = await there.open(base, lambda entries, seconds: None, False)
    if compacted:
        await opened.journal.compact({"a": "snapshot"}, opened.journal.number)
    cheap = Filter.parse("price < 3", found.index.plan.schema)
    await opened.journal.append(
        [Asked(Request(Op.SUBSCRIBE, str(n), "h1", cheap), Origin("ann", n, 1.5)) for n in range(count)]
    )
    await opened.claim.above(None)
    await opened.journal.close()
    await there.leave()
    return opened.secret


async def remembered(path: Path) -> tuple[Past, object]:
    there, found, base = memory(path)
    try:
        return await there.look(base, found.index.plan.schema), await there.identity()
    finally:
        await there.leave()


def copy(*paths: Path) -> int:
    return app(["journal", "copy", *map(str, paths), "--json"], standalone_mode=False) or 0


def test_there_and_back_again_nothing_is_missing(
    tmp_path: Path, servers: EtcdServers, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, shared = config(tmp_path / "alone.toml"), config(tmp_path / "shared.toml", servers)
    back = config(tmp_path / "back.toml", state="other")
    secret = asyncio.run(remember(alone, 20, True))
    before = asyncio.run(remembered(alone))
    assert len(before[0].entries) == 20
    copy(alone, shared)
    assert json.loads(capsys.readouterr().out) == {"snapshot": True, "entries": 20}
    copied = asyncio.run(remembered(shared))
    assert copied[0] == before[0]
    copy(shared, back)
    assert asyncio.run(remembered(back))[0] == before[0]
    assert (tmp_path / "other" / "secret").read_bytes() == secret
    with pytest.raises(BadInput, match="something is remembered already"):
        copy(alone, shared)
    with pytest.raises(BadInput, match="something is remembered already"):
        copy(shared, alone)
    assert asyncio.run(remembered(shared))[0] == before[0]


def test_what_is_about_another_network_or_in_use_is_not_copied(tmp_path: Path, servers: EtcdServers) -> None:
    alone, shared = config(tmp_path / "alone.toml"), config(tmp_path / "shared.toml", servers)
    with pytest.raises(BadInput, match="another schema, index or network"):
        copy(alone, config(tmp_path / "wide.toml", servers, most=4095))

    async def while_it_is_in_use() -> None:
        there, _, _ = memory(shared)
        await there.win()
        with pytest.raises(BadInput, match="a controller leads there; stop all that share it first"):
            await asyncio.to_thread(copy, alone, shared)
        await there.leave()

    asyncio.run(while_it_is_in_use())


def test_who_could_not_go_on_with_what_is_remembered_does_not_wait_for_it(
    tmp_path: Path, servers: EtcdServers
) -> None:
    async def story() -> None:
        leads, _, base = memory(config(tmp_path / "shared.toml", servers))
        await leads.win()
        await leads.open(base, lambda entries, seconds: None, False)
        other, _, _ = memory(config(tmp_path / "wide.toml", servers, most=4095))
        async with asyncio.timeout(60):
            with pytest.raises(BadInput, match="memory of another network or schema"):
                await other.win()
        await other.leave()
        await leads.leave()

    asyncio.run(story())
