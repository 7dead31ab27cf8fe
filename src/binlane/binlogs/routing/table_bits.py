"""A binlog's bits for each table of a log, by which kernels decide on its rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from binlane.binlogs.routing.cascades import dangers
from binlane.binlogs.routing.numbered_texts import larger
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.log.grouping.window import Bytes
from binlane.log.kernels import route_layout as lay
from binlane.names import TableName
from binlane.statements.scope.scope import Scope


class TableBits:
    """The bits of the tables of a log in one binlog, as `route_layout` has them.

    Args:
        scope: Scope of the binlog whose bits these are.

    Attributes:
        keep: The bits of each table, by the number of its map.
        links: The links between tables that the bits are made of.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.links = NO_LINKS
        self._names: list[TableName] = []
        self._numbers: dict[TableName, list[int]] = {}
        self._doubted: set[TableName] = set()
        self.keep: Bytes = np.zeros(64, np.uint8)

    def forget(self) -> None:
        """Begin anew, with the tables of another log."""
        self._names, self._numbers, self._doubted = [], {}, set()

    def learn(self, name: TableName) -> None:
        """Take the table of the next map."""
        number = len(self._names)
        self._names.append(name)
        self._numbers.setdefault(self._scope.key(name), []).append(number)
        if number >= self.keep.shape[0]:
            self.keep = larger(self.keep)
        self.keep[number] = self._bits(name)

    def know(self, links: TableLinks) -> None:
        """Take the links between tables as they are before the groups that come next."""
        before, self.links = self.links, links
        if links is before or self._scope.is_unscoped:
            return
        if links.is_like(before):
            for name in links.known ^ before.known:
                self._tell(name)
            return
        for number, name in enumerate(self._names):
            self.keep[number] = self._bits(name)

    def doubt(self, tables: Iterable[TableName]) -> None:
        """Have the links of some tables count as unknown, until `trust`."""
        for name in self._numbers.keys() & set(tables):
            self._doubted.add(name)
            self._tell(name)

    def doubt_databases(self, databases: Iterable[str]) -> None:
        """Have the links of all tables of some databases count as unknown, until `trust`."""
        for database in databases:
            same = self._scope.is_same
            self.doubt(name for name in self._numbers if same(name.database, database))

    def trust(self) -> None:
        """Have the links of all tables count as they are known."""
        doubted, self._doubted = self._doubted, set()
        for name in doubted:
            self._tell(name)

    def _tell(self, name: TableName) -> None:
        for number in self._numbers.get(name, ()):
            self.keep[number] = self._bits(self._names[number])

    def _bits(self, name: TableName) -> int:
        scope, links = self._scope, self.links
        if scope.is_unscoped:
            return lay.KEEP
        bits = 0
        if scope.includes(name):
            is_known = links.knows(scope.key(name)) and scope.key(name) not in self._doubted
            bits = lay.KEEP if is_known else lay.KEEP | lay.UNKNOWN
        if danger := dangers(links, scope).get(scope.key(name)):
            bits |= lay.MERGE if danger.by_any else 0
            bits |= lay.PARENT if danger.by_delete else 0
            bits |= lay.UPDATED_PARENT if danger.by_update else 0
        return bits
