"""The story of the loop: traffic under a plan that fits, traffic that changes, and the plan that follows by itself.

Everything in it is the real thing, each a process of its own: switches and hosts of a lab, `flowsieve controller`,
applications on the hosts, `flowsieve stream` on Spark. This module starts them, watches, and judges.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flowsieve.client.operator_link import OperatorLink
from flowsieve.errors import BadInput
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import check_machine
from flowsieve.loop.files import write_config
from flowsieve.loop.host_app import AppOrders
from flowsieve.loop.judgement import Judgement, judge
from flowsieve.loop.loop_verdict import LoopVerdict
from flowsieve.loop.processes import HEARD, StoryBroken, Told, started
from flowsieve.loop.series import Course, SeriesRow, total
from flowsieve.loop.workload import subscriptions
from flowsieve.network.topology import Topology

PATIENCE = 300.0  # seconds for anything to come about
LOOK_SECONDS = 0.1
ROW_SECONDS = 1.0
PUBLISHERS = 2
TOLD_ROWS = 2_000  # events a second that are told of in full; beyond, a share of them
QUIET_SECONDS, MOST_QUIET = 1.0, 15.0  # without an arrival, after which none is expected; and in all
FLOWSIEVE = (sys.executable, "-m", "flowsieve.cli")


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """How large the story is: subscriptions and events a second in all, seconds before the drift and after the plan."""

    topology: Topology
    subscriptions: int = 200
    rate: float = 500.0
    seconds: float = 15.0
    window: float = 8.0
    deadline: float = 5.0
    method: str = "auto"
    bits: int = 16

    def __post_init__(self) -> None:
        if len(self.topology.hosts) < PUBLISHERS + 1:
            raise BadInput(f"the loop takes {PUBLISHERS + 1} hosts or more; right is ring:6, say")
        if self.subscriptions < 1:
            raise BadInput(f"--subscriptions is {self.subscriptions}; right is 1 or more")
        for name in ("rate", "seconds", "window", "deadline"):
            if not getattr(self, name) > 0:
                raise BadInput(f"--{name} is {getattr(self, name)}; right is a number above 0")

    @property
    def share(self) -> float:
        """Of the events, those that clients tell of."""
        return min(1.0, TOLD_ROWS / self.rate)

    @property
    def publishers(self) -> tuple[str, ...]:
        hosts = list(self.topology.hosts)
        return tuple(hosts[i * len(hosts) // PUBLISHERS] for i in range(PUBLISHERS))

    @property
    def subscribers(self) -> tuple[str, ...]:
        return tuple(host for host in self.topology.hosts if host not in self.publishers)


@dataclass(slots=True)
class Watching:
    """What is looked at while the story goes on."""

    link: OperatorLink
    stream: Told
    publishers: Sequence[Told]
    subscribers: Sequence[Told]
    began: float  # by the machine's clock
    course: Course = field(default_factory=Course)
    told: Mapping[str, Any] = field(default_factory=dict)  # of the index
    version: int = 0
    story: str = "calm"

    @property
    def now(self) -> float:
        return time.time() - self.began

    @property
    def apps(self) -> list[Told]:
        return [*self.publishers, *self.subscribers]

    def look(self) -> None:
        """Take down what there is now; raise where somebody is gone."""
        for each in (*self.apps, self.stream):
            each.check()
        self.told = self.link.request("GET", "/v1/index")
        now, crossing = self.now, self.told["crossing"]
        if self.told["version"] != self.version:
            self.version = self.told["version"]
            self.course.mark(f"index {self.version}", now)
        self.course.saw_phase(now, None if crossing is None else crossing["phase"])
        if self.story != "calm" and any(
            line.get("planning") and line[HEARD] - self.began > self.course.moments["drift"]
            for line in self.stream.lines
        ):
            self.course.mark("noticed", now)
        self.course.count(total(now, [app.last_line("published") for app in self.apps]))

    def row(self, since: float) -> SeriesRow:
        now = self.now
        published, received, unwanted, seconds = self.course.between(since, now)
        crossing = self.told["crossing"]
        return SeriesRow(
            round(now, 2),
            round(published / seconds, 1) if seconds > 0 else 0.0,
            round(received / seconds, 1) if seconds > 0 else 0.0,
            unwanted / received if received else None,
            self.version,
            None if crossing is None else crossing["phase"],
            self.story,
            self.stream_says(),
        )

    def stream_says(self) -> str:
        """What the stream has told last: that it makes a plan, and what came of it."""
        for line in reversed(self.stream.lines):
            if line.get("planned"):
                return f"batch {line['planned']['batch']}: {line['planned']['fate']}"
            if line.get("planning"):
                return f"planning: {line['planning']}"
        return "watching" if self.stream.lines else "starting"

    def planning_ended(self) -> float | None:
        """When the stream was last done with a plan; None while it is at one, or before its first."""
        for line in reversed(self.stream.lines):
            if line.get("planned"):
                return float(line[HEARD]) - self.began
            if line.get("planning"):
                return None
        return None


class LoopStory:
    """Plays the story once. `tell` hears each second, `note` what is being done."""

    def __init__(
        self,
        options: LoopOptions,
        out: Path,
        tell: Callable[[SeriesRow], None] = lambda row: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._options, self._out, self._tell, self._note = options, out, tell, note
        self._filters = subscriptions(options.subscribers, options.subscriptions)

    def run(self) -> tuple[Course, LoopVerdict]:
        """Play it; raises what keeps it from going on. Whatever was started is ended then."""
        check_machine()
        self._out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="fs-loop-") as place, ExitStack() as kept:
            folder = Path(place)
            self._note(f"{len(self._options.topology.switches)} switches")
            lab = kept.enter_context(running(self._options.topology))
            watching = self._start(folder, lab, kept)
            return self._play(folder, watching)

    def _start(self, folder: Path, lab: Lab, kept: ExitStack) -> Watching:
        """The controller, then the applications, then the stream."""
        options, out = self._options, self._out
        config = write_config(folder, options.share, options.bits)
        self._note("the controller")
        words = [*FLOWSIEVE, "controller", str(config), "--lab", lab.name, "--json"]
        controller = kept.enter_context(started("the controller", words, out / "controller.log"))
        controller.wait_for("control", PATIENCE)
        control = f"unix:{lab.requests}"
        link = OperatorLink((control,), lab.operator_token)
        self._note("the stream, on Spark")
        words = [*FLOWSIEVE, "stream", str(folder / "telemetry"), "--out", str(folder / "stream"), "--auto"]
        words += ["--control", control, "--json", *self._stream_options()]
        stream = kept.enter_context(
            started("the stream", words, out / "stream.log", FLOWSIEVE_OPERATOR=lab.operator_token or "")
        )
        self._note(f"{options.subscriptions:,} subscriptions on {len(options.subscribers)} hosts")
        subscribers = [
            self._app(folder, lab, kept, host, filters=texts) for host, texts in self._filters.items()
        ]
        each = options.rate / PUBLISHERS
        publishers = [
            self._app(folder, lab, kept, host, rate=each, seed=number)
            for number, host in enumerate(options.publishers)
        ]
        for app in (*subscribers, *publishers):
            app.wait_for("ready", PATIENCE)
        return Watching(link, stream, publishers, subscribers, time.time())

    def _stream_options(self) -> list[str]:
        options = self._options
        least = max(50, int(options.rate * options.share * options.window / 8))
        words: dict[str, object] = {
            "window": options.window,
            "pause": 2.0,
            "method": options.method,
            "deadline": options.deadline,
        }
        words |= {"least": least, "max-dz": 32}
        return [text for name, value in words.items() for text in (f"--{name}", str(value))]

    def _app(self, folder: Path, lab: Lab, kept: ExitStack, host: str, **orders: Any) -> Told:
        words = lab.command(host, [sys.executable, "-m", "flowsieve.loop.host_app"])
        app = kept.enter_context(started(f"the application on {host}", words, self._out / f"{host}.log"))
        token = (lab.directory / "tokens" / host).read_text()
        asked = AppOrders(f"unix:{lab.requests}", host, token, str(folder / f"{host}.npz"), **orders)
        app.order(asked.to_json())
        return app

    # What happens.

    def _play(self, folder: Path, watching: Watching) -> tuple[Course, LoopVerdict]:
        options, course = self._options, watching.course
        for app in watching.publishers:
            app.say("go")
        course.mark("go", watching.now)
        self._watch(
            watching, lambda: self._calm_enough(watching), "the stream to be content with the first plan"
        )
        before = watching.version
        course.mark("drift", watching.now)
        watching.story = "drifted"
        self._note("now traffic changes")
        for app in watching.publishers:
            app.say("drift")
        self._watch(watching, lambda: self._arrived(watching, before), "another plan to be in force")
        watching.story = "new plan"
        course.mark("arrived", watching.now)
        end = watching.now + options.seconds
        self._watch(watching, lambda: watching.now >= end, "the end")
        course.mark("stop", watching.now)
        self._note("all have stopped; the logs are compared")
        judgement = self._stopped(folder, watching)
        offers = watching.link.request("GET", "/v1/plans")["offers"]
        ended = [app.last("ended") for app in watching.apps]
        return course, LoopVerdict.of(course, judgement, ended, watching.told, offers, watching.began, before)

    def _calm_enough(self, watching: Watching) -> bool:
        """Long enough under one plan that the stream knows what traffic is like, and has no plan in the making."""
        planned, course = watching.planning_ended(), watching.course
        since = max(
            [course.moments["go"], *(at for name, at in course.moments.items() if name.startswith("index"))]
        )
        settled = max(self._options.seconds, self._options.window + 4.0)
        return (
            planned is not None
            and watching.told["crossing"] is None
            and watching.now - planned >= 4.0
            and watching.now - since >= settled
        )

    @staticmethod
    def _arrived(watching: Watching, before: int) -> bool:
        return watching.version > before and watching.told["crossing"] is None

    def _watch(self, watching: Watching, over: Callable[[], bool], what: str) -> None:
        """Look, and tell each second, until something is so."""
        last = watching.now
        end = last + PATIENCE + self._options.seconds
        while True:
            watching.look()
            if watching.now - last >= ROW_SECONDS:
                row = watching.row(last)
                last = watching.now
                watching.course.rows.append(row)
                self._tell(row)
            if over():
                return
            if watching.now > end:
                raise StoryBroken(f"waited {PATIENCE:.0f} s in vain for {what}")
            time.sleep(LOOK_SECONDS)

    def _stopped(self, folder: Path, watching: Watching) -> Judgement:
        """Have publishers stop, let all that is under way arrive, then subscribers."""
        for app in watching.publishers:
            app.say("stop")
        for app in watching.publishers:
            app.wait_for("ended", PATIENCE)
        end = watching.now + MOST_QUIET
        seen, since = -1, watching.now
        while watching.now < min(since + QUIET_SECONDS, end):
            count = total(0.0, [app.last_line("published") for app in watching.subscribers]).received
            if count != seen:
                seen, since = count, watching.now
            time.sleep(LOOK_SECONDS)
        for app in watching.subscribers:
            app.say("stop")
        for app in watching.subscribers:
            app.wait_for("ended", PATIENCE)
        logs = {folder / f"{host}.npz": texts for host, texts in self._filters.items()}
        return judge([folder / f"{host}.npz" for host in self._options.publishers], logs)
