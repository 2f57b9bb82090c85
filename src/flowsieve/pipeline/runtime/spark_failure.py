"""What Spark says when it fails, in one line: the cause below all causes, and what to do about it."""

from __future__ import annotations

import re

from flowsieve.content.schema import shown
from flowsieve.errors import BadInput, FlowsieveError, PipelineError

# What the deepest cause says, and the remedy.
REMEDIES = (
    (r"OutOfMemoryError|Container killed|exceeding memory", "give it more memory, or fewer events at a time"),
    (r"No space left on device", "make room on the disk that Spark writes to (SPARK_LOCAL_DIRS)"),
    (r"All masters are unresponsive|Connection refused", "is Spark running at that address?"),
    (r"HADOOP_CONF_DIR", "set HADOOP_CONF_DIR to the folder that describes the cluster"),
    (r"Java gateway process exited", "Java did not start; `java -version` should say 17"),
)
UNREADABLE = re.compile(r"(?:reading file|footer for file:?|from file:?|read file:?)\s+(?:\w+:)?(/[^\s;,]+)")
CAUSE = re.compile(
    r"^(?:Caused by: )?((?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Error|Exception)\w*)(?:: (.*))?$", re.MULTILINE
)


def failures(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """The errors by which Spark and the bridge to its Java side fail, and some more."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, *more


def told(error: Exception, doing: str = "Spark failed") -> FlowsieveError:
    """One line for what went wrong; BadInput where a file is the reason."""
    text = str(error)
    cause = _cause(text)
    file = UNREADABLE.search(text)
    if file is not None:
        damaged = "it may be cut off or damaged, or be something else than its name says; make it anew"
        return BadInput(f"cannot be read: {shown(cause, 200)}; {damaged}", place=file.group(1))
    remedy = next((f"; {what}" for pattern, what in REMEDIES if re.search(pattern, text)), "")
    return PipelineError(f"{doing}: {shown(cause, 500)}{remedy}")


def _cause(text: str) -> str:
    """What the last of the causes says; without any, the first line.

    >>> _cause("An error occurred\\n: java.lang.A\\nCaused by: java.io.EOFException: Unexpected end of input stream")
    'Unexpected end of input stream'
    """
    *_, last = None, *CAUSE.finditer(text)
    if last is None:
        return text.strip().partition("\n")[0]
    kind, what = last.groups()
    return str(what or kind.rpartition(".")[2])
