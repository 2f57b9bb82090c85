"""What clients and controller say to each other: calls, answers, welcome, events. Described in docs/protocol.md."""
