"""Sessions, groups, replies, kills and restarts in any order: no plan of another statement, ever.

A source is played that writes groups of statements of several sessions, and of others that came past
the port with the same texts; sessions and the routing thread do what they do, in random order.
Whatever plan is found must be that of the group.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from struct import Struct
from uuid import UUID as UuidValue  # noqa: N811 - it is a class

import numpy as np
import pytest

from binlane.live.port.attribution_messages import (
    AttributionListener,
    AttributionReceiver,
    AttributionSender,
)
from binlane.live.port.attribution_settings import AttributionSettings
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.attributions import Attributions
from binlane.live.port.found_groups import RunArrays
from binlane.live.port.journal import statement_journal
from binlane.live.port.kernel_hearing import KernelHearing
from binlane.live.port.session_groups import RowsReason, Unattributed
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.window import PADDING
from binlane.log.kernels import layout
from binlane.positions import AnyGtid, Gtid, GtidPosition, GtidSet, MysqlGtid, Position
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, TextPart

SETTINGS = AttributionSettings(wait_s=0.0, file_bytes=2000)
SESSIONS = 3
TEXTS = 3
UUID = "00000000-0000-0000-0000-000000000001"


class Log(Enum):
    """Which groups of a log name the thread that made them."""

    MYSQL = "all of them"
    MARIADB = "all of them, by MariaDB"
    OLD_MARIADB = "those that do not end with XID"

    @property
    def flavor(self) -> Flavor:
        return Flavor.MYSQL if self is Log.MYSQL else Flavor.MARIADB


def plan(statement: int, number: int, text: int) -> GroupPlan:
    """A plan that tells of which group it is."""
    event = EncodedEvent(2, f"{statement}.{number}.{text}".encode())
    return GroupPlan(binlogs={"a": (TextPart((event,)),)})


def label(found: GroupPlan) -> tuple[int, int, int]:
    (part,) = found.binlogs["a"]
    assert isinstance(part, TextPart)
    statement, number, text = part.events[0].body.decode().split(".")
    return int(statement), int(number), int(text)


@dataclass
class Written:
    """A group in the source's log; `statement` 0 for one that came past the port."""

    thread_id: int
    gtid: AnyGtid
    is_commit: bool
    statement: int
    number: int
    text: int

    def read(self, log: Log) -> ReadGroup:
        is_named = log is not Log.OLD_MARIADB or not self.is_commit
        thread_id = self.thread_id if is_named else 0
        return ReadGroup(self.gtid, thread_id, self.is_commit, self.could_be)

    def could_be(self, found: GroupPlan) -> bool:
        return label(found)[2] == self.text


@dataclass
class Running:
    """A statement that the source executes."""

    thread_id: int
    statement: int
    number: int
    texts: tuple[int, ...]
    makes: int
    is_intended: bool = True
    written: list[AnyGtid] = field(default_factory=list)

    @property
    def plans(self) -> list[GroupPlan]:
        return [plan(self.statement, number, text) for number, text in enumerate(self.texts)]


@dataclass
class Session:
    """A session through the port."""

    thread_id: int
    number: int = 0
    running: Running | None = None
    has_hidden: bool = False
    was_hiding: bool = False

    @property
    def must_stay(self) -> bool:
        """Whether it must not be lost now.

        What is planned is what a statement makes at most, and only a reply tells of more.
        """
        running = self.running
        return self.was_hiding or (running is not None and 0 < len(running.texts) < running.makes)


class World:
    """A source, its sessions, and binlane between them.

    With `is_relayed` sessions speak from another process, and nobody hears them but when it matters. With `is_usual`
    nearly all statements make one group, and many groups are read together; sessions of every other such world stay
    for a few statements.
    """

    def __init__(
        self,
        seed: int,
        folder: Path | None,
        log: Log,
        monkeypatch: pytest.MonkeyPatch,
        *,
        is_relayed: bool = False,
        is_usual: bool = False,
    ) -> None:
        self.monkeypatch = monkeypatch
        self.is_usual = is_usual
        self.has_visitors = is_usual and seed % 2 == 1
        self.is_relayed = is_relayed
        file_bytes = 20_000 if is_usual else SETTINGS.file_bytes
        self.settings = replace(SETTINGS, is_relayed=is_relayed, file_bytes=file_bytes)
        self.random, self.lateness = random.Random(seed), random.Random(seed)
        self.folder = folder
        self.kind = log
        self.flavor = log.flavor
        self.log: list[Written] = []
        self.sequences: dict[object, int] = {}
        self.sessions: dict[int, Session | None] = dict.fromkeys(range(SESSIONS))
        self.orphans: list[Running] = []
        self.threads = 0
        # Before which groups the source was started anew.
        self.starts: list[int] = []
        self.statements = 0
        self.plans = self.found_together = 0
        self.found: dict[AnyGtid, GroupPlan] = {}
        self.has_failed = False
        self.feeds = [0]
        self.attributions = Attributions(folder, self.flavor, self.settings)
        self.hearing: AttributionListener | None = None
        self.sayings = self.begin_to_speak()
        self.attributions.begin(self.position(0))

    def close(self) -> None:
        """Let go of what it has."""
        self.stop_hearing()
        self.attributions.close()

    def stop_hearing(self) -> None:
        """Lose what is not heard yet."""
        if self.hearing is not None:
            self.hearing.close()
            self.sayings.close()

    def begin_to_speak(self) -> AttributionReceiver:
        """What sessions speak by from now on."""
        if not self.is_relayed:
            return self.attributions
        there, here = socket.socketpair()
        self.hearing = AttributionListener(self.attributions)
        self.hearing.add(here)
        self.attributions.hear = self.hearing.hear
        return AttributionSender(there)

    def position(self, end: int) -> Position:
        """What is done once so many groups were read."""
        if self.flavor is Flavor.MARIADB:
            return GtidPosition.of(w.gtid for w in self.log[:end] if isinstance(w.gtid, Gtid))
        return GtidSet.of(w.gtid for w in self.log[:end] if isinstance(w.gtid, MysqlGtid))

    def write(self, running: Running | None) -> None:
        """Let the source write a group."""
        if self.flavor is Flavor.MARIADB:
            domain = self.random.choice((0, 0, 0, 7))
            sequence = self.sequences[domain] = self.sequences.get(domain, 0) + 1
            gtid: AnyGtid = Gtid(domain, 1, sequence)
        else:
            tag = self.random.choice(("", "", "", "own"))
            sequence = self.sequences[tag] = self.sequences.get(tag, 0) + 1
            gtid = MysqlGtid(UUID, sequence, tag)
        is_commit, text = self.random.random() < 0.8, self.random.randrange(TEXTS)
        if running is None:
            self.threads += 1
            self.log.append(Written(self.threads, gtid, is_commit, 0, 0, text))
            return
        number = len(running.written)
        text = running.texts[number] if number < len(running.texts) else text
        thread_id, statement = running.thread_id, running.statement
        self.log.append(Written(thread_id, gtid, is_commit, statement, number, text))
        running.written.append(gtid)

    # What happens.

    def connect(self) -> None:
        place = self.random.randrange(SESSIONS)
        if self.sessions[place] is None:
            self.threads += 1
            self.sessions[place] = Session(self.threads)
            self.sayings.taken(self.threads, self.position(len(self.log)))

    def send(self) -> None:
        session = self.pick()
        if session is None or session.running is not None:
            return
        self.statements += 1
        session.number += 1
        planned = self.random.choice((0, 1, 1, 1, 1, 2, 3))
        if session.has_hidden:
            planned = min(planned, 1)
        makes = planned if self.random.random() < 0.8 else self.random.randrange(4)
        if self.kind is Log.OLD_MARIADB and planned:
            # What is planned is what a statement makes at most; here nothing tells of more.
            makes = min(makes, planned)
        texts = tuple(self.random.randrange(TEXTS) for _ in range(planned))
        is_intended = self.random.random() < 0.9
        if self.is_usual and self.random.random() < 0.98:
            planned = makes = 1
            is_intended = True
        session.running = Running(
            session.thread_id, self.statements, session.number, texts, makes, is_intended
        )
        if is_intended:
            self.sayings.intend(session.thread_id, session.number, session.running.plans)
            session.has_hidden, session.was_hiding = False, session.has_hidden

    def execute(self) -> None:
        running = [one.running for one in self.sessions.values() if one and one.running]
        running = [one for one in (*running, *self.orphans) if len(one.written) < one.makes]
        if running:
            self.write(self.random.choice(running))

    def bypass(self) -> None:
        self.write(None)

    def reply(self) -> None:
        session = self.pick()
        if session is None or session.running is None:
            return
        running = session.running
        if len(running.written) < running.makes:
            return
        session.running = None
        thread_id, kind = session.thread_id, self.random.random()
        if self.is_usual and self.random.random() < 0.95:
            kind = 0.27 if kind < 0.1 and running.texts else 1.0
        if kind < 0.1 and running.makes:
            # An error, or rows without a place for it: nothing is told.
            if self.flavor is Flavor.MYSQL and self.random.random() < 0.5:
                executed = str(self.position(len(self.log)))
                self.sayings.done(thread_id, running.number, executed, is_bound=True)
                return
            if running.is_intended:
                self.sayings.done(thread_id, running.number, None, ())
            session.has_hidden = not running.is_intended
            return
        plans = None
        if kind < 0.3:
            plans = running.plans[: running.makes if kind < 0.25 else 0]
        last = self.told(running) if running.written else None
        if last is None and not running.is_intended:
            return
        self.sayings.done(thread_id, running.number, last, plans)
        session.has_hidden = session.was_hiding = False

    def told(self, running: Running) -> str:
        if self.flavor is Flavor.MARIADB:
            return str(running.written[-1])
        return str(GtidSet.of(gtid for gtid in running.written if isinstance(gtid, MysqlGtid)))

    def disconnect(self) -> None:
        place = self.random.randrange(SESSIONS)
        session = self.sessions[place]
        if session is None or session.must_stay or self.random.random() < 0.7:
            return
        self.sessions[place] = None
        if session.running is not None:
            self.orphans.append(session.running)
            self.sayings.lost(session.thread_id)
        self.sayings.given(session.thread_id)

    def end(self) -> None:
        """The thread of a session that was lost is gone, done with its statement or not."""
        if self.orphans:
            self.orphans.remove(self.random.choice(self.orphans))

    def start_source(self) -> None:
        """Start the source anew: its threads are counted anew."""
        if self.random.random() < 0.5 or any(
            session is not None and session.must_stay for session in self.sessions.values()
        ):
            return
        for place, session in self.sessions.items():
            if session is not None:
                if session.running is not None:
                    self.sayings.lost(session.thread_id)
                self.sayings.given(session.thread_id)
                self.sessions[place] = None
        self.orphans.clear()
        self.threads = 0
        self.starts.append(len(self.log))

    def feed(self) -> None:
        """Let a feed read on, and ask for what is known; sometimes also for what is not."""
        number = self.random.randrange(len(self.feeds))
        start = self.feeds[number]
        end = min(len(self.log), start + self.random.randrange(1, 50 if self.is_usual else 5))
        if start in self.starts:
            self.attributions.source_started(self.position(start))
        end = min(end, *(each for each in self.starts if start < each), len(self.log))
        if self.is_usual and self.lateness.random() < 0.8:
            # Most groups come behind the replies to their statements.
            running = {
                one.running.statement for one in self.sessions.values() if one and one.running
            }
            untold = (at for at in range(start, end) if self.log[at].statement in running)
            end = next(untold, end)
        item, found = self.log[start:end], None
        if item:
            is_late = self.lateness.random() < 0.5
            read = [each.read(self.kind) for each in item]
            found = self.attributions.read_told(arrays_of(read), is_late=is_late)
        told = set() if found is None else set(found.numbers)
        self.found_together += len(told)
        watch = self.attributions.watch()
        groups = [each.read(self.kind) for number, each in enumerate(item) if number not in told]
        wanted = [each for each in groups if self.attributions.wants(each, watch)]
        self.attributions.read(wanted, self.position(end))
        self.feeds[number] = end
        for each in item:
            self.ask(each)

    def ask(self, group: Written) -> None:
        is_pending = self.attributions.is_pending(group.gtid)
        if is_pending and self.random.random() < 0.9:
            return
        self.check(group, self.attributions.find(group.read(self.kind), wait_s=0.0))

    def check(self, group: Written, found: GroupPlan | Unattributed) -> None:
        if isinstance(found, GroupPlan):
            assert label(found) == (group.statement, group.number, group.text), group
            assert self.found.setdefault(group.gtid, found) == found
            self.plans += 1
        elif group.gtid in self.found:
            assert self.has_failed or (
                found.reason in (RowsReason.FORGOTTEN, RowsReason.STRANGER) and self.folder is None
            )

    def ask_again(self) -> None:
        """Whatever was read may be asked for again."""
        end = max(self.feeds)
        if end:
            self.ask(self.log[self.random.randrange(end)])

    def lag(self) -> None:
        """Another feed begins somewhere before."""
        self.feeds = [*self.feeds[-1:], self.random.randrange(max(self.feeds) + 1)]
        self.attributions.begin(self.position(self.feeds[-1]))

    def restart(self) -> None:
        """Kill binlane; the source's threads go on."""
        if self.folder is None or self.random.random() < 0.7:
            return
        if any(session is not None and session.must_stay for session in self.sessions.values()):
            return
        self.orphans += [one.running for one in self.sessions.values() if one and one.running]
        self.sessions = dict.fromkeys(range(SESSIONS))
        if self.random.random() < 0.3:
            self.fail_machine(self.folder)
        elif self.random.random() < 0.5:
            self.attributions.hear()
        self.stop_hearing()
        self.attributions = Attributions(self.folder, self.flavor, self.settings)
        self.sayings = self.begin_to_speak()
        self.feeds = [self.random.randrange(min(self.feeds) + 1)]
        self.attributions.begin(self.position(self.feeds[0]))

    def fail_machine(self, folder: Path) -> None:
        """Lose the ends of files; by the time that it is up again the source's threads are gone."""
        for suffix in ("statements", "groups"):
            for path in sorted(folder.glob(f"*.{suffix}"))[-self.random.randrange(1, 3) :]:
                os.truncate(path, self.random.randrange(path.stat().st_size + 1))
        number = self.random.randbytes(len(statement_journal._MACHINE) - 1)
        self.monkeypatch.setattr(
            statement_journal, "_MACHINE", statement_journal._MACHINE[:1] + number
        )
        self.orphans.clear()
        self.has_failed = True

    def pick(self) -> Session | None:
        return self.sessions[self.random.randrange(SESSIONS)]

    def steps(self, count: int) -> Iterator[str]:
        weights = {
            "connect": 8,
            "send": 12,
            "execute": 16,
            "reply": 12,
            "bypass": 4,
            "disconnect": 2,
            "end": 4,
            "feed": 14,
            "ask_again": 4,
            "lag": 1,
            "restart": 1,
            "start_source": 1,
        }
        if self.is_usual:
            usual = {"send": 60, "execute": 80, "reply": 60, "bypass": 1, "feed": 6, "ask_again": 1}
            weights |= usual
        if self.has_visitors:
            weights |= {"connect": 60, "disconnect": 60}
        yield from self.random.choices(list(weights), list(weights.values()), k=count)

    def run(self, count: int) -> None:
        for step in self.steps(count):
            getattr(self, step)()
        for group in self.log[: max(self.feeds)]:
            self.check(group, self.attributions.find(group.read(self.kind), wait_s=0.0))


def arrays_of(read: Sequence[ReadGroup]) -> RunArrays:
    """A run of groups, of each of which nothing is there but its GTID event."""
    data = bytearray()
    events = np.zeros((layout.EVENT_SIZE, len(read)), np.int32)
    groups = np.zeros((layout.GROUP_SIZE, len(read)), np.int64)
    for number, (gtid, *_) in enumerate(read):
        kind, body = EventType.GTID_TAGGED_LOG, b""  # of which the kernel reads nothing
        if isinstance(gtid, Gtid):
            kind, body = EventType.GTID, Struct("<QI").pack(gtid.sequence, gtid.domain_id)
        elif not gtid.tag:
            source = UuidValue(gtid.source_id).bytes
            kind, body = EventType.GTID_LOG, bytes(1) + source + Struct("<Q").pack(gtid.sequence)
        events[[layout.EVENT_OFFSET, layout.EVENT_TYPE], number] = len(data), kind
        groups[[layout.GROUP_FIRST, layout.GROUP_END], number] = number, number + 1
        data += bytes(HEADER_LENGTH) + body
    threads = np.array([each.thread_id for each in read], np.int64)
    return np.frombuffer(bytes(data) + bytes(PADDING), np.uint8).copy(), events, groups, threads


def play(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seeds: range,
    steps: int,
    *,
    is_relayed: bool = False,
    is_usual: bool = False,
) -> int:
    plans = told = 0
    for seed in seeds:
        log = tuple(Log)[seed % 3]
        folder = tmp_path / str(seed) if seed % 4 else None
        world = World(seed, folder, log, monkeypatch, is_relayed=is_relayed, is_usual=is_usual)
        try:
            world.run(steps)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        finally:
            world.close()
        plans += world.plans
        told += world.found_together
    assert told > len(seeds) or not (is_usual and KernelHearing.is_possible())
    return plans


def test_no_plan_of_another_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(tmp_path, monkeypatch, range(120), 250) > 1000


def test_no_plan_of_another_statement_of_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(tmp_path, monkeypatch, range(120), 250, is_relayed=True) > 1000


def test_no_plan_of_another_statement_among_many_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(tmp_path, monkeypatch, range(60), 600, is_relayed=True, is_usual=True) > 1000


@pytest.mark.slow
@pytest.mark.parametrize(("is_relayed", "is_usual"), [(False, False), (True, False), (True, True)])
def test_no_plan_of_another_statement_in_many_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_relayed: bool, is_usual: bool
) -> None:
    ways, kinds = range(1000, 5000), {"is_relayed": is_relayed, "is_usual": is_usual}
    assert play(tmp_path, monkeypatch, ways, 400, **kinds) > 10_000
