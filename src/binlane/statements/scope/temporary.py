"""Temporary tables that each binlog logs, and has begun to log once (seed 000).

Rule 1: row format logs none. Rule 2: a table whose logging has stopped is logged no more, since a
replay would miss what happened in between. Rule 3: its DROP is logged all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.sql.servers import LoggingMode

_NONE: frozenset[TableName] = frozenset()


@dataclass(frozen=True, slots=True)
class TemporaryTables:
    """The open temporary tables of a session.

    Attributes:
        whole: Tables of which the binlog holds every change, by binlog name.
        begun: Tables whose creation the binlog holds, by binlog name.
    """

    whole: Mapping[str, frozenset[TableName]] = field(default_factory=dict)
    begun: Mapping[str, frozenset[TableName]] = field(default_factory=dict)

    def created(self, name: TableName, binlogs: Iterable[str]) -> TemporaryTables:
        """Give these tables with a new one whose creation some binlogs hold."""
        fresh = dict.fromkeys(binlogs, frozenset((name,)))
        base = self.dropped(name)
        return TemporaryTables(_joined(base.whole, fresh), _joined(base.begun, fresh))

    def dropped(self, name: TableName) -> TemporaryTables:
        """Without a table."""
        gone = frozenset((name,))
        return TemporaryTables(
            {binlog: names - gone for binlog, names in self.whole.items()},
            {binlog: names - gone for binlog, names in self.begun.items()},
        )

    def renamed(self, old: TableName, new: TableName) -> TemporaryTables:
        """Give these tables with one of them under another name."""

        def follow(names: frozenset[TableName]) -> frozenset[TableName]:
            return frozenset(new if name == old else name for name in names)

        return TemporaryTables(
            {binlog: follow(names) for binlog, names in self.whole.items()},
            {binlog: follow(names) for binlog, names in self.begun.items()},
        )

    def stopped(self, binlog: str, names: Iterable[TableName]) -> TemporaryTables:
        """Give these tables with some that a binlog does not log any more."""
        left = self.whole.get(binlog, _NONE) - frozenset(names)
        return TemporaryTables({**self.whole, binlog: left}, self.begun)

    def switched(self, modes: Mapping[str, LoggingMode]) -> TemporaryTables:
        """Give these tables after changes of the binlogs' modes: rows stop the logging of all tables."""
        result = self
        for binlog, mode in modes.items():
            if mode is LoggingMode.ROW:
                result = result.stopped(binlog, self.whole.get(binlog, _NONE))
        return result

    def scoped(self, definitions: Iterable[Definition]) -> TemporaryTables:
        """Give these tables after changes of the binlogs' scopes: logging stops for tables out of scope."""
        result = self
        for definition in definitions:
            names = self.whole.get(definition.name, _NONE)
            outside = [name for name in names if not definition.scope.includes(name)]
            result = result.stopped(definition.name, outside)
        return result

    def partial(self, binlog: str) -> frozenset[TableName]:
        """Tables whose creation a binlog holds, but not every later change."""
        return self.begun.get(binlog, _NONE) - self.whole.get(binlog, _NONE)


def _joined(
    one: Mapping[str, frozenset[TableName]], other: Mapping[str, frozenset[TableName]]
) -> Mapping[str, frozenset[TableName]]:
    return {name: one.get(name, _NONE) | other.get(name, _NONE) for name in {**one, **other}}
