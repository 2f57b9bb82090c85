"""The journal, snapshots, and the state made from them again."""
