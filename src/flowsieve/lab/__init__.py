"""A real network on one Linux machine: Open vSwitch bridges, hosts in namespaces, veth pairs between them."""
