"""Real switches, over OpenFlow 1.4.

`wire` makes and reads messages, `packed` makes flow-mods fast, `entries` and `ports` read what a switch holds,
`connection` is the protocol without input and output, `switch_session` is one live connection, `channel` keeps one to
a switch, and `fabric` is what a controller uses; `threaded_switches` is the same for callers without an event loop.
`datapath_id` knows what these switches call themselves, `datapath_sync` when packets meet a new table.
"""
