"""The data pipeline on Spark: what it learns from events and subscriptions decides where bits and entries go.

Only modules in here import pyspark, and none of them uses a `sparkContext`, which Spark Connect does not have.
"""

from __future__ import annotations

import os
from pathlib import Path

# On an executor the package stands in a zip beside the application's other files. Numba keeps what it compiles
# in the home folder then, which may not be writable: rather keep it there, where it goes with the application.
if __file__ is not None and ".zip" in __file__:
    folder = Path(__file__[: __file__.index(".zip")]).parent
    if os.access(folder, os.W_OK):
        os.environ["XDG_CACHE_HOME"] = str(folder)
