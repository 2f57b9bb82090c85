"""Events sent through the tables of a network: what its links would carry, and what its hosts would get."""
