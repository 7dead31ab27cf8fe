"""Facts of statements that change and read rows, and of others that define nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from binlane.names import TableName, folded
from binlane.statements.sql.facts import (
    FunctionUse,
    RowChange,
    SetColumn,
    VariableAssignment,
)
from binlane.statements.sql.name_finder import (
    OUTERMOST,
    SCOPES,
    NameFinder,
    NameScope,
)
from binlane.statements.sql.parser.cursor import TooMuch
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import Token, TokenKind, string_value
from binlane.statements.sql.tree import expressions as tree
from binlane.statements.sql.tree import statements
from binlane.statements.sql.tree.expressions import Node, told

_CHANGES: Final = {
    "INSERT": frozenset((RowChange.INSERT,)),
    "REPLACE": frozenset((RowChange.REPLACE,)),
}
JOINED_MAX: Final = 256
"""Tables of one UPDATE or DELETE; servers take 61."""
PARTS_MAX: Final = 6_000
"""Columns, keys, checks and changes of them in one statement; servers take 4,096 columns."""


class Untold(Exception):  # noqa: N818 - not an error of the text: no server's catalog is at hand
    """The statement is understood, but its object cannot be told.

    Attributes:
        node: Node whose meaning is unknown.
        expected: Description of the missing object.
    """

    def __init__(self, node: Node, expected: str) -> None:
        super().__init__(expected)
        self.node = node
        self.expected = expected


class StatementFinder(NameFinder):
    """Facts of one statement while its tree is gone through; `FactFinder` adds definitions."""

    def __init__(self, text: str, database: str, dialect: Dialect) -> None:
        """Begin; `database` is the default one."""
        super().__init__(text, database, dialect)
        self.kind = StatementKind.UNKNOWN
        self.verb = ""
        self.databases: dict[str, None] = {}
        self.objects: dict[TableName, None] = {}
        self.renames: list[tuple[TableName, TableName]] = []
        self.drops: dict[TableName, None] = {}
        self.is_temporary = self.is_or_replace = False
        self.if_exists = False
        self.body_functions: list[FunctionUse] = []
        self.assignments: list[VariableAssignment] = []
        self.statement_assignments: list[VariableAssignment] = []
        self.set_columns: list[SetColumn] = []

    def outer_place(self, query: tree.Query) -> int:
        """Give the place where a query begins, with the parentheses around it."""
        place = before = query.at
        while before and (self.text[before - 1].isspace() or self.text[before - 1] == "("):
            before -= 1
            if self.text[before] == "(":
                place = before
        return place

    def insert(self, node: statements.Insert) -> None:
        """INSERT and REPLACE."""
        changes = _CHANGES[node.verb]
        if node.on_duplicate is not None:
            changes |= {RowChange.UPSERT}
        self.use_table(node.table.name, node.table.alias, changes=changes)
        rows, query = node.rows, node.query
        if query is not None and isinstance(query.body, tree.Values) and _is_plain(query):
            rows, query = query.body.rows, None  # VALUES ROW(…) of MySQL is no reading query
        self.walk(told(rows or ()))
        self.walk((query,))
        self._set(node.on_duplicate or ())
        self.walk(node.returning or ())
        self.note(
            is_replace=node.verb == "REPLACE",
            is_delayed="DELAYED" in node.modifiers,
            columns=node.columns,
            row_count=0 if rows is None else len(rows),
            has_query=query is not None,
            query_offset=None if query is None else self.outer_place(query),
            is_on_duplicate=node.on_duplicate is not None,
            on_duplicate_offset=node.on_duplicate_at if node.on_duplicate is not None else None,
            has_returning=node.returning is not None,
        )

    def _set(
        self, assignments: Sequence[statements.Assignment], scope: NameScope = OUTERMOST
    ) -> None:
        """Note the columns and values that UPDATE and ON DUPLICATE KEY UPDATE set."""
        if len(assignments) > PARTS_MAX:
            raise self._too_much(assignments[PARTS_MAX], f"it sets more than {PARTS_MAX:,} columns")
        for item in assignments:
            *qualifier, name = item.column.parts
            of = qualifier[-1] if qualifier else None
            self.set_columns.append(SetColumn(qualifier=of, name=name))
            self.walk((item.value,), scope)

    def update(self, node: statements.Update) -> None:
        """UPDATE of one or several tables."""
        scope = self.with_(node.with_)
        targets = self._outermost(node.tables, scope)
        self._set(node.assignments, scope)
        changed = ((item.column.parts[:-1], item.column) for item in node.assignments)
        self._change(targets, changed, RowChange.UPDATE)
        self._clauses(node, scope)
        self.note(
            is_multi_table=len(node.tables) > 1 or type(node.tables[0]) is not tree.NamedTable
        )

    def delete(self, node: statements.Delete) -> None:
        """DELETE of one or several tables."""
        scope = self.with_(node.with_)
        targets = self._outermost(node.tables, scope)
        changed: Iterable[tuple[tuple[str, ...], Node]] = (((), node.tables[0]),)
        if node.targets is not None:
            changed = (
                ((one.name,) if one.database is None else (one.database, one.name), one)
                for one in node.targets
            )
        self._change(targets, changed, RowChange.DELETE)
        self.walk((node.before,), scope)
        self._clauses(node, scope)
        self.note(is_multi_table=node.targets is not None)
        if "HISTORY" in node.modifiers:
            self.add_options("HISTORY")

    def _clauses(self, node: statements.Update | statements.Delete, scope: NameScope) -> None:
        self.walk((node.where, *node.order_by, node.limit, *(node.returning or ())), scope)
        self.note(has_where=node.where is not None, has_returning=node.returning is not None)

    def _outermost(self, tables: Sequence[tree.TableReference], scope: NameScope) -> list[int]:
        """Go through the tables of a statement; those that it names itself, no subquery."""
        before = len(self.tables)
        self.walk(tables, scope)
        found = [
            index
            for index, table in enumerate(self.tables)
            if index >= before and table.is_outermost and not table.is_sequence
        ]
        if len(found) > JOINED_MAX:
            raise self._too_much(tables[0], f"it joins more than {JOINED_MAX} tables")
        return found

    def _too_much(self, node: Node, reason: str) -> TooMuch:
        text = self.text_of(node)
        return TooMuch(Token(TokenKind.NAME, text, node.at, text), reason)

    def _change(
        self,
        targets: Sequence[int],
        changed: Iterable[tuple[tuple[str, ...], Node]],
        change: RowChange,
    ) -> None:
        """Note that tables change: those that qualifiers mean, all where one is empty."""
        by_alias: dict[str, list[int]] = {}
        for index in targets:
            by_alias.setdefault(self.tables[index].alias, []).append(index)
        noted: set[tuple[str, ...]] = set()
        for qualifier, node in changed:
            if qualifier in noted:
                continue
            noted.add(qualifier)
            found = self._called(by_alias, qualifier) if qualifier else targets
            if not found and change is RowChange.DELETE:
                continue  # which is an error, 1109
            if not found:
                raise Untold(node, "a table of the statement")
            for index in found:
                self.change(index, change)

    def _called(
        self, by_alias: Mapping[str, Sequence[int]], qualifier: tuple[str, ...]
    ) -> Sequence[int]:
        """The tables that a qualifier means."""
        if self.dialect.lower_case_names:
            qualifier = tuple(map(folded, qualifier))
        found = by_alias.get(qualifier[-1], ())
        if len(qualifier) == 1:
            return found
        name = TableName(*qualifier)
        return [index for index in found if self.tables[index].name == name]

    def load_data(self, node: statements.LoadData) -> None:
        """LOAD DATA and LOAD XML."""
        is_replace = "REPLACE" in node.modifiers
        changes = {RowChange.LOAD, RowChange.REPLACE} if is_replace else {RowChange.LOAD}
        self.use_table(node.table.name, node.table.alias, changes=frozenset(changes))
        self._set(node.assignments)
        names = (
            column.parts[-1] if isinstance(column, tree.Name) else self.text_of(column)
            for column in node.columns or ()
        )
        self.note(
            name=string_value(self.text_of(node.file).lstrip("nN"), self.dialect),
            is_replace=is_replace,
            is_local="LOCAL" in node.modifiers,
            columns=None if node.columns is None else tuple(names),
        )

    def query_statement(self, node: statements.QueryStatement) -> None:
        """A query."""
        self.kind = StatementKind.SELECT
        self.verb = "SELECT" if node.verb == "WITH" else node.verb
        self.walk((node.query,))

    def do(self, node: statements.Do) -> None:
        """DO."""
        self.walk(node.values)

    def call_procedure(self, node: statements.CallProcedure) -> None:
        """CALL."""
        self.call(node.name, node.arguments, node.end)
        self.walk(node.arguments)

    def handler(self, node: statements.HandlerStatement) -> None:
        """HANDLER."""
        self.note(name=node.alias or node.name.name)
        if node.verb == "HANDLER OPEN":
            self.use_table(node.name, node.alias)
        self.walk((*node.values, node.where, node.limit))

    def set(self, node: statements.Set) -> None:
        """SET."""
        self._assign(node.items, self.assignments)

    def _assign(self, items: Sequence[statements.SetItem], found: list[VariableAssignment]) -> None:
        for item in items:
            self.walk((item.value,))
            found.append(
                VariableAssignment(
                    name=item.name,
                    scope=SCOPES[item.scope],
                    value=item.words or "DEFAULT"
                    if item.value is None
                    else self.text_of(item.value),
                    node=item.value,
                )
            )

    def transaction(self, node: statements.TransactionStatement) -> None:
        """BEGIN, COMMIT, SAVEPOINT, XA and the like."""
        self.note(name=node.name)
        self.add_options(*(node.options - {"AND NO CHAIN", "NO RELEASE"}))

    def prepare(self, node: statements.Prepare) -> None:
        """PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE."""
        self.note(name=node.name)
        self.walk((node.source, *node.using))

    def lock(self, node: statements.Lock) -> None:
        """LOCK TABLES and the like."""
        self.kind = StatementKind.LOCK
        for table, words in node.tables:
            self.name_table(table.name, alias=table.alias, lock=words)

    def diagnostics(self, node: statements.Diagnostics) -> None:
        """SIGNAL, RESIGNAL, GET DIAGNOSTICS."""
        if node.verb != "GET DIAGNOSTICS":
            self.walk([value for _, value in node.items])

    def binlog(self, _: Node) -> None:
        """BINLOG says no more than its verb."""

    def empty(self, _: Node) -> None:
        """Nothing."""
        self.kind = StatementKind.EMPTY


def _is_plain(query: tree.Query) -> bool:
    """True if a query has no clauses around its body."""
    return query.with_ is None and query.limit is None and not query.order_by
