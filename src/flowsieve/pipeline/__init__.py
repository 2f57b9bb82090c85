"""The data pipeline on Spark: what it learns from events and subscriptions decides where bits and entries go.

Only modules in here import pyspark, and none of them uses a `sparkContext`, which Spark Connect does not have.
"""
