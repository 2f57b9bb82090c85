"""Planning: from events and subscriptions to an index plan.

`material` is what planners look at, `selection` chooses dimensions, `gridded`, `tree` and `parts` make plans of the
kinds that the index knows, `methods` names them all, `portfolio` tries many and keeps the best.
"""
