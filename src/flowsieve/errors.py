"""What can go wrong, as one tree.

FlowsieveError
├── BadInput             what somebody gave us is wrong; nothing was changed (exit status 2)
│   ├── BadSchema
│   ├── BadFilter        points at the place in the filter's text
│   ├── BadValue         a value that an attribute cannot have
│   │   └── BadCell      … in a table of events; knows its row and column
│   ├── BadPlan
│   ├── BadTopology
│   ├── BadScenario
│   └── BadMessage       what came over a wire and cannot be read, or cannot be sent as it is
│       ├── OtherVersion … since client and controller speak different versions of the protocol
│       └── BadChecksum  … since it was damaged, or left unfinished, on its way
├── Refused              a good request that cannot be served (exit status 1)
│   └── TableFull
├── SwitchError          a switch did not do what it was told
│   └── Unacknowledged   … or did it and did not say so: what it holds is unknown
├── HostError            this host cannot send or receive packets
├── ControlLost          no controller answers; what it was asked last may have been done or not
├── JournalError         what the controller has to remember cannot be written or read
│   └── BadJournal       … since it is damaged or about something else; bad input, too (exit status 2)
├── Busy                 the controller has more to do than it can; ask again later
├── Denied               the client has not shown that it may do this
├── TaskDied             work that a controller cannot do without has ended of what nobody expected (exit status 1)
├── LabError             the machine cannot have the lab that was asked for, or lost it
└── PipelineError        Spark is not there, does not start, or cannot do what it was asked
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FlowsieveError(Exception):
    """The root of all errors that flowsieve raises on purpose."""


class BadInput(FlowsieveError):
    """What was given is wrong: `message` says what and what would be right, `place` says where."""

    def __init__(self, message: str, *, place: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place

    def at(self, place: str) -> BadInput:
        """The same error, with an outer place put in front (file and line, say)."""
        self.place = place if self.place is None else f"{place}: {self.place}"
        return self

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class BadSchema(BadInput):
    """A schema that describes no content space."""


class BadFilter(BadInput):
    """A filter that cannot be read, or can match nothing; `column` counts from 1 in `text`."""

    def __init__(
        self, message: str, *, text: str, column: int | None = None, place: str | None = None
    ) -> None:
        super().__init__(message, place=place)
        self.text = text
        self.column = column

    def __str__(self) -> str:
        head = super().__str__()
        if self.column is None:
            return head
        start = max(0, self.column - 41)
        shown = self.text[start : start + 80].replace("\n", " ")
        return f"{head}\n    {shown}\n    {' ' * (self.column - 1 - start)}^"


class BadValue(BadInput):
    """A value that its attribute cannot have."""


class BadCell(BadValue):
    """A value in a table that cannot be read at all; `row` counts the events from 0."""

    def __init__(self, message: str, *, row: int, column: str) -> None:
        super().__init__(message, place=f"row {row + 1}")
        self.row = row
        self.column = column


class BadPlan(BadInput):
    """An index plan that does not fit its schema, header or format."""


class BadTopology(BadInput):
    """A topology that cannot be read or does not hang together."""


class BadScenario(BadInput):
    """A scenario, or a file that it names, that cannot be played."""


class BadMessage(BadInput):
    """A datagram or a request that says nothing we understand."""


class OtherVersion(BadMessage):
    """Client and controller speak different versions of the protocol."""

    def __init__(self, *, client: object, controller: object) -> None:
        super().__init__(
            f"the client speaks version {client} of flowsieve's protocol and the controller version {controller}; "
            "install the same release of flowsieve on hosts and controller"
        )
        self.client = client
        self.controller = controller


class BadChecksum(BadMessage):
    """A packet whose checksum does not hold."""


class Refused(FlowsieveError):
    """A well-formed request that cannot be served."""


class TableFull(Refused):
    """A switch's table cannot hold even the coarsest entries that a request needs.

    `at` is the place in a batch of the operation that the switch refused, if it was one that did, and `table` the table
    for labels that it was about, if it was.
    """

    def __init__(
        self, *, switch: str, needed: int, capacity: int, at: int | None = None, table: int | None = None
    ) -> None:
        entries = "1 entry" if needed == 1 else f"{needed} entries"
        where = "" if table is None else f" in table {table}"
        super().__init__(f"switch {switch} needs at least {entries}{where} and has room for {capacity}")
        self.switch = switch
        self.needed = needed
        self.capacity = capacity
        self.at = at
        self.table = table


class SwitchError(FlowsieveError):
    """A switch refused or failed an operation."""


class Unacknowledged(SwitchError):
    """What a switch holds is unknown: it did not answer, or may have lost it; it has to be read back."""

    def __init__(self, *, switch: str, reason: str) -> None:
        super().__init__(f"what switch {switch} holds is unknown until it is read back: {reason}")
        self.switch = switch
        self.reason = reason


class GuardRefused(SwitchError):
    """A switch has no room for its guard, or no meters for it; it takes in what it did before."""

    def __init__(self, *, switch: str, reason: str) -> None:
        super().__init__(f"switch {switch} does not take its guard: {reason}")
        self.switch = switch
        self.reason = reason


class DetoursRefused(SwitchError):
    """A switch has no groups, or no room for what leads around dead links; it goes on as it did before."""

    def __init__(self, *, switch: str, reason: str) -> None:
        super().__init__(f"switch {switch} takes no detours: {reason}")
        self.switch = switch
        self.reason = reason


class HostError(FlowsieveError):
    """This host cannot send or receive as it should."""


class ControlLost(FlowsieveError):
    """The controller cannot be reached, or stopped answering."""


class JournalError(FlowsieveError):
    """The controller's memory cannot be read or written: the disk is full, say; `final` where it never will be."""

    final = False


class BadJournal(BadInput, JournalError):
    """A journal that is damaged, of another version, or of another network: nothing can begin with it."""


class Busy(FlowsieveError):
    """More is asked than can be done in time; the same may be asked again later."""


class Denied(FlowsieveError):
    """The client has not shown that it may do this."""


class TaskDied(FlowsieveError):
    """Work in the background has died of an error that nobody expected: a mistake of ours."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(
            f"{name} has died of {type(error).__name__}: {error}; nothing goes on without it, so this ends. "
            "The log has the place; start it again, and report it"
        )
        self.name = name
        self.__cause__ = error


class LabError(FlowsieveError):
    """A lab that could not be built, found or taken down on this machine."""


class PipelineError(FlowsieveError):
    """Spark is missing, did not start or failed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name closest to a mistyped one: `; did you mean 'price'?`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
