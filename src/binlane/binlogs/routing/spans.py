"""Runs of event groups as bytes → the bytes that each binlog gets of them: the fast path of routing.

The spans of a group that stay are decided once for each table map and each shape of text, and
remembered; rows are never decoded. `route` is the reference: a group that holds anything but rows
and their brackets is decoded and given to that, unless all of it stays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.binlog_view import BinlogView, query_of
from binlane.binlogs.routing.event_roles import event_roles
from binlane.binlogs.routing.numbered_texts import CONTEXTS, NumberedTexts, larger
from binlane.binlogs.routing.password_hashing import password_groups
from binlane.binlogs.routing.planned_spans import Planned
from binlane.binlogs.routing.routed_group import TEXT_LEFT_OUT, BinlogPart, Omission, RoutedBinlog
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.routing.run_xa import RunXa
from binlane.binlogs.routing.session_format import (
    LOGGED_AS_STATEMENT,
    groups_of,
    is_logged_as_statement,
    odd_queries,
    statement_groups,
)
from binlane.binlogs.routing.texts import SHAPES_MAX, TEXT_MAX, TextNames, names_in_shape
from binlane.errors import CodecError
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.types import EventType, Flavor
from binlane.log.grouping.native import crc32_address
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.scanner import KnownTable, Numbers, Small
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import kernels
from binlane.names import TableName
from binlane.positions import Position
from binlane.statements.scope.definition import Definition
from binlane.statements.sql.logged_statements import logged_statement

if TYPE_CHECKING:
    from binlane.binlogs.routing.ddl_texts import DdlReader
    from binlane.binlogs.routing.run_ddl import RunDdl

_OUT_BYTES: Final = 4 << 20


def _never(group: int, memory: Memory) -> Memory:
    """The memory behind a group for which there is a verdict."""
    raise AssertionError((group, memory))


class SpanRouter:
    """Routes runs of one log into several binlogs.

    Args:
        definitions: Definitions of the binlogs; each is meant by its place in the sequence.
        memories: Routing's memory of each binlog; nothing by default. An unscoped one that was
            scoped before lacks objects, and asks for statements on them.
        has_tables_info: True if files of the binlogs may have Query events with tables info; those
            of other forms are for the reference, but for the brackets of groups.
        rereads_log: True if the log can be read again where a table comes into a scope.

    Attributes:
        statements: The groups of the run that was read last with a change that a session had logged
            as a statement; looked for if a binlog is unscoped.
    """

    def __init__(
        self,
        definitions: Sequence[Definition],
        memories: Sequence[Memory] = (),
        *,
        has_tables_info: bool = False,
        rereads_log: bool = False,
    ) -> None:
        self._rereads_log = rereads_log
        self._views = [BinlogView(one, one.scope.is_unscoped) for one in definitions]
        for view, memory in zip(self._views, memories, strict=False):
            view.asks = view.is_whole and bool(memory.left_out)
        self._has_unscoped = any(view.is_whole for view in self._views)
        self.statements: list[int] = []
        self._passwords: list[int] = []
        self._xa: RunXa | None = None
        self._ddl: RunDdl | None = None
        self._ddl_reader: DdlReader | None = None
        self._groups: RunGroups
        self._takes_all = not has_tables_info and all(
            view.is_whole and not view.asks for view in self._views
        )
        self._keeps_all = self._takes_all
        self._tables: list[KnownTable] = []
        self._tables_seen = 0
        self._names: dict[str, int] = {}
        self._table_names: Small = np.zeros(64, np.int32)
        self._wanted: Bytes = np.zeros(64, np.uint8)
        self._scratch: Bytes = np.zeros(TEXT_MAX + 2 * PADDING, np.uint8)
        self._out: Bytes = np.zeros(1 << 16, np.uint8)
        self._actions: Bytes = np.zeros(1 << 14, np.uint8)
        self._state: Numbers = np.zeros(lay.STATE_SIZE, np.int64)
        self._crc32 = crc32_address()
        self._texts = NumberedTexts()

    def read(self, groups: RunGroups) -> bool:
        """Learn the tables and texts of a run, before a binlog's bytes of it are asked for.

        Returns:
            True if that could be done; else a context in it is damaged, and `route` tells which.
        """
        try:
            self._read(groups)
        except CodecError:
            return False
        return True

    def _read(self, groups: RunGroups) -> None:
        self._groups, run = groups, groups.run
        self._learn_tables(run.tables)
        self._format = run.format
        self._roles = event_roles(
            has_plain_queries=run.format.post_header_length(EventType.QUERY) == 13
        )
        self._keeps_all = self._takes_all and not run.format.has_tables_info
        for view in self._views:
            view.converts = view.has_tables_info or run.format.has_tables_info
        self.statements = self._passwords = []
        is_any = groups.is_any(lay.HAS_STATEMENTS)
        has_statements = self._has_unscoped and is_any
        if has_statements or not self._keeps_all:
            self._resolve_all(run)
            if is_any and not self._find_packed(groups):
                # There were too many texts: those of this run alone are few enough, or nobody keeps
                # them.
                self._texts.forget()
                self._resolve_all(run)
                self._find_packed(groups)
        self._xa = self._xa_of(run) if is_any else None
        self._ddl = self._ddl_of(groups) if is_any else None
        if has_statements:
            is_told = self._are_read(run) & self._texts.is_told[self._text_numbers(run)]
            is_ddl = run.events[layout.EVENT_MAP] == lay.DDL
            queries = odd_queries(run, is_told | is_ddl)
            ddl = [] if self._ddl is None else self._ddl.told
            self.statements = sorted(
                {*_groups_with(run, is_told), *statement_groups(groups, queries), *ddl}
            )
            self._passwords = password_groups(run, queries)

    def _resolve_all(self, run: RawRun) -> None:
        """Find the numbers of the texts of a run, and learn those that are not known."""
        last = int(run.groups[layout.GROUP_END, -1])
        state = np.zeros(lay.RESOLVE_SIZE, np.int64)
        state[lay.RESOLVE_MAX] = TEXT_MAX
        has_begun_anew, resolve = False, kernels().resolve
        arrays = run.data, run.events, run.groups, self._roles
        while resolve(
            arrays,
            last,
            self._texts.arrays(self._table_names),
            self._wanted,
            self._scratch,
            state,
        ):
            if self._texts.is_full and has_begun_anew:
                run.events[layout.EVENT_MAP, state[lay.RESOLVE_NEXT]] = lay.UNREAD
                state[lay.RESOLVE_NEXT] += 1
                continue
            if self._texts.is_full:
                self._texts.forget()
                has_begun_anew = True
                state[lay.RESOLVE_NEXT] = 0
                continue
            length = int(state[lay.RESOLVE_LENGTH])
            self._learn_text(self._scratch[:length].tobytes(), int(state[lay.RESOLVE_KIND]))

    def _find_packed(self, groups: RunGroups) -> bool:
        """Find the numbers of payloads and compressed statements of a run, as far as there is room.

        Returns:
            True if that was all.
        """
        run = groups.run
        last = run.groups.item(layout.GROUP_END, -1)
        types = run.events[layout.EVENT_TYPE, :last]
        is_packed = (types == EventType.QUERY_COMPRESSED) & (self._roles[types] == lay.QUERY)
        if not self._keeps_all:
            is_payload = self._roles[types] == lay.PACKED
            is_packed |= is_payload
            payloads = np.flatnonzero(is_payload)
            run.events[layout.EVENT_BITMAP, payloads] = np.arange(payloads.shape[0])
            for view in self._views if payloads.shape[0] else ():
                view.made.forget(payloads.shape[0], 0)
        for event in np.flatnonzero(is_packed).tolist():
            is_text = run.events.item(layout.EVENT_TYPE, event) == EventType.QUERY_COMPRESSED
            shape = groups.statement_shape(event) if is_text else groups.payload_shape(event)
            number = None if shape is None else self._texts.packed_number(shape)
            if shape is not None and number is None:
                if self._texts.is_full:
                    run.events[layout.EVENT_MAP, event:last][is_packed[event:]] = lay.UNREAD
                    return False
                if is_text:
                    number = self._texts.add_packed(shape, b"".join(shape), lay.STATEMENT)
                    self._learn_statement(number, b"".join(shape))
                else:
                    number = self._texts.add_payload(shape, run.event(event))
                    for view in self._views:
                        view.verdicts[lay.ACTION, number] = lay.UNJUDGED
            run.events[layout.EVENT_MAP, event] = lay.UNREAD if number is None else number
        return True

    def _ddl_of(self, groups: RunGroups) -> RunDdl | None:
        """The statements on objects that are alone in their groups; None if there are none."""
        run = groups.run
        last = run.groups.item(layout.GROUP_END, -1)
        roles = self._roles[run.events[layout.EVENT_TYPE, :last]]
        is_unread = run.events[layout.EVENT_MAP, :last] == lay.UNREAD
        if not (is_unread & (roles == lay.QUERY)).any():
            return None
        from binlane.binlogs.routing.ddl_texts import DdlReader  # noqa: PLC0415  # parses SQL
        from binlane.binlogs.routing.run_ddl import RunDdl  # noqa: PLC0415  # parses SQL

        if self._ddl_reader is None:
            self._ddl_reader = DdlReader(reads_all=not self._takes_all)
        payloads = 0 if self._keeps_all else int(np.count_nonzero(roles == lay.PACKED))
        kinds = self._texts.table[lay.TEXT_KIND]
        ddl = RunDdl(run, self._roles, kinds, self._ddl_reader, payloads)
        if not ddl.texts:
            return None
        has_rows = groups.is_any(lay.HAS_MAPS)
        has_others = bool(self.groups_judged(run))
        for view in self._views:
            if not view.is_whole:
                view.begin_ddl(ddl, payloads, has_others=has_others, has_rows=has_rows)
        return ddl

    def _xa_of(self, run: RawRun) -> RunXa | None:
        """The XA transactions of a run; None if there are none."""
        xa = RunXa(run, self._roles, self._texts.table[lay.TEXT_KIND])
        return xa if xa.names else None

    def xa_groups(self, run: RawRun) -> list[int]:
        """The groups of the run that was read last that prepare or finish XA transactions."""
        return [] if self._xa is None else groups_of(run, self._xa.events)

    def leave_xa(self) -> None:
        """Leave the XA transactions of the run that was read last to the reference."""
        self._xa = None

    def odd_groups(self, run: RawRun, binlogs: Sequence[RoutedBinlog]) -> list[int]:
        """The groups of a run that was read that are for `route`, in one of the binlogs at least."""
        roles = self._roles[run.events[layout.EVENT_TYPE]]
        is_odd = roles == lay.REFERENCE
        if not self._keeps_all:
            numbers = run.events[layout.EVENT_MAP]
            is_read = np.isin(roles, (lay.QUERY, lay.VARIABLE, lay.PACKED))
            is_odd |= (roles == lay.OTHER) | (is_read & (numbers == lay.UNREAD))
            is_odd |= self._for_reference(binlogs, roles, numbers)
        return sorted({*_groups_with(run, is_odd), *self._passwords, *self._odd_ddl(binlogs)})

    def _odd_ddl(self, binlogs: Sequence[RoutedBinlog]) -> set[int]:
        """The groups of statements on objects that are for `route` in one of the binlogs as they are."""
        if self._ddl is None:
            return set()
        odd: set[int] = set()
        for view, binlog in zip(self._views, binlogs, strict=True):
            self._know(view, binlog.has_tables_info, binlog.memory)
            if view.converts or (view.is_whole and view.asks):
                return set(self._ddl.groups)
            if view.ddl is not None:
                odd.update(view.ddl.odd(binlog.memory))
        return odd

    @property
    def ddl_groups(self) -> list[int]:
        """The groups of the run that was read last with statements that may change objects alone."""
        is_any = any(view.ddl is not None for view in self._views)
        return self._ddl.groups if self._ddl is not None and is_any else []

    def groups_judged(self, run: RawRun) -> list[int]:
        """The groups of a run that was read with what is judged anew when a binlog's memory changes."""
        if self._keeps_all:
            return []
        is_judged = self._texts.is_judged[self._text_numbers(run)]
        return _groups_with(run, self._have_numbers(run) & is_judged)

    def _have_numbers(self, run: RawRun) -> npt.NDArray[np.bool_]:
        """True for each QUERY of a run whose text has a number, and for each payload whose shape has."""
        roles = self._roles[run.events[layout.EVENT_TYPE]]
        found: npt.NDArray[np.bool_] = np.isin(roles, (lay.QUERY, lay.PACKED))
        found &= run.events[layout.EVENT_MAP] >= 0
        return found

    def _are_read(self, run: RawRun) -> npt.NDArray[np.bool_]:
        """True for each QUERY of a run whose text has a number."""
        is_query = self._roles[run.events[layout.EVENT_TYPE]] == lay.QUERY
        found: npt.NDArray[np.bool_] = is_query & (run.events[layout.EVENT_MAP] >= 0)
        return found

    @staticmethod
    def _text_numbers(run: RawRun) -> Small:
        """The number of each event's text, where it has one."""
        found: Small = np.clip(run.events[layout.EVENT_MAP], 0, SHAPES_MAX - 1)
        return found

    def _for_reference(
        self, binlogs: Sequence[RoutedBinlog], roles: Small, numbers: Small
    ) -> npt.NDArray[np.bool_]:
        """True for each statement or payload that is for `route` in one of the binlogs as they are."""
        has_number = np.isin(roles, (lay.QUERY, lay.PACKED))
        texts = np.where(has_number, np.maximum(numbers, 0), 0)
        own = np.flatnonzero(np.bincount(texts, minlength=SHAPES_MAX) * self._texts.is_judged)
        is_for_route = np.zeros(SHAPES_MAX, np.bool_)
        for view, binlog in zip(self._views, binlogs, strict=True) if own.shape[0] else ():
            self._know(view, binlog.has_tables_info, binlog.memory)
            if view.definition.scope.is_unscoped:
                is_for_route[own] |= view.asks or view.converts
                continue
            for number in own[view.verdicts[lay.ACTION, own] == lay.UNJUDGED]:
                view.judge(int(number), self._texts, self._format)
            is_for_route[own] |= view.verdicts[lay.ACTION, own] == lay.BY_REFERENCE
        found: npt.NDArray[np.bool_] = is_for_route[texts]
        return found

    def _learn_tables(self, tables: list[KnownTable]) -> None:
        if tables is not self._tables:
            self._tables, self._tables_seen = tables, 0
            for view in self._views:
                view.tables.forget()
        for number in range(self._tables_seen, len(tables)):
            name = table_name(tables[number].table_map)
            if number >= self._table_names.shape[0]:
                self._table_names = larger(self._table_names)
                self._wanted = larger(self._wanted)
            self._table_names[number] = self._names.setdefault(name.table, len(self._names))
            self._wanted[number] = 0
            for view in self._views:
                scope = view.definition.scope
                view.tables.learn(name)
                self._wanted[number] |= scope.includes(name) and not scope.is_unscoped
        self._tables_seen = len(tables)

    def _know(self, view: BinlogView, has_tables_info: bool, memory: Memory) -> None:  # noqa: FBT001  # as it is called
        """Take the state of a binlog before the bytes of the groups behind are made."""
        if has_tables_info is not view.has_tables_info:
            view.has_tables_info = has_tables_info
            view.converts = view.has_tables_info or self._format.has_tables_info
            view.memory = None
            for number, key in self._texts.contexts:
                view.judge_bracket(number, query_of(key), self._texts)
        if memory is not view.memory:
            is_same = view.memory is not None and memory.is_but_for_xa(view.memory)
            view.memory = memory
            if not is_same:
                view.verdicts[lay.ACTION, self._texts.is_judged] = lay.UNJUDGED
                view.made.forget_payloads()
        if memory.links is not view.tables.links:
            view.tables.know(memory.links)

    def mapped(
        self, run: RawRun, groups: range, tables: Collection[TableName]
    ) -> frozenset[TableName]:
        """Give those of some tables that have maps in some groups of a run."""
        if not tables or not groups:
            return frozenset()
        start = int(run.groups[layout.GROUP_FIRST, groups[0]])
        stop = int(run.groups[layout.GROUP_END, groups[-1]])
        is_map = self._roles[run.events[layout.EVENT_TYPE, start:stop]] == lay.MAP
        numbers = np.unique(run.events[layout.EVENT_MAP, start:stop][is_map])
        maps = (self._tables[int(number)].table_map for number in numbers)
        names = {self._views[0].definition.scope.key(table_name(one)) for one in maps}
        return frozenset(names.intersection(tables))

    def _learn_text(self, key: bytes, kind: int) -> None:
        number = self._texts.add(key, kind)
        if kind == lay.SHAPE:
            self._judge_text(number, names_in_shape(key))
        elif kind in CONTEXTS:
            self._judge_context(number, key)
        else:
            self._learn_statement(number, key)
        self._texts.make_known(number, self._scratch, self._table_names)

    def _learn_statement(self, number: int, key: bytes) -> None:
        decode_status_vars(query_of(key).status_vars)  # as of a context
        for view in self._views:
            view.verdicts[lay.ACTION, number] = lay.UNJUDGED
        facts = logged_statement(query_of(key)).facts() if self._has_unscoped else None
        self._texts.is_told[number] = facts is not None and is_logged_as_statement(facts)

    def _judge_text(self, number: int, names: TextNames) -> None:
        needs = [self._names.setdefault(name, len(self._names)) for name in names.unqualified]
        self._texts.keep_needs(number, needs)
        for view in self._views:
            stays = names.is_known and all(map(view.definition.scope.includes, names.tables))
            view.verdicts[lay.ACTION, number] = lay.COPY if stays else lay.DROP

    def _judge_context(self, number: int, key: bytes) -> None:
        """BEGIN, COMMIT and ROLLBACK stay, with a context that names nothing outside."""
        body = query_of(key)
        decode_status_vars(body.status_vars)  # what is damaged is told as the reference tells it
        for view in self._views:
            view.judge_bracket(number, body, self._texts)

    def select(
        self,
        run: RawRun,
        number: int,
        binlog: RoutedBinlog,
        groups: range,
        planned: Planned,
        after: Position,
    ) -> tuple[BinlogPart, int]:
        """Give a binlog's bytes of a run, from a group on, as far as it goes at once.

        Args:
            run: The run that was read last.
            number: Place of the binlog in the sequence.
            binlog: The binlog, which has everything before the groups.
            groups: The groups that are asked for.
            planned: The groups that planned texts stand for, and those texts.
            after: Position of the source behind the run.

        Returns:
            The bytes, and the reason of their end: DONE, ASK where the next group is for `route`,
            ROTATE where it is for another file, FULL.
        """
        view, state, first = self._views[number], self._state, groups.start
        memory = binlog.memory
        self._know(view, binlog.has_tables_info, memory)
        if self._xa is not None or view.has_xa:
            view.xa.know(self._xa, binlog)
            view.has_xa = self._xa is not None
        stop, is_whole = groups.stop, view.is_whole
        if self._ddl is not None:
            view.decide_ddl(groups, memory)
        if is_whole and self._passwords:
            # Groups with passwords of other binlogs are for the reference anyhow.
            held = self._passwords[bisect_left(self._passwords, first) :][:1]
            if held == [first]:
                return BinlogPart(next_group=first), lay.ASK
            stop = min([stop, *held])
        position = binlog.size_bytes
        has_clock = run.format.flavor is Flavor.MYSQL
        clocks = (binlog.clock_base, binlog.clock) if has_clock else (0, 0)
        state[:] = 0
        state[lay.LAST_GROUP] = stop
        # The numbers in the order of their places, from NEXT_GROUP to CLOCK.
        state[: lay.GROUPS_KEPT] = (
            *(first, 0, position, position + binlog.room_bytes),
            is_whole + (is_whole and (view.asks or view.converts)),
            *(self._crc32, *clocks),
        )
        status = self._copy(run, view, planned)
        told = state.tolist()
        following = told[lay.NEXT_GROUP]
        is_all = following == run.groups.shape[1]
        behind, prepared = memory, None
        if memory.empty_tables or (self._ddl is not None and not is_whole):
            reached = binlog.reached if self._rereads_log else None
            behind = self.memory_behind(number, range(first, following), memory, reached)
        if view.has_xa:
            prepared, behind = view.xa.behind(binlog, behind, partial(_mapped_in, run))
        part = BinlogPart(
            data=self._out.data[: told[lay.OUT_LENGTH]],
            groups=told[lay.GROUPS_KEPT],
            planned=told[lay.PLANNED_KEPT],
            events=told[lay.EVENTS_KEPT],
            rows_events=told[lay.ROWS_KEPT],
            next_group=following,
            done=after if is_all else run.position_after(binlog.reached, following, start=first),
            memory=None if behind is memory else behind,
            prepared=prepared,
            clock=told[lay.CLOCK],
            clock_base=told[lay.CLOCK_BASE] if has_clock else None,
            omissions=(
                (self._omissions(range(first, following)) if self.statements else ())
                if is_whole
                else _texts_left(told)
            ),
        )
        if self._ddl is not None and view.ddl is not None:
            left_out = view.ddl.omissions(range(first, following))
            plans = planned[0][lay.FORM_COUNT]
            bare = view.ddl.bare(range(first, following), plans) if self._rereads_log else 0
            part = part._replace(omissions=(*part.omissions, *left_out), bare=bare)
        return part, status

    def _judge_or_cut(self, view: BinlogView) -> None:
        """Do what the kernel asks for: judge a shape, or cut the payloads of one."""
        number = int(self._state[lay.UNJUDGED_TEXT])
        if view.verdicts[lay.ACTION, number] != lay.PUT_BODY:
            view.judge(number, self._texts, self._format)
            return
        groups = range(*self._state[[lay.NEXT_GROUP, lay.LAST_GROUP]].tolist())
        view.made.make(self._groups, groups, number, view.cuts[number])

    def memory_behind(
        self,
        place: int,
        groups: range,
        memory: Memory,
        reached: Position | None,
        by_reference: Callable[[int, Memory], Memory] = _never,
    ) -> Memory:
        """A binlog's memory behind groups of rows and of statements on objects, but for XA transactions.

        Args:
            place: Place of the binlog in the sequence.
            groups: Consecutive groups of the run, by their numbers.
            memory: The binlog's memory of the groups before them.
            reached: Position of the source before them; None where nobody asks for it.
            by_reference: Gives the memory behind one of them that is for `route` after all.
        """
        run, view = self._groups.run, self._views[place]
        if self._ddl is None or view.ddl is None:
            tables = self.mapped(run, groups, memory.empty_tables)
            return memory.with_rows(tables) if tables else memory
        return view.ddl.behind(groups, memory, partial(self.mapped, run), by_reference, reached)

    def _omissions(self, groups: range) -> tuple[tuple[Omission, int], ...]:
        """The changes of some groups that were logged as statements; other ones ask for `route`."""
        statements = self.statements
        number = bisect_left(statements, groups.stop) - bisect_left(statements, groups.start)
        return ((LOGGED_AS_STATEMENT, number),) if number else ()

    def _copy(self, run: RawRun, view: BinlogView, planned: Planned) -> int:
        """Copy a binlog's parts, as far as that goes at once; gives the reason of their end."""
        wanted = int(run.groups[layout.GROUP_END, -1])
        if self._actions.shape[0] < wanted:
            self._actions = np.zeros(2 * wanted, np.uint8)
        # At most a window's bytes are written at once, while they are in the cache.
        if self._out.shape[0] < min(run.data.shape[0], _OUT_BYTES):
            self._out = np.zeros(min(2 * run.data.shape[0], 2 * _OUT_BYTES), np.uint8)
        arrays, state, made = (
            (run.data, run.events, run.groups, self._roles),
            self._state,
            view.made,
        )
        copy_groups = kernels().copy_groups
        while True:
            texts = self._texts.arrays(self._table_names)
            bits = view.tables.keep, view.verdicts, view.xa.states, made.places, made.data
            room = self._out, self._actions
            status = int(copy_groups(arrays, bits, texts, planned, room, state))
            if status == lay.FULL and not state[lay.OUT_LENGTH]:
                self._out = np.zeros(int(state[lay.NEEDED]) + 2 * PADDING, np.uint8)
            elif status == lay.JUDGE:
                self._judge_or_cut(view)
            else:
                return status


def _texts_left(state: Sequence[int]) -> tuple[tuple[Omission, int], ...]:
    """The texts that were left out of the bytes that were made last, and changes as statements."""
    left_out, told = state[lay.TEXTS_LEFT_OUT], state[lay.STATEMENTS]
    texts = ((TEXT_LEFT_OUT, left_out),) if left_out else ()
    return (*texts, (LOGGED_AS_STATEMENT, told)) if told else texts


def _mapped_in(run: RawRun, group: int) -> frozenset[TableName]:
    """All tables that a group of a run has maps of."""
    first, end = (run.groups.item(row, group) for row in (layout.GROUP_FIRST, layout.GROUP_END))
    is_map = run.events[layout.EVENT_TYPE, first:end] == EventType.TABLE_MAP
    numbers = run.events[layout.EVENT_MAP, first:end][is_map].tolist()
    return frozenset(table_name(run.tables[number].table_map) for number in numbers)


def _groups_with(run: RawRun, is_meant: npt.NDArray[np.bool_]) -> list[int]:
    """The groups of a run that hold any of some events."""
    sums = np.concatenate([[0], np.cumsum(is_meant)])
    counts = sums[run.groups[layout.GROUP_END]] - sums[run.groups[layout.GROUP_FIRST]]
    return [int(number) for number in np.flatnonzero(counts)]
