"""Tables of all switches from the interests of all endpoints, kept up to date by compiled kernels."""
