"""Planned groups as bytes → a binlog's groups: `planned_route` for the usual case.

A group of rows and their brackets, all of whose statements are there as texts, in a binlog that
takes all that they name. A kernel finds the texts in the plans' bytes, once for all binlogs of a run,
and another one puts them between the head and the last event of the group. Rows are looked into only
where they tell AUTO_INCREMENT values. Whatever else a group, a plan or a binlog is, is for the
reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from binlane.binlogs.routing.cascades import dangers
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.routing.scoped_texts import ScopedTexts
from binlane.errors import CodecError
from binlane.log.codec.columns import Column
from binlane.log.codec.row_count import value_widths
from binlane.log.codec.table_metadata import table_columns
from binlane.log.codec.types import ColumnType, EventType, Flavor
from binlane.log.grouping.native import crc32_address
from binlane.log.grouping.scanner import KnownTable, Numbers, Small
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import kernels
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import GroupPlan, RowsPart, basis_of
from binlane.statements.session.plan_bytes import (
    FULL_IMAGE,
    EncodedPlan,
    named_in,
)

if TYPE_CHECKING:
    from binlane.binlogs.routing.routed_group import RoutedBinlog

_WHOLE: Final = frozenset(
    (
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.INT24,
        ColumnType.LONG,
        ColumnType.LONGLONG,
    )
)
_LEAST_PART_BYTES: Final = 4
"""No form and no event of a plan has fewer bytes."""
_NO_FORMS: Final = np.zeros((lay.FORM_SIZE, 0), np.int32)

Planned = tuple[Small, Numbers, Bytes]
"""The form of each group in one binlog, the events of texts and their bodies, as kernels take them."""
_NO_ROLES: Final = np.zeros(256, np.int32)
_NO_VIEW: Final = (
    np.zeros(1, np.uint8),
    np.zeros((lay.VERDICT_SIZE, 1), np.int64),
    np.zeros((lay.XA_SIZE, 0), np.int64),
    np.zeros((lay.MADE_SIZE, 0), np.int64),
    np.zeros(PADDING, np.uint8),
)
_NO_TEXTS: Final = (
    np.zeros(1, np.int64),
    np.zeros((lay.TEXT_SIZE, 1), np.int64),
    np.zeros(PADDING, np.uint8),
    np.zeros(1, np.int32),
    np.zeros(1, np.int32),
)
_NO_BODIES: Final = np.zeros((lay.BODY_SIZE, 0), np.int64)
_NO_ARENA: Final = np.zeros(PADDING, np.uint8)
NO_PLANS: Final[Planned] = _NO_FORMS, _NO_BODIES, _NO_ARENA
_NO_INDEX: Final = np.zeros((lay.PLAN_SIZE, 0), np.int64)
_NO_BLOCKS: Final = np.zeros((2, 0), np.int64)
_LISTS_KEPT: Final = 1024
_List = tuple[int, bool]


class PlannedForms(NamedTuple):
    """The forms of a run's groups in one binlog.

    Attributes:
        arrays: The forms and the texts, as kernels take them.
        stops: Numbers of the groups that come one by one, last first.
    """

    arrays: Planned
    stops: Sequence[int]

    def is_text(self, number: int) -> bool:
        """True if a group is there as texts."""
        first: int = self.arrays[0].item(lay.FORM_FIRST, number)
        return first >= 0 and self.arrays[0].item(lay.FORM_COUNT, number) != 0


class RunPlans(NamedTuple):
    """Plans that are known of a run's groups.

    Attributes:
        single: Plans by the numbers of their groups.
        numbers: Numbers of further groups, each of which has the only plan of its statement.
        encoded: Bytes of their statements' plans, one behind the other.
        ends: The end of each there.
    """

    single: Mapping[int, EncodedPlan] = {}
    numbers: Sequence[int] = ()
    encoded: bytes = b""
    ends: Sequence[int] = ()

    @property
    def is_empty(self) -> bool:
        """True if no plan is known."""
        return not (self.single or self.numbers)


class PlanReader:
    """Reads the plans of runs of one log; what tables have is kept from run to run.

    Attributes:
        scopes: Tells which texts may stand in scoped binlogs as they are.
    """

    def __init__(self) -> None:
        """Begin without tables."""
        self._tables: list[KnownTable] = []
        self._count = 0
        self._widths: list[tuple[int, int]] = []
        self._places: list[tuple[int, int]] = []
        self._arrays = np.zeros((2, 0), np.int32), np.zeros((2, 0), np.int64)
        self._lists: dict[tuple[Definition, bytes], _List] = {}
        self.scopes = ScopedTexts()

    def read(self, groups: RunGroups, plans: RunPlans) -> RunTexts:
        """Find the texts in the plans of a run's groups.

        Args:
            groups: The groups of the run.
            plans: Plans made for the groups, as far as they are known.
        """
        return RunTexts(groups, plans, self)

    def list_of(self, definition: Definition, names: bytes) -> _List:
        """The number of a binlog's list of parts in a plan, and if it was made for the binlog as it is.

        Args:
            definition: Definition of the binlog as it is now.
            names: The plan's names of binlogs and their definitions, as bytes.
        """
        known = self._lists.get((definition, names))
        if known is None:
            numbers, bases = named_in(names)
            name = definition.name
            known = numbers.get(name, lay.ABSENT), bases.get(name) == basis_of(definition)
            if len(self._lists) >= _LISTS_KEPT:
                self._lists.clear()
            self._lists[definition, names] = known
        return known

    def widths_of(self, tables: list[KnownTable], flavor: Flavor) -> tuple[Small, Numbers]:
        """The widths of tables' columns, as kernels take them."""
        if tables is not self._tables:
            self._tables, self._count = tables, 0
            self._widths, self._places = [], []
        elif self._count == len(tables):
            return self._arrays
        for table in tables[self._count :]:
            widths = _widths(table, flavor)
            self._places.append((len(self._widths), len(widths)))
            self._widths += widths
        self._count = len(tables)
        widths_ = np.array(self._widths, np.int32).reshape(-1, 2)
        places = np.array(self._places, np.int64).reshape(-1, 2)
        self._arrays = np.ascontiguousarray(widths_.T), np.ascontiguousarray(places.T)
        return self._arrays


def _widths(table: KnownTable, flavor: Flavor) -> list[tuple[int, int]]:
    """The width of each column of a table, and if it holds whole numbers; none if they are not plain."""
    try:
        # Signs bear on no length.
        table_map = replace(table.table_map, optional_metadata=b"")
        columns: Sequence[Column] = table_columns(table_map, flavor=flavor)
    except CodecError:
        return []
    widths = value_widths(columns) or ()
    return [
        (width, column.type in _WHOLE)
        for width, column in zip(widths, columns if widths else (), strict=True)
    ]


class RunTexts:
    """The planned texts of a run's groups, found once for all binlogs.

    Args:
        groups: The groups of the run.
        plans: Plans made for the groups, as far as they are known.
        reader: Knows the columns of the run's tables.
    """

    def __init__(self, groups: RunGroups, plans: RunPlans, reader: PlanReader) -> None:
        self.groups = groups
        self._reader = reader
        # The plans, the numbers of the names of binlogs in them, and their forms, as kernels take them.
        self._index, self._blocks, self._forms = _NO_INDEX, _NO_BLOCKS, _NO_FORMS
        self._names: list[bytes] = []
        self._bodies, self._arena = _NO_BODIES, _NO_ARENA
        self._known: dict[tuple[tuple[_List, ...], bool, tuple[int, ...]], PlannedForms] = {}
        if not plans.is_empty:
            self._read(plans)

    def _read(self, plans: RunPlans) -> None:
        run = self.groups.run
        widths = self._reader.widths_of(run.tables, run.format.flavor)
        places: dict[int, tuple[int, int]] = {}
        seen: set[tuple[int, int]] = set()
        pieces = [plans.encoded]
        rows: list[tuple[int, int, int, int, int, int, int, int]] = []
        end = len(plans.encoded)
        for number, (all_, own) in plans.single.items():
            place = places.get(id(all_))
            if place is None or (id(all_), own) in seen:
                # All forms of these bytes are of different plans, so that the bytes bound their number.
                start, end = end, end + len(all_.encoded)
                place = places[id(all_)] = start, end
                pieces.append(all_.encoded)
            seen.add((id(all_), own))
            rows.append((number, *place, own, 0, 0, 0, 0))
        pieces.append(bytes(PADDING))
        arena = np.frombuffer(bytearray(b"".join(pieces)), np.uint8)
        count = len(plans.numbers)
        index = np.zeros((lay.PLAN_SIZE, count + len(rows)), np.int64)
        index[lay.PLAN_GROUP, :count], index[lay.PLAN_END, :count] = plans.numbers, plans.ends
        index[lay.PLAN_START, 1:count] = plans.ends[:-1]
        index[:, count:] = np.array(rows, np.int64).reshape(-1, lay.PLAN_SIZE).T
        most = end // _LEAST_PART_BYTES
        bodies = np.empty((lay.BODY_SIZE, most), np.int64)
        forms = np.empty((lay.FORM_SIZE, most), np.int32)
        state = np.zeros(lay.PLANS_SIZE, np.int64)
        state[lay.PLANS_NAME_AT] = run.format.post_header_length(EventType.TABLE_MAP)
        state[lay.PLANS_WANT_TEXTS] = not run.format.has_tables_info
        state[lay.PLANS_FULL_IMAGE] = FULL_IMAGE
        state[lay.PLANS_IS_MYSQL] = run.format.flavor is Flavor.MYSQL
        events = run.data, run.events
        kernels().read_plans(
            events, self.groups.looked_at, (arena, index), widths, (bodies, forms), state
        )
        self._bodies, self._arena = bodies, arena
        self._index, self._forms = index, forms
        self._blocks = np.empty((2, index.shape[1]), np.int64)
        count = kernels().name_blocks(arena, index, self._blocks)
        text = arena.data
        for plan in self._blocks[1, :count].tolist():
            names, end = index[lay.PLAN_NAMES : lay.PLAN_NAMES_END + 1, plan].tolist()
            self._names.append(bytes(text[names:end]))

    def forms_in(self, binlog: RoutedBinlog, numbers: Sequence[int]) -> PlannedForms:
        """The forms of groups in a binlog, by their plans.

        Args:
            binlog: The binlog, which has everything before the groups.
            numbers: The groups that plans may concern, or that hold marks, in order.
        """
        definition = binlog.definition
        has_texts = not (binlog.memory.left_out or binlog.may_have_tables_info)
        list_of, is_unscoped = self._reader.list_of, definition.scope.is_unscoped
        lists = tuple([list_of(definition, names) for names in self._names])
        key = lists, has_texts, tuple(numbers)
        if is_unscoped and key in self._known:
            return self._known[key]
        forms = np.zeros((lay.FORM_SIZE, self.groups.run.count), np.int32)
        wanted, stopped = np.array(numbers, np.int64), np.empty(len(numbers), np.int64)
        plans = self._index, self._blocks, _pairs(lists), self._forms
        count = kernels().choose_forms(wanted, plans, has_texts, forms, stopped)
        stops: list[int] = stopped[:count].tolist()
        if not is_unscoped:
            outside = self._outside(forms, wanted, binlog)
            forms[:, outside] = 0
            stops = sorted((*stops, *outside), reverse=True)
        made = PlannedForms((forms, self._bodies, self._arena), stops)
        if is_unscoped:
            self._known[key] = made
        return made

    def _outside(self, forms: Small, numbers: Numbers, binlog: RoutedBinlog) -> list[int]:
        """Give the groups with texts that may not stand in a scoped binlog as they are."""
        scope, memory = binlog.definition.scope, binlog.memory
        texts = numbers[
            (forms[lay.FORM_FIRST, numbers] >= 0) & (forms[lay.FORM_COUNT, numbers] != 0)
        ]
        if scope.ignores_case or memory.empty_tables or dangers(memory.links, scope):
            found: list[int] = texts.tolist()
            return found
        planned = texts, forms, self._bodies, self._arena
        return self._reader.scopes.outside(self.groups, planned, scope)

    def placed(self, forms: PlannedForms, numbers: range, binlog: RoutedBinlog) -> BinlogPart:
        """Groups with their planned texts as the next of a binlog, as far as its file has room.

        Args:
            forms: The forms of the groups in the binlog; all of them are texts.
            numbers: Numbers of the groups in the run.
            binlog: The binlog, which has everything before them.
        """
        run = self.groups.run
        state = np.zeros(lay.STATE_SIZE, np.int64)
        state[lay.CRC32] = crc32_address()
        state[lay.NEXT_GROUP], state[lay.LAST_GROUP] = numbers.start, numbers.stop
        state[lay.POSITION] = binlog.size_bytes
        state[lay.LIMIT] = binlog.size_bytes + binlog.room_bytes
        state[lay.CLOCK_BASE], state[lay.CLOCK] = binlog.clock_base, binlog.clock
        arrays = run.data, run.events, run.groups, _NO_ROLES
        out = np.zeros(1 << 14, np.uint8)
        actions, copy = np.zeros(0, np.uint8), kernels().copy_groups
        while (
            copy(arrays, _NO_VIEW, _NO_TEXTS, forms.arrays, (out, actions), state) == lay.FULL
            and not state[lay.OUT_LENGTH]
        ):
            out = np.zeros(int(state[lay.NEEDED]) + 2 * PADDING, np.uint8)
        data = out.data[: int(state[lay.OUT_LENGTH])]
        following = int(state[lay.NEXT_GROUP])
        count = following - numbers.start
        return BinlogPart(
            data=data,
            groups=count,
            planned=count,
            events=int(state[lay.EVENTS_KEPT]),
            next_group=following,
            done=run.position_after(binlog.reached, following, start=numbers.start),
            clock=int(state[lay.CLOCK]),
            clock_base=int(state[lay.CLOCK_BASE]),
        )


def _pairs(lists: Sequence[_List]) -> Numbers:
    """Give the binlog's lists as two rows."""
    return np.ascontiguousarray(np.array(lists, np.int64).reshape(-1, 2).T)


def is_all_rows(plan: GroupPlan, name: str) -> bool:
    """True if a binlog has the rows of all statements, as the source has them."""
    parts = plan.binlogs[name]
    if len(parts) != len(plan.sections) or name in plan.ends:
        return False
    for at, part in enumerate(parts):
        if not isinstance(part, RowsPart) or part != (at, 0):
            return False
    return True
