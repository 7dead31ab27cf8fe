"""Sessions, groups, replies, kills and restarts in any order: no plan of another statement, ever.

A source is played that writes groups of statements of several lanes; sessions and the routing thread
do what they do, in random order. Whatever plan is found must be that of the group.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from binlane.codec.types import Flavor
from binlane.port import statement_journal
from binlane.port.attributions import Attributions, AttributionSettings
from binlane.port.lane_groups import Reason, Unattributed
from binlane.port.sayings import Hearing, Sayings, SentSayings
from binlane.positions import AnyGtid, Gtid, GtidPosition, GtidSet, MysqlGtid, Position
from binlane.routing.plan import EncodedEvent, GroupPlan, Text

SETTINGS = AttributionSettings(wait_s=0.0, file_bytes=2000)
LANES = 3
UUID = "00000000-0000-0000-0000-000000000001"


def plan(statement: int, number: int) -> GroupPlan:
    """A plan that tells of which group it is."""
    event = EncodedEvent(2, f"{statement}.{number}".encode())
    return GroupPlan(binlogs={"a": (Text((event,)),)})


def label(found: GroupPlan) -> tuple[int, int]:
    (text,) = found.binlogs["a"]
    assert isinstance(text, Text)
    statement, number = text.events[0].body.decode().split(".")
    return int(statement), int(number)


@dataclass
class Written:
    """A group in the source's log; `statement` 0 for one that came past the port."""

    lane: int
    gtid: AnyGtid
    is_commit: bool
    statement: int
    number: int


@dataclass
class Running:
    """A statement that the source executes."""

    statement: int
    number: int
    planned: int
    makes: int
    is_intended: bool = True
    written: list[AnyGtid] = field(default_factory=list)


@dataclass
class Session:
    """A session in a lane."""

    number: int = 0
    running: Running | None = None
    has_hidden: bool = False
    was_hiding: bool = False


class World:
    """A source, its sessions, and binlane between them.

    With `is_relayed` sessions speak from another process, and nobody hears them but when it matters.
    """

    def __init__(
        self,
        seed: int,
        folder: Path | None,
        flavor: Flavor,
        monkeypatch: pytest.MonkeyPatch,
        *,
        is_relayed: bool = False,
    ) -> None:
        self.monkeypatch = monkeypatch
        self.is_relayed = is_relayed
        self.settings = replace(SETTINGS, is_relayed=is_relayed)
        self.random = random.Random(seed)
        self.folder = folder
        self.flavor = flavor
        self.log: list[Written] = []
        self.sequences: dict[object, int] = {}
        self.sessions: dict[int, Session | None] = dict.fromkeys(range(LANES))
        self.orphans: dict[int, Running | None] = {}
        self.statements = 0
        self.plans = 0
        self.found: dict[AnyGtid, GroupPlan] = {}
        self.has_failed = False
        self.feeds = [0]
        self.attributions = Attributions(folder, flavor, self.settings)
        self.hearing: Hearing | None = None
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

    def begin_to_speak(self) -> Sayings:
        """What sessions speak by from now on."""
        if not self.is_relayed:
            return self.attributions
        there, here = socket.socketpair()
        self.hearing = Hearing(self.attributions, lambda _: None)
        self.hearing.add(here)
        self.attributions.hear = self.hearing.hear
        return SentSayings(there)

    def position(self, end: int) -> Position:
        """What is done once so many groups were read."""
        if self.flavor is Flavor.MARIADB:
            return GtidPosition.of(w.gtid for w in self.log[:end] if isinstance(w.gtid, Gtid))
        return GtidSet.of(w.gtid for w in self.log[:end] if isinstance(w.gtid, MysqlGtid))

    def write(self, lane: int, running: Running | None) -> None:
        """Let the source write a group."""
        if self.flavor is Flavor.MARIADB:
            domain = self.random.choice((0, 0, 0, 7))
            sequence = self.sequences[domain] = self.sequences.get(domain, 0) + 1
            gtid: AnyGtid = Gtid(domain, 1000 + lane if running else 1, sequence)
        else:
            tag = f"binlane_{lane}" if running else ""
            sequence = self.sequences[tag] = self.sequences.get(tag, 0) + 1
            gtid = MysqlGtid(UUID, sequence, tag)
        statement, number = (running.statement, len(running.written)) if running else (0, 0)
        self.log.append(Written(lane, gtid, self.random.random() < 0.8, statement, number))
        if running is not None:
            running.written.append(gtid)

    # What happens.

    def connect(self) -> None:
        lane = self.random.randrange(LANES)
        self.attributions.hear()
        if self.sessions[lane] is None and self.attributions.is_clear(lane):
            assert lane not in self.orphans, "its thread is still there"
            self.sessions[lane] = Session()
            position, thread_id = self.position(len(self.log)), self.random.randrange(1, 99)
            if self.is_relayed:
                self.attributions.taken(lane, thread_id)
            self.sayings.taken(lane, thread_id, position)

    def send(self) -> None:
        lane, session = self.pick()
        if session is None or session.running is not None:
            return
        self.statements += 1
        session.number += 1
        planned = self.random.choice((0, 1, 1, 1, 1, 2, 3))
        if session.has_hidden:
            planned = min(planned, 1)
        makes = planned if self.random.random() < 0.8 else self.random.randrange(4)
        is_intended = self.random.random() < 0.9
        session.running = Running(self.statements, session.number, planned, makes, is_intended)
        if is_intended:
            plans = [plan(self.statements, number) for number in range(planned)]
            self.sayings.intend(lane, session.number, plans)
            session.has_hidden, session.was_hiding = False, session.has_hidden

    def execute(self) -> None:
        lane, session = self.pick()
        running = session.running if session is not None else self.orphans.get(lane)
        if running is not None and len(running.written) < running.makes:
            self.write(lane, running)

    def bypass(self) -> None:
        self.write(0, None)

    def reply(self) -> None:
        lane, session = self.pick()
        if session is None or session.running is None:
            return
        running = session.running
        if len(running.written) < running.makes:
            return
        session.running = None
        kind = self.random.random()
        if kind < 0.1 and running.makes:
            # An error, or rows without a place for it: nothing is told.
            if running.is_intended:
                self.sayings.done(lane, running.number, None, ())
            session.has_hidden = not running.is_intended
            return
        plans = None
        if kind < 0.3:
            count = running.makes if kind < 0.25 else 0
            plans = [plan(running.statement, number) for number in range(count)]
        last = self.told(running) if running.written else None
        if last is None and not running.is_intended:
            return
        self.sayings.done(lane, running.number, last, plans)
        session.has_hidden = session.was_hiding = False

    def told(self, running: Running) -> str:
        if self.flavor is Flavor.MARIADB:
            return str(running.written[-1])
        return str(GtidSet.of(gtid for gtid in running.written if isinstance(gtid, MysqlGtid)))

    def disconnect(self) -> None:
        lane, session = self.pick()
        if session is None or session.was_hiding or self.random.random() < 0.7:
            return
        self.sessions[lane] = None
        if session.running is not None:
            self.orphans[lane] = session.running
            self.sayings.lost(lane)
        self.sayings.given(lane)

    def end(self) -> None:
        """The thread of a session that was lost is gone, done with its statement or not."""
        if self.orphans:
            lane = self.random.choice(sorted(self.orphans))
            del self.orphans[lane]
            self.attributions.hear()
            self.attributions.ended(lane, self.position(len(self.log)))

    def feed(self) -> None:
        """Let a feed read on, and ask for what is known; sometimes also for what is not."""
        number = self.random.randrange(len(self.feeds))
        start = self.feeds[number]
        end = min(len(self.log), start + self.random.randrange(1, 5))
        item = [written for written in self.log[start:end] if written.statement]
        groups = [(each.lane, each.gtid, each.is_commit) for each in item]
        self.attributions.read(groups, self.position(end))
        self.feeds[number] = end
        for each in item:
            self.ask(each)

    def ask(self, group: Written) -> None:
        is_pending = self.attributions.is_pending(group.lane, group.gtid)
        if is_pending and self.random.random() < 0.9:
            return
        self.check(group, self.attributions.find(group.lane, group.gtid, wait_s=0.0))

    def check(self, group: Written, found: GroupPlan | Unattributed) -> None:
        if isinstance(found, GroupPlan):
            assert label(found) == (group.statement, group.number), group
            assert self.found.setdefault(group.gtid, found) == found
            self.plans += 1
        elif group.gtid in self.found:
            assert self.has_failed or (found.reason is Reason.FORGOTTEN and self.folder is None)

    def ask_again(self) -> None:
        """Whatever was read may be asked for again."""
        end = max(self.feeds)
        if end:
            group = self.log[self.random.randrange(end)]
            if group.statement:
                self.ask(group)

    def lag(self) -> None:
        """Another feed begins somewhere before."""
        self.feeds = [*self.feeds[-1:], self.random.randrange(max(self.feeds) + 1)]
        self.attributions.begin(self.position(self.feeds[-1]))

    def restart(self) -> None:
        """Kill binlane; the source's threads go on."""
        if self.folder is None or self.random.random() < 0.7:
            return
        if any(session is not None and session.was_hiding for session in self.sessions.values()):
            return
        for lane, session in self.sessions.items():
            if session is not None:
                self.orphans[lane] = session.running or Running(0, 0, 0, 0)
        self.sessions = dict.fromkeys(range(LANES))
        if self.random.random() < 0.3:
            self.fail_machine(self.folder)
        elif self.random.random() < 0.5:
            self.attributions.hear()
        self.stop_hearing()
        self.attributions = Attributions(self.folder, self.flavor, self.settings)
        self.sayings = self.begin_to_speak()
        unended = self.attributions.unended
        assert {lane for lane, each in self.orphans.items() if each} <= set(unended)
        self.orphans = {lane: each for lane, each in self.orphans.items() if lane in unended}
        self.feeds = [self.random.randrange(min(self.feeds) + 1)]
        self.attributions.begin(self.position(self.feeds[0]))

    def fail_machine(self, folder: Path) -> None:
        """Lose the ends of files; by the time that it is up again the source's threads are gone."""
        for suffix in ("statements", "groups"):
            for path in sorted(folder.glob(f"*.{suffix}"))[-self.random.randrange(1, 3) :]:
                os.truncate(path, self.random.randrange(path.stat().st_size + 1))
        number = self.random.randbytes(len(statement_journal._MACHINE) - 1)
        self.monkeypatch.setattr(statement_journal, "_MACHINE", b"\1" + number)
        self.orphans.clear()
        self.has_failed = True

    def pick(self) -> tuple[int, Session | None]:
        lane = self.random.randrange(LANES)
        return lane, self.sessions[lane]

    def steps(self, count: int) -> Iterator[str]:
        weights = {
            "connect": 8,
            "send": 12,
            "execute": 16,
            "reply": 12,
            "bypass": 2,
            "disconnect": 2,
            "end": 4,
            "feed": 14,
            "ask_again": 4,
            "lag": 1,
            "restart": 1,
        }
        yield from self.random.choices(list(weights), list(weights.values()), k=count)

    def run(self, count: int) -> None:
        for step in self.steps(count):
            getattr(self, step)()
        for group in self.log[: max(self.feeds)]:
            if group.statement:
                found = self.attributions.find(group.lane, group.gtid, wait_s=0.0)
                self.check(group, found)


def play(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seeds: range,
    steps: int,
    *,
    is_relayed: bool = False,
) -> int:
    plans = 0
    for seed in seeds:
        flavor = (Flavor.MARIADB, Flavor.MYSQL)[seed % 2]
        folder = tmp_path / str(seed) if seed % 3 else None
        world = World(seed, folder, flavor, monkeypatch, is_relayed=is_relayed)
        try:
            world.run(steps)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        finally:
            world.close()
        plans += world.plans
    return plans


def test_no_plan_of_another_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(tmp_path, monkeypatch, range(120), 250) > 1000


def test_no_plan_of_another_statement_of_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(tmp_path, monkeypatch, range(120), 250, is_relayed=True) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("is_relayed", [False, True])
def test_no_plan_of_another_statement_in_many_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_relayed: bool
) -> None:
    assert play(tmp_path, monkeypatch, range(1000, 5000), 400, is_relayed=is_relayed) > 10_000
