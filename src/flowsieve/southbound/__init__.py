"""Below the controller: the switches themselves, embedded in this process or real ones over OpenFlow."""
