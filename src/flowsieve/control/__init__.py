"""The control plane: requests in, tables out, and what it takes to keep switches at them."""
