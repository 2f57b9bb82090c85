"""Real switches, over OpenFlow 1.4.

`wire` makes and reads messages, `packed` makes flow-mods fast, `entries` and `ports` read what a switch holds,
`connection` is the protocol without input and output, `link` is one live connection, `channel` keeps one to a
switch, and `fabric` is what a controller uses; `switches` is the same for callers without an event loop.
"""
