"""The XA transactions of a run by numbers, and their states in one binlog, as kernels note them.

`xa_groups` has the rules. Here are only their effects on runs of groups: a kernel notes what becomes
of each transaction, and what is prepared and remembered behind some groups is made of its notes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from struct import Struct
from typing import Final

import numpy as np

from binlane.binlogs.routing.routed_group import RoutedBinlog
from binlane.binlogs.routing.routing_memory import Memory, PassedXa
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.transaction import TransactionXid
from binlane.log.grouping.raw import RawRun
from binlane.log.grouping.scanner import Numbers, Small
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.names import TableName

XA_SHAPES: Final = frozenset(
    b"XA %b X'',X'',0" % verb for verb in (b"START", b"END", b"COMMIT", b"ROLLBACK")
)
"""Shapes of the statements on XA transactions as servers log them; others are the reference's."""

_PREPARE: Final = Struct("<BIII")
_NOTHING: Final = np.zeros((lay.XA_SIZE, 0), np.int64)
_COMMIT: Final = b"XA COMMIT "
_ROLLBACK: Final = b"XA ROLLBACK "


class RunXa:
    """The XA transactions of a run.

    Args:
        run: The run; the index of its events receives the numbers of the transactions.
        roles: The roles of the run's types of events in routing.
        kinds: The kind of each text, by its number.

    Attributes:
        names: The transactions, as statements name them, by their numbers.
        numbers: Their numbers, by these names.
        events: The numbers of the events that prepare or finish one, in order.
    """

    def __init__(self, run: RawRun, roles: Small, kinds: Numbers) -> None:
        last = run.groups.item(layout.GROUP_END, -1)
        role = roles[run.events[layout.EVENT_TYPE, :last]]
        text = run.events[layout.EVENT_MAP, :last]
        is_query = (role == lay.QUERY) & (text >= 0)
        is_query &= kinds[np.clip(text, 0, None)] == lay.XA
        self.numbers: dict[str, int] = {}
        self.events: list[int] = []
        for event in np.flatnonzero(is_query | (role == lay.XA_PREPARE)).tolist():
            name = _finished(run, event) if is_query[event] else _prepared(run, event)
            number = lay.NO_XA if name is None else self.numbers.setdefault(name, len(self.numbers))
            run.events[layout.EVENT_BITMAP, event] = number
            if name is not None:
                self.events.append(event)
        self.names = tuple(self.numbers)


class XaStates:
    """The states of a run's XA transactions in one binlog.

    Attributes:
        states: The states as kernels take them and note them.
    """

    def __init__(self) -> None:
        self.states: Numbers = _NOTHING
        self._before = self.states[lay.XA_STATE]
        self._run: RunXa | None = None
        self._prepared: frozenset[str] | None = None
        self._passed: frozenset[PassedXa] | None = None

    def know(self, run: RunXa | None, binlog: RoutedBinlog) -> None:
        """Take the state of a binlog before some groups; without a run all are the reference's."""
        if run is None:
            self.states, self._run = _NOTHING, None
            return
        prepared, passed = binlog.prepared, binlog.memory.passed
        is_known = run is self._run and prepared is self._prepared and passed is self._passed
        if not is_known:
            self._run, self._prepared, self._passed = run, prepared, passed
            self.states = np.zeros((lay.XA_SIZE, len(run.names)), np.int64)
            scope = binlog.definition.scope
            for number, name in enumerate(run.names):
                if name in prepared:
                    self.states[lay.XA_STATE, number] = lay.XA_PREPARED
            for one in () if scope.is_unscoped else passed:
                if one.xid in run.numbers:
                    is_inside = any(map(scope.includes, one.tables))
                    state = lay.XA_INSIDE if is_inside else lay.XA_PASSED
                    number = run.numbers[one.xid]
                    is_twice = self.states[lay.XA_STATE, number] != lay.XA_UNKNOWN
                    self.states[lay.XA_STATE, number] = lay.XA_UNCLEAR if is_twice else state
        self.states[lay.XA_GROUP] = -1
        self._before = self.states[lay.XA_STATE].copy()

    def behind(
        self, binlog: RoutedBinlog, memory: Memory, tables: Callable[[int], frozenset[TableName]]
    ) -> tuple[frozenset[str] | None, Memory]:
        """Give the XA transactions that are prepared, and the memory, behind the kernel's groups.

        Args:
            binlog: The binlog, as it was known before them.
            memory: The memory behind them, but for XA transactions.
            tables: Gives the tables that a group of the run maps, by its number.

        Returns:
            The XA transactions that are prepared, None if they are the same; and the memory.
        """
        run, states = self._run, self.states
        if run is None:
            return None, memory
        is_new = states[lay.XA_GROUP] >= 0
        changed = np.flatnonzero((states[lay.XA_STATE] != self._before) | is_new).tolist()
        if not changed:
            return None, memory
        names = {run.names[number] for number in changed}
        state = {run.names[number]: int(states[lay.XA_STATE, number]) for number in changed}
        held = {name for name in names if state[name] == lay.XA_PREPARED}
        prepared = binlog.prepared - names | held
        if not binlog.definition.scope.is_unscoped:
            passed = {one for one in memory.passed if one.xid not in names}
            passed |= {
                PassedXa(run.names[number], tables(int(states[lay.XA_GROUP, number])))
                for number in changed
                if states[lay.XA_STATE, number] in (lay.XA_PASSED, lay.XA_INSIDE)
            }
            if passed != memory.passed:
                memory = replace(memory, passed=frozenset(passed))
        self._passed = memory.passed
        if prepared == binlog.prepared:
            return None, memory
        self._prepared = prepared
        return prepared, memory


def _prepared(run: RawRun, event: int) -> str | None:
    """The XA transaction that an event prepares; None of one that commits at once."""
    at = run.events.item(layout.EVENT_OFFSET, event) + HEADER_LENGTH
    one_phase, format_id, length, branch_length = _PREPARE.unpack_from(run.data.data, at)
    if one_phase:
        return None
    at += _PREPARE.size
    name = run.data[at : at + length + branch_length].tobytes()
    xid = TransactionXid(format_id=format_id, global_id=name[:length], branch=name[length:])
    return str(xid)


def _finished(run: RawRun, event: int) -> str | None:
    """The XA transaction that a statement commits or rolls back; None of others."""
    start = run.events.item(layout.EVENT_OFFSET, event) + HEADER_LENGTH
    head = run.data[start : run.events.item(layout.EVENT_END, event)].tobytes()
    text = head[14 + head[8] + int.from_bytes(head[11:13], "little") :]
    for words in (_COMMIT, _ROLLBACK):
        if text.startswith(words):
            return text.removeprefix(words).decode("ascii", "replace").strip()
    return None
