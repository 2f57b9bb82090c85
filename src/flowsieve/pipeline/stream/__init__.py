"""The streaming job: statistics of live traffic as it lands, and plans that follow it.

Reading, matching, planning and judging are those of the batch commands; here is what is about time alone.
"""
