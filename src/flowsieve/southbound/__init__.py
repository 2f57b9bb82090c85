"""Below the controller: the switches themselves; so far those of an embedded network, in this process."""
