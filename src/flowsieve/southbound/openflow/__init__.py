"""Real switches, over OpenFlow 1.4.

`wire` makes and reads messages, `packed` makes flow-mods fast, `entries` reads tables, `connection` is the
protocol without input and output, `channel` keeps a connection to a switch, and `switches` is what a controller
uses.
"""
