"""The figures that flowsieve is held to; `make bench` runs them."""
