"""The folder where a controller remembers, looked at before anything depends on it.

Its parent has to be there: a path that was mistyped, or a disk that is not mounted, would otherwise be a controller
that has forgotten everything.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from flowsieve.errors import BadInput


def check_folder(folder: Path, what: str = "the state") -> None:
    """Raise where a controller could not keep its state, or `what` else, in a folder; nothing is left there."""
    for place in (folder.parent, folder):
        if not place.is_dir() and (place.exists() or place.is_symlink()):
            raise BadInput(f"{what} cannot be kept in {folder}: {place} is no folder; right is another path")
    if not folder.parent.is_dir():
        raise BadInput(
            f"{what} cannot be kept in {folder}: there is no {folder.parent}; make it, or mount what belongs there"
        )
    try:
        with tempfile.TemporaryFile(dir=folder if folder.is_dir() else folder.parent):
            pass
    except OSError as error:
        why = error.strerror or error
        raise BadInput(
            f"{what} cannot be kept in {folder}: {why}; right is a folder that this user may write into"
        ) from None
