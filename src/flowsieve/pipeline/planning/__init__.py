"""Planning: from events and subscriptions to an index plan.

`training_data` is what planners look at, `selection` chooses dimensions, `gridded`, `kd_planner` and `selective_planner`
make plans of the kinds that the index knows, `methods` names them all, `portfolio` tries many and keeps the best,
`spark_planning` does it where the events are, and `plan_file` writes down what came of it.
"""
