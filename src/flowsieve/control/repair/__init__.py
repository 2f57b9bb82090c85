"""Trees that follow the cabling: fences, mending, damping of links that flap."""
