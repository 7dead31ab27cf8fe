"""Planned texts that may stand in a scoped binlog as they are: each shape judged once, and then known to a kernel."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from binlane.binlogs.routing.numbered_texts import NumberedTexts
from binlane.binlogs.routing.query_events import confined
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.routing.texts import SHAPES_MAX, is_named_inside
from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.scanner import KnownTable, Numbers, Small
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import kernels
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_statements import is_about_rows_only

_SCOPES_KEPT: Final = 64
_KEY_MAX: Final = 4 << 10
"""Bytes of a text and its context that are looked up; longer ones are judged each time."""
_NO_NAMES: Final = np.zeros(1, np.int32)


class _Known:
    """Verdicts on texts in one scope, and the tables that are in it.

    Attributes:
        verdicts: The verdict on each text, by its number.
        inside: 1 for each table in the scope, by the number of its map.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.verdicts: Bytes = np.zeros(SHAPES_MAX, np.uint8)
        self._tables: list[KnownTable] = []
        self._bits = bytearray()
        self.inside: Bytes = np.zeros(1, np.uint8)

    def know(self, tables: list[KnownTable]) -> None:
        """Take the tables of a run, which are those of the run before and further ones, or all others."""
        if tables is not self._tables:
            self._tables, self._bits = tables, bytearray()
        elif len(self._bits) == len(tables):
            return
        for table in tables[len(self._bits) :]:
            self._bits.append(self._scope.includes(table_name(table.table_map)))
        self.inside = np.frombuffer(self._bits + bytes(1), np.uint8).copy()


class ScopedTexts:
    """Tells which planned texts may stand in scoped binlogs as they are."""

    def __init__(self) -> None:
        """Begin without anything that is known."""
        self._texts = NumberedTexts()
        self._known: dict[Scope, _Known] = {}
        self._key: Bytes = np.zeros(_KEY_MAX + PADDING, np.uint8)

    def outside(
        self, groups: RunGroups, planned: tuple[Numbers, Small, Numbers, Bytes], scope: Scope
    ) -> list[int]:
        """Give the groups with texts that may not stand in a scope as they are.

        Args:
            groups: The groups of the run.
            planned: The numbers of groups whose forms are texts, in order; the form of each group, the events of
                texts, and their bodies.
            scope: Scope of one or more binlogs; it has no links to tables outside.
        """
        known = self._known.get(scope)
        if known is None:
            if len(self._known) >= _SCOPES_KEPT:
                self._known.clear()  # those of binlogs that are there come again
            known = self._known[scope] = _Known(scope)
        known.know(groups.run.tables)
        run = groups.run.data, groups.run.events, groups.run.groups, groups.facts
        out = np.empty(len(planned[0]), np.int64)
        state = np.zeros(lay.SCOPED_SIZE, np.int64)
        state[lay.SCOPED_KEY_MAX] = _KEY_MAX
        inside = known.inside
        while kernels().texts_outside(
            *(run, planned, self._texts.arrays(_NO_NAMES)),
            *((inside, known.verdicts), (self._key, out), state),
        ):
            if self._may_stand(groups, planned[3], state, known, scope):
                state[lay.SCOPED_TEXT] += 1
            else:
                out[state[lay.SCOPED_COUNT]] = planned[0][state[lay.SCOPED_NEXT]]
                state[lay.SCOPED_COUNT] += 1
                state[lay.SCOPED_NEXT] += 1
                state[lay.SCOPED_TEXT] = 0
        found: list[int] = out[: state[lay.SCOPED_COUNT]].tolist()
        return found

    def _may_stand(
        self, groups: RunGroups, arena: Bytes, state: Any, known: _Known, scope: Scope
    ) -> bool:
        """Judge the text that the kernel has asked for, and keep the verdict."""
        kind, start, end, length = state[lay.SCOPED_KIND : lay.SCOPED_KEY + 1].tolist()
        is_begin = kind == lay.CONTEXT
        data = groups.run.data if is_begin else arena
        found = may_stand(data[start:end].tobytes(), scope, groups.run.format, is_begin=is_begin)
        if length:
            texts = self._texts
            if texts.is_full:
                texts.forget()
                for each in self._known.values():
                    each.verdicts[:] = 0
            number = kernels().find_text(self._key, 0, length, kind, texts.arrays(_NO_NAMES))
            if number < 0:
                number = texts.add(self._key[:length].tobytes(), kind)
                texts.make_known(number, self._key, _NO_NAMES)
            known.verdicts[number] = lay.INSIDE if found else lay.OUTSIDE
        return found


def may_stand(data: bytes, scope: Scope, format_: Format, *, is_begin: bool) -> bool:
    """True if a statement may stand in a scoped binlog as it is, and changes rows only.

    Args:
        data: Body of the QUERY event that holds the statement.
        scope: Scope of the binlog in which it would stand.
        format_: Format in which the event is written.
        is_begin: True for MySQL's BEGIN, which changes nothing.
    """
    try:
        statement = QueryEvent.decode(Reader(data), format_)
        is_inside = is_begin or (
            is_about_rows_only(statement.query) and is_named_inside(statement, scope)
        )
        return is_inside and confined(statement, scope, None) == statement
    except CodecError:
        return False  # whoever routes it alone tells where
