"""The data pipeline on Spark: what it learns from events and subscriptions decides where bits and entries go.

Only modules in here import pyspark, and none of them uses a `sparkContext` where Spark Connect has none.

- `runtime`: sessions, what is sent to executors, samples and batches of events, progress
- `reading`: events, subscriptions and schemas from files; rows that cannot be used are set aside
- `synth`: workloads that are made up
- `matching`: which subscriptions events match, and statistics of both
- `evaluation`: covers, and what plans deliver under them
- `planning`: from events and subscriptions to an index plan
- `stream`: statistics of live traffic, and plans that follow it
- `replay`: events sent through a network's tables
- `report`: figures and plots of all that
"""
