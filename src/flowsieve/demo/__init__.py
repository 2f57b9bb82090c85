"""The demo: a sensor network on a fat-tree, told in the terminal and as a page."""
