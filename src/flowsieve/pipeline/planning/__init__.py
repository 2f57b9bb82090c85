"""Planning: from events and subscriptions to an index plan.

`training_data` is what planners look at, and `selection` chooses dimensions. `gridded`, `kd_planner` and
`selective_planner` make plans, `methods` names them all, `portfolio` tries many and keeps the best, `spark_planning`
does it where the events are, and `plan_file` keeps the result.
"""
