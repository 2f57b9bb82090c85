# mypy: allow-untyped-calls
"""Where executors, which have the package as a zip, keep the kernels that they compile.

Numba would keep them under the path of the zip, in the home folder: that path differs for every application, and the
folder may not be writable. Here they are kept under the zip's name, which has a digest of its content, in the folder
that `NUMBA_CACHE_DIR` names on the executor, so that a version is compiled once. Without that folder they are kept
beside the zip, and are gone with the application.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import CacheImpl, ZipCacheLocator


class ShippedCacheLocator(ZipCacheLocator):
    """Where to keep what is compiled from a zip of ours."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        archive = Path(self._zip_path)
        kept = os.environ.get("NUMBA_CACHE_DIR")
        home = Path(kept) / archive.name if kept else archive.parent / "kernels"
        self._cache_path = str(home / Path(self._internal_path).parent)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> ShippedCacheLocator | None:
        if ".zip/flowsieve/" not in file:
            return None
        locator = cls(function, file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None  # not writable: Numba tries its own places
        return locator


if ShippedCacheLocator not in CacheImpl._locator_classes:
    CacheImpl._locator_classes.insert(0, ShippedCacheLocator)
