"""Until packets meet a table that was acknowledged: a switch's datapath follows its tables a little later."""

from __future__ import annotations

import asyncio
import json

from flowsieve.southbound.openflow.address import Address

_ASK = json.dumps({"id": 0, "method": "revalidator/wait", "params": []}).encode()


async def let_datapath_follow(seconds: float, control: Address | None) -> None:
    """Wait until Open vSwitch has gone over its datapath once, or where it cannot be asked for a fixed time.

    `control` is the control socket of ovs-vswitchd. After a change it goes over the datapath at once (1 to 5 ms),
    otherwise twice a second; whatever it answers, we wait no longer than a second.
    """
    if control is not None:
        try:
            async with asyncio.timeout(1.0):
                reader, writer = await control.dial()
                try:
                    writer.write(_ASK)
                    answer = await reader.readuntil(b"}")
                finally:
                    writer.transport.abort()
            if json.loads(answer)["error"] is None:
                return
        except (OSError, EOFError, ValueError, KeyError, TypeError, asyncio.LimitOverrunError):
            pass  # the fixed time it is, then
    await asyncio.sleep(seconds)
