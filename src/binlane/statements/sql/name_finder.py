"""Names, calls and reads in queries, tables and expressions of a statement: a fold over their nodes.

Names get their meaning here, once: the default database, common table expressions, sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from binlane.names import TableName
from binlane.statements.sql.facts import (
    FunctionUse,
    LimitUse,
    RowChange,
    SystemVariableUse,
    TableUse,
    UserVariableUse,
    VariableScope,
)
from binlane.statements.sql.parser.types import QUALIFIERS
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tree import expressions as tree
from binlane.statements.sql.tree.expressions import Node, ObjectName, children

SEQUENCE_FUNCTIONS: Final = frozenset(("NEXTVAL", "SETVAL", "LASTVAL"))
_NO_FUNCTIONS: Final = frozenset(("VALUES", "VALUE", "ROLLUP"))
"""Called like functions, but the column of a new row, or a grouping."""
SCOPES: Final = MappingProxyType(
    {scope.value: scope for scope in VariableScope} | {"persist_only": VariableScope.PERSIST}
)
_LEAVES: Final = frozenset(
    (tree.Literal, tree.Name, tree.ParameterMarker, tree.Star, tree.DataType, ObjectName)
)


class CommonTables(NamedTuple):
    """The names that WITH clauses around a node define.

    Each of a clause sees those before it. They share what the clause defines, so that many cost no
    more each than few.

    Attributes:
        numbers: Names of the innermost clause, with their places in it.
        seen: So many of them are seen.
        outer: Names of the clauses around it.
    """

    numbers: Mapping[str, int]
    seen: int
    outer: CommonTables | None

    def has(self, name: str) -> bool:
        """True if a name is one of these tables."""
        here: CommonTables | None = self
        while here is not None:
            if here.numbers.get(name, here.seen) < here.seen:
                return True
            here = here.outer
        return False


class NameScope(NamedTuple):
    """Surroundings of a node in its statement.

    Attributes:
        common: Names that WITH clauses around the node define; None without.
        is_outermost: True in the statement itself, False in a subquery.
        locked: Tables that FOR UPDATE of the node's SELECT means: names, empty for all; None
            without.
    """

    common: CommonTables | None = None
    is_outermost: bool = True
    locked: frozenset[str] | None = None

    def unlocked(self) -> NameScope:
        """Give this scope without the meaning of FOR UPDATE."""
        return self if self.locked is None else self._replace(locked=None)


OUTERMOST: Final = NameScope()
Step = tuple[Node, NameScope]
_Reader: TypeAlias = "Callable[[NameFinder, Any, NameScope], list[Step] | None]"


class NameFinder:
    """Names in one statement, while its tree is gone through. Attributes as in the values."""

    def __init__(self, text: str, database: str, dialect: Dialect) -> None:
        """Begin; `database` is the default one."""
        self.text = text
        self.database = database
        self.dialect = dialect
        self.writes: dict[TableName, None] = {}
        self.reads: dict[TableName, None] = {}
        self.calls: dict[TableName, None] = {}
        self.tables: list[TableUse] = []
        self.functions: list[FunctionUse] = []
        self.system_variables: list[SystemVariableUse] = []
        self.user_variables: list[UserVariableUse] = []
        self.limits: list[LimitUse] = []
        self.others: dict[str, Any] = {}
        """Facts that few statements have, by their names."""

    # Notes ------------------------------------------------------------------------------------

    def resolve(self, name: ObjectName) -> TableName:
        """Give a name its database."""
        return TableName(self.database if name.database is None else name.database, name.name)

    def write(self, *tables: TableName) -> None:
        """Note tables that change."""
        self.writes.update(dict.fromkeys(tables))

    def read(self, *tables: TableName) -> None:
        """Note tables that are read or named."""
        self.reads.update(dict.fromkeys(tables))

    def name_table(self, name: ObjectName, alias: str | None = None, **more: Any) -> TableName:
        """Note a place where a table is named; `more` are attributes of the `TableUse`."""
        found = self.resolve(name)
        length = name.end - name.at
        self.tables.append(
            TableUse(name=found, alias=alias or name.name, offset=name.at, length=length, **more)
        )
        return found

    def use_table(self, name: ObjectName, alias: str | None = None, **more: Any) -> None:
        """Note a place where a table is named, and that it is changed or read."""
        found = self.name_table(name, alias, **more)
        (self.write if more.get("changes") else self.read)(found)

    def change(self, index: int, change: RowChange) -> None:
        """Note that the rows of a table noted before change."""
        table = self.tables[index]
        if change not in table.changes:
            self.tables[index] = replace(table, changes=table.changes | {change})
        self.write(table.name)

    def note(self, **facts: Any) -> None:
        """Note facts that few statements have."""
        self.others.update(facts)

    def add_options(self, *options: str) -> None:
        """Note words that a command adds."""
        self.others["options"] = self.others.get("options", frozenset()).union(options)

    def call(self, name: ObjectName, arguments: Sequence[tree.Expression], end: int) -> None:
        """Note a call of a procedure."""
        self.calls[self.resolve(name)] = None
        self.functions.append(
            FunctionUse(
                name=name.name,
                database=name.database,
                arguments=tuple(arguments),
                offset=name.at,
                length=end - name.at,
            )
        )

    def text_of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.at : node.end]

    # Queries and expressions ------------------------------------------------------------------

    def walk(self, nodes: Iterable[Node | None], scope: NameScope = OUTERMOST) -> None:
        """Go through queries, tables and expressions, without the depth of Python's own stack."""
        waiting = [(node, scope) for node in nodes if node is not None]
        waiting.reverse()
        while waiting:
            node, where = waiting.pop()
            kind = type(node)
            if kind in _LEAVES:
                continue
            reader = self._readers.get(kind)
            inside = _inside(node, where) if reader is None else reader(self, node, where)
            if inside:
                inside.reverse()
                waiting += inside

    def with_(self, node: tree.With | None, scope: NameScope = OUTERMOST) -> NameScope:
        """Go through WITH; the scope of what stands behind it."""
        if node is None:
            return scope
        numbers: dict[str, int] = {}
        for number, table in enumerate(node.tables):
            numbers.setdefault(table.name, number)
            seen = number + node.is_recursive
            self.walk((table.query,), NameScope(CommonTables(numbers, seen, scope.common), False))
        return scope._replace(common=CommonTables(numbers, len(node.tables), scope.common))

    def _query(self, node: tree.Query, scope: NameScope) -> list[Step]:
        outer = inner = self.with_(node.with_, scope).unlocked()
        for lock in node.locks:
            if lock.is_for_update:
                inner = inner._replace(locked=frozenset(table.name for table in lock.tables))
            if lock.wait in {"SKIP LOCKED", "NOWAIT"}:
                self.others.setdefault(lock.wait.lower().replace(" ", "_"), lock.wait_at)
        if node.into is not None:
            self._into(node.into)
        inside: list[Step] = [(node.body, inner), *((item, outer) for item in node.order_by)]
        if node.limit is not None:
            inside.append((node.limit, outer))
        return inside

    def _into(self, node: tree.Into) -> None:
        self.note(has_into=True)
        if node.outfile is not None or node.dumpfile is not None:
            self.add_options("OUTFILE")
        for target in node.variables:
            if isinstance(target, tree.UserVariable):
                self._user_variable(target, is_assigned=True)

    def _select(self, node: tree.Select, scope: NameScope) -> list[Step]:
        if node.procedure is not None:
            self.add_options("PROCEDURE")
        plain = scope.unlocked()
        inside = [(child, plain) for child in children(node)]
        if scope.locked is not None:
            start = len(node.items)
            inside[start : start + len(node.tables)] = [(table, scope) for table in node.tables]
        return inside

    def _table(self, node: tree.NamedTable, scope: NameScope) -> list[Step] | None:
        name = node.name
        common = scope.common
        if common is not None and name.database is None and common.has(name.name):
            return None
        locked = scope.locked
        self.use_table(
            name,
            node.alias,
            is_outermost=scope.is_outermost,
            is_locked_for_update=locked is not None
            and (not locked or (node.alias or name.name) in locked),
        )
        if node.period is None and node.portion is None:
            return None
        return [(child, scope) for child in children(node) if child is not name]

    def _join(self, node: tree.Join, scope: NameScope) -> list[Step]:
        sides = (node.left, node.right, node.on)
        return [(each, scope) for each in sides if each is not None]

    def _limit(self, node: tree.Limit, scope: NameScope) -> list[Step]:
        is_zero = isinstance(node.count, tree.Literal) and self.text_of(node.count) == "0"
        self.limits.append(LimitUse(offset=node.at, length=node.end - node.at, is_zero=is_zero))
        return _inside(node, scope)

    def _subquery(self, node: tree.Subquery | tree.DerivedTable, scope: NameScope) -> list[Step]:
        return [(node.query, NameScope(scope.common, is_outermost=False))]

    def _default(self, node: tree.Default, _: NameScope) -> None:
        if node.column is None and node.word == "DEFAULT":
            self.note(defaults=True)

    def _user_variable(
        self, node: tree.UserVariable, _: NameScope = OUTERMOST, *, is_assigned: bool = False
    ) -> None:
        length = node.end - node.at
        self.user_variables.append(
            UserVariableUse(name=node.name, is_assigned=is_assigned, offset=node.at, length=length)
        )

    def _assignment(self, node: tree.Assign, scope: NameScope) -> list[Step]:
        self._user_variable(node.target, is_assigned=True)
        return [(node.value, scope)]

    def _system_variable(self, node: tree.SystemVariable, _: NameScope) -> None:
        scope, length = SCOPES[node.scope], node.end - node.at
        self.system_variables.append(
            SystemVariableUse(name=node.name, scope=scope, offset=node.at, length=length)
        )

    def _call(self, node: tree.Call, scope: NameScope) -> list[Step]:
        name = node.upper_name
        inside = _inside(node, scope)
        if name in _NO_FUNCTIONS and not node.is_quoted:
            return inside
        if (
            name in SEQUENCE_FUNCTIONS
            and node.database is None
            and self.dialect.may_be_mariadb
            and (sequence := sequence_of(node)) is not None
        ):
            changes = frozenset((RowChange.SEQUENCE,) if name != "LASTVAL" else ())
            self.use_table(sequence, changes=changes, is_sequence=True)
            inside = inside[1:]
        database = node.database
        if database is not None and database.lower() in QUALIFIERS and self.dialect.may_be_mariadb:
            database = None  # it came with the server
        if database is not None:
            called = TableName(database, node.name)
            self.calls[called.folded if self.dialect.lower_case_names else called] = None
        self.functions.append(
            FunctionUse(
                name=node.name,
                database=database,
                arguments=node.arguments,
                offset=node.at,
                length=node.end - node.at,
                is_quoted=node.is_quoted,
            )
        )
        return inside

    _readers: ClassVar[Mapping[type, _Reader]] = MappingProxyType(
        {
            tree.Query: _query,
            tree.Select: _select,
            tree.NamedTable: _table,
            tree.Join: _join,
            tree.Limit: _limit,
            tree.Subquery: _subquery,
            tree.DerivedTable: _subquery,
            tree.Default: _default,
            tree.UserVariable: _user_variable,
            tree.Assign: _assignment,
            tree.SystemVariable: _system_variable,
            tree.Call: _call,
        }
    )


def _inside(node: Node, scope: NameScope) -> list[Step]:
    return [(child, scope) for child in children(node)]


def sequence_of(call: tree.Call) -> ObjectName | None:
    """The sequence that a call of NEXTVAL and the like names."""
    name = call.arguments[0] if call.arguments else None
    if not isinstance(name, tree.Name):
        return None
    database = name.parts[-2] if len(name.parts) > 1 else None
    return ObjectName(name.at, name.end, database, name.parts[-1])
