"""The index: cells of the content space (dz), plans that cut it, and covers of filters. Pure values."""
