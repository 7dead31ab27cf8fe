"""The statements of a run that may change objects, and what becomes of them in one binlog, as kernels take it.

Such a statement stands behind the GTID of its group, and has at most rows behind it. What a binlog makes of it stands in arrays, so
that its group is copied, or left out, in one pass with those around it; what it does to the binlog's
memory is followed for all statements of a part at once. A part ends behind a statement that bears
on what comes behind it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from operator import is_
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.ddl_texts import DdlReader, DdlText, context_of
from binlane.binlogs.routing.ddl_verdicts import (
    DdlVerdict,
    DdlVerdicts,
    MemoryFollower,
    changes_links,
    what_decides,
)
from binlane.binlogs.routing.payload_cuts import MadeBodies
from binlane.binlogs.routing.routed_group import Omission
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.table_bits import TableBits
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.scanner import Numbers, Small
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.names import TableName
from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition

_BESIDE: Final = (lay.MAP, lay.ROWS, lay.TEXT, lay.LENGTH_TEXT, lay.XID)
_GTID: Final = int(EventType.GTID)
_LEAST: Final = 14
"""Bytes of the shortest body of a QUERY."""
_FLAGS_AT: Final = HEADER_LENGTH + 12
_HAS_COMMIT_ID: Final = 2
_IS_XA: Final = 0xC0
_HAS_PHASES: Final = 2 | 4 | 8
"""Bits of a GTID by which an ALTER is begun, committed or rolled back on its own."""

Mapped = Callable[[range, frozenset[TableName]], frozenset[TableName]]
"""Gives those of some tables that have maps in some groups of the run."""


class RunDdl:
    """The statements of a run that may change objects, one in a group.

    Args:
        run: The run; the index of its events receives the numbers of the statements.
        roles: The roles of the run's types of events in routing.
        kinds: The kind of each text, by its number.
        reader: Reads statements, and knows those of runs before.
        first: The number of the first statement among what has bodies of its own.

    Attributes:
        run: The run that was given.
        first: The number of the first statement.
        groups: The numbers of their groups, in order.
        texts: The statements, one for each of `groups`.

    Raises:
        CodecError: If a statement's context or its text is damaged.
    """

    def __init__(
        self, run: RawRun, roles: Small, kinds: Numbers, reader: DdlReader, first: int
    ) -> None:
        self.run = run
        self.first = first
        self.groups: list[int] = []
        self.texts: list[DdlText] = []
        self._places: list[tuple[int, int]] = []
        data = self._data = run.data.data
        events: list[int] = []
        for group, event, start, end, is_compressed in _first_statements(run, roles, kinds):
            if end - start < _LEAST:
                continue
            text = reader.text(bytes(data[start:end]), is_compressed=is_compressed)
            if text is not None:
                events.append(event)
                self.groups.append(group)
                self.texts.append(text)
                self._places.append((start, end))
        run.events[layout.EVENT_MAP, events] = lay.DDL
        run.events[layout.EVENT_BITMAP, events] = range(first, first + len(events))

    def numbers(self, groups: range) -> range:
        """The numbers of the statements in some groups, from 0."""
        start = bisect_left(self.groups, groups.start)
        return range(start, bisect_left(self.groups, groups.stop, start))

    def body(self, number: int) -> bytes:
        """The body of the event of a statement."""
        start, end = self._places[number]
        return bytes(self._data[start:end])

    def query(self, number: int) -> QueryEvent:
        """The event of a statement with its own context, but for thread and time."""
        data = self.body(number)
        return replace(self.texts[number].body, status_vars=context_of(data))

    def has_maps(self, groups: range) -> bool:
        """True if some groups have rows."""
        at = bisect_left(self._mapped, groups.start)
        return at < len(self._mapped) and self._mapped[at] < groups.stop

    @cached_property
    def _mapped(self) -> list[int]:
        """The groups with rows."""
        run = self.run
        sums = np.cumsum(run.events[layout.EVENT_TYPE] == EventType.TABLE_MAP)
        first, end = run.groups[layout.GROUP_FIRST], run.groups[layout.GROUP_END]
        counts = sums[end - 1] - sums[first]
        found: list[int] = np.flatnonzero(counts).tolist()
        return found

    @property
    def told(self) -> list[int]:
        """Groups with a change that a session had logged as a statement."""
        return [group for group, text in zip(self.groups, self.texts, strict=True) if text.is_told]


def _first_statements(
    run: RawRun, roles: Small, kinds: Numbers
) -> Iterator[tuple[int, int, int, int, bool]]:
    """The statements that nobody has a number for: group, event, place and end of its body.

    The last value is True if it is compressed.

    Before it, its group has a GTID and maybe a bracket; behind it, rows and their brackets alone.
    """
    first, end = run.groups[layout.GROUP_FIRST], run.groups[layout.GROUP_END]
    last = int(end[-1])
    types, numbers = run.events[layout.EVENT_TYPE, :last], run.events[layout.EVENT_MAP, :last]
    roles_of = roles[types]
    is_query = roles_of == lay.QUERY
    is_unread = is_query & (numbers == lay.UNREAD)
    is_bracket = is_query & (numbers >= 0)
    is_bracket &= kinds[np.where(is_bracket, numbers, 0)] == lay.CONTEXT
    is_other = ~(is_bracket | np.isin(roles_of, _BESIDE))
    sums = np.concatenate([[0], np.cumsum(is_other)])
    # All is known but the statement and the GTID before it.
    groups = np.flatnonzero(sums[end] - sums[first] == 2)
    heads = first[groups]
    is_meant = np.isin(roles_of[heads], (lay.GTID, lay.MYSQL_GTID)) & (end[groups] > heads + 1)
    groups, heads = groups[is_meant], heads[is_meant]
    events = heads + 1 + is_bracket[heads + 1]
    events = np.minimum(events, end[groups] - 1)
    is_meant = is_unread[events] & ~_are_odd(run, heads)
    groups, events = groups[is_meant], events[is_meant]
    is_compressed = types[events] == EventType.QUERY_COMPRESSED
    start, end = run.events[[layout.EVENT_OFFSET, layout.EVENT_END]][:, events]
    columns = (groups, events, start + HEADER_LENGTH, end, is_compressed)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _are_odd(run: RawRun, heads: Numbers) -> npt.NDArray[np.bool_]:
    """True for each event that is a GTID of MariaDB with a part of an ALTER or XA transaction."""
    at = run.events[layout.EVENT_OFFSET, heads].astype(np.int64) + _FLAGS_AT
    flags = run.data[at]
    extra_at = at + 1 + 8 * (flags & _HAS_COMMIT_ID != 0)
    has_extra = extra_at < run.events[layout.EVENT_END, heads]
    extra = np.where(has_extra, run.data[np.where(has_extra, extra_at, 0)], 0)
    is_mariadb = run.events[layout.EVENT_TYPE, heads] == _GTID
    found: npt.NDArray[np.bool_] = (flags & _IS_XA != 0) | (extra & _HAS_PHASES != 0)
    found &= is_mariadb
    return found


class BinlogDdl:
    """The part that one scoped binlog has of a run's statements on objects.

    Args:
        definition: Definition of the binlog to route to.
        tables: The binlog's bits for tables.
    """

    def __init__(self, definition: Definition, tables: TableBits) -> None:
        self._definition = definition
        self._tables = tables
        self._verdicts = DdlVerdicts(definition)
        self._run: RunDdl
        self._made: MadeBodies
        self._found: list[DdlVerdict | None] = []
        self._found_by: list[object] = []
        self._decided: range = range(0)
        self._deciding: tuple[object, ...] = ()
        self._has_end = False
        self._actions: list[int] = []
        self._behind: dict[range, tuple[Memory, Memory]] = {}

    def begin(self, run: RunDdl, made: MadeBodies, *, has_others: bool, has_rows: bool) -> None:
        """Take the statements of a run.

        Args:
            run: The run's statements that may change objects.
            made: Receives the action on each, and the bodies that are made.
            has_others: True if anything else in the run is judged by what is remembered.
            has_rows: True if the run has rows.
        """
        self._run, self._made = run, made
        self._has_others, self._has_rows = has_others, has_rows
        self._found = [None] * len(run.texts)
        self._found_by = [None] * len(run.texts)
        self._decided = range(0)
        self._behind = {}

    def odd(self, memory: Memory) -> list[int]:
        """The groups of the statements that are for the reference, with a memory as it is."""
        run = self._run
        if self._definition.follows_cascades:
            return run.groups
        found = [self._verdict(number, memory) for number in range(len(run.texts))]
        return [group for group, verdict in zip(run.groups, found, strict=True) if verdict is None]

    def _verdict(self, number: int, memory: Memory) -> DdlVerdict | None:
        """The verdict on a statement, with a memory as it is before it."""
        context = self._verdicts.context(memory)
        if self._found_by[number] is not context:
            run = self._run
            found = self._verdicts.verdict(run.texts[number], memory, run.run.format)
            self._found[number], self._found_by[number] = found, context
        return self._found[number]

    def decide(self, groups: range, memory: Memory) -> None:
        """Say what becomes of the statements in some groups, up to one that bears on others.

        Args:
            groups: The groups that the binlog gets next.
            memory: Routing's memory of the groups before them.
        """
        numbers, links = self._run.numbers(groups), memory.links
        deciding = (*what_decides(memory), links.keys, links.unknown, links.is_complete)
        is_same = bool(self._deciding) and all(map(is_, deciding, self._deciding))
        is_all = self._has_end or numbers.stop <= self._decided.stop
        if is_same and is_all and numbers.start in self._decided:
            return
        self._deciding, self._has_end, stop = deciding, False, numbers.start
        self._tables.trust()
        for number in numbers:
            stop = number + 1
            if self._decide(number, memory):
                self._has_end = True
                break
        self._decided = range(numbers.start, stop)
        self._made.decide(self._run.first + numbers.start, self._actions, ends=self._has_end)
        self._actions = []

    def leave(self) -> None:
        """Leave the statements to the reference."""
        self._decided = range(0)
        self._made.leave_statements()

    def _decide(self, number: int, memory: Memory) -> bool:
        """Say what becomes of a statement; True if a part ends behind it."""
        run = self._run
        text, verdict = run.texts[number], self._verdict(number, memory)
        if verdict is None or self._definition.follows_cascades:
            self._actions.append(lay.BY_REFERENCE)
            return True
        self._actions.append(verdict.action)
        if verdict.action == lay.PUT_BODY:
            body = verdict.body(run.body(number), text, self._definition.scope)
            self._made.keep(run.first + number, body)
        return self._ends(verdict, memory)

    def _ends(self, verdict: DdlVerdict, memory: Memory) -> bool:
        """True if what is behind a statement may be judged otherwise than what is before."""
        if verdict.objects is not None or self._has_others or changes_links(verdict, memory.links):
            return True
        self._doubt(verdict)
        return False

    def _doubt(self, verdict: DdlVerdict) -> None:
        """Have links of tables count as unknown that are gone behind a statement, or moved."""
        if not self._has_rows:
            return
        effects = verdict.effects
        gone = {*effects.drops, *(name for pair in effects.renames for name in pair)}
        if gone:
            self._tables.doubt(gone)
        if effects.dropped_databases:
            self._tables.doubt_databases(effects.dropped_databases)

    def behind(
        self,
        groups: range,
        memory: Memory,
        mapped: Mapped,
        by_reference: Callable[[int, Memory], Memory],
        reached: Position | None,
    ) -> Memory:
        """Give the memory behind some groups of rows and statements on objects.

        Args:
            groups: Consecutive groups of the run, by their numbers.
            memory: Routing's memory of the groups before them.
            mapped: Gives the tables that have rows in some of them.
            by_reference: Gives the memory behind one of them for which there is no verdict.
            reached: Position of the source before the first; None where nobody asks for it.
        """
        known = self._behind.get(groups)
        if known is not None and known[0] is memory:
            return known[1]
        run = self._run
        follower = MemoryFollower(memory, self._definition.scope)
        places = _Places(run.run, groups.start, reached)
        following = groups.start
        for number in run.numbers(groups):
            group = run.groups[number]
            if run.has_maps(range(following, group)):
                follower.with_rows(mapped(range(following, group), follower.empty_tables))
            following = group
            verdict = self._verdict(number, follower.deciding)
            if verdict is None:
                behind = by_reference(group, follower.memory)
                following = group + 1
                follower = MemoryFollower(behind, self._definition.scope)
            else:
                follower.follow(verdict, partial(run.query, number), partial(places.of, group))
        rest = range(following, groups.stop)
        if run.has_maps(rest):
            follower.with_rows(mapped(rest, follower.empty_tables))
        self._behind[groups] = memory, follower.memory
        return follower.memory

    def bare(self, groups: range, plans: Small) -> int:
        """The number of statements that are there without rows in some groups.

        Args:
            groups: Consecutive groups of the run, by their numbers.
            plans: The number of texts of each group that has a plan, by the group's number.
        """
        run, planned = self._run, set(np.flatnonzero(plans).tolist())
        numbers = run.numbers(groups)
        found = zip(run.groups, self._found, strict=True)
        return sum(
            verdict is not None
            and verdict.action != lay.DROP
            and group not in planned
            and not run.has_maps(range(group, group + 1))
            for group, verdict in islice(found, numbers.start, numbers.stop)
        )

    def omissions(self, groups: range) -> Iterator[tuple[Omission, int]]:
        """The parts of statements in some groups that are left out, with their numbers."""
        numbers = self._run.numbers(groups)
        found = [self._found[number] for number in numbers]
        yield from Counter(
            one for verdict in found if verdict is not None for one in verdict.omissions
        ).items()


class _Places:
    """GTIDs of groups of a run, and positions of the source before them, which are asked for in order.

    Args:
        run: The run that the groups are of.
        first: Number of the group that the position is before.
        reached: That position; None where nobody asks for it.
    """

    def __init__(self, run: RawRun, first: int, reached: Position | None) -> None:
        self._run = run
        self._first = first
        self._reached = reached

    def of(self, group: int) -> tuple[AnyGtid | None, Position | None]:
        """The GTID of a group, and the position before it, where anybody asks for it."""
        if self._reached is None:
            return None, None
        if group > self._first:
            self._reached = self._run.position_after(self._reached, group, start=self._first)
            self._first = group
        return self._run.gtid(group), self._reached
