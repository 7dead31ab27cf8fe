"""From the tree of a statement to its facts: one pass over the nodes, in the order of the text.

What names mean (the default database, common table expressions, the tables that an UPDATE's
columns are of) is told here, once. What DDL does to objects is told behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from binlane.names import ACCOUNT_DATABASE, TableName, folded
from binlane.sql.facts import (
    Assignment,
    FunctionUse,
    Limit,
    RowChange,
    SetColumn,
    StatementEffects,
    StatementFacts,
    StatementKind,
    SystemVariableUse,
    TableUse,
    UserVariableUse,
    VariableScope,
)
from binlane.sql.tokens import string_value
from binlane.sql.tree import definitions, statements
from binlane.sql.tree import expressions as tree
from binlane.sql.tree import expressions as values
from binlane.sql.tree.expressions import Node, children, told

if TYPE_CHECKING:
    from binlane.sql.servers import Dialect

_INSERTS: Final = {
    "INSERT": (StatementKind.INSERT, frozenset((RowChange.INSERT,))),
    "REPLACE": (StatementKind.REPLACE, frozenset((RowChange.REPLACE,))),
}
_SEQUENCE_FUNCTIONS: Final = frozenset(("NEXTVAL", "SETVAL", "LASTVAL"))
_NO_FUNCTIONS: Final = frozenset(("VALUES", "VALUE", "ROLLUP"))
"""Called like functions, but the column of a new row, or a grouping."""
_SCOPES: Final = {
    "": VariableScope.UNSAID,
    "session": VariableScope.SESSION,
    "global": VariableScope.GLOBAL,
    "persist": VariableScope.PERSIST,
    "persist_only": VariableScope.PERSIST,
}


class Scope(NamedTuple):
    """Where a node stands.

    Attributes:
        common: Names that WITH clauses around it define.
        is_outermost: In the statement itself, not in a subquery.
        locked: What FOR UPDATE of its SELECT means: names, empty for all; None without.
    """

    common: frozenset[str] = frozenset()
    is_outermost: bool = True
    locked: frozenset[str] | None = None

    def inside(self) -> Scope:
        """Of a subquery here."""
        return Scope(self.common, is_outermost=False)


Step = tuple[Node, Scope]


class FactFinder:
    """Facts of one statement while its tree is gone through. Attributes as in the values."""

    def __init__(self, text: str, database: str, dialect: Dialect) -> None:
        """Begin; `database` is the default one."""
        self.text = text
        self.database = database
        self.dialect = dialect
        self.kind = StatementKind.UNKNOWN
        self.verb = ""
        self.writes: dict[TableName, None] = {}
        self.reads: dict[TableName, None] = {}
        self.databases: dict[str, None] = {}
        self.objects: dict[TableName, None] = {}
        self.calls: dict[TableName, None] = {}
        self.renames: list[tuple[TableName, TableName]] = []
        self.drops: dict[TableName, None] = {}
        self.is_temporary = False
        self.if_exists = False
        self.tables: list[TableUse] = []
        self.functions: list[FunctionUse] = []
        self.body_functions: list[FunctionUse] = []
        self.system_variables: list[SystemVariableUse] = []
        self.user_variables: list[UserVariableUse] = []
        self.limits: list[Limit] = []
        self.assignments: list[Assignment] = []
        self.statement_assignments: list[Assignment] = []
        self.set_columns: list[SetColumn] = []
        self.others: dict[str, Any] = {}
        """Facts that few statements have, by their names."""

    # Results ----------------------------------------------------------------------------------

    def effects(self) -> StatementEffects:
        """What was found; a table both written and read counts as written."""
        return StatementEffects(
            kind=self.kind,
            writes=tuple(self.writes),
            reads=tuple(table for table in self.reads if table not in self.writes),
            databases=tuple(self.databases),
            objects=tuple(self.objects),
            calls=tuple(self.calls),
            renames=tuple(self.renames),
            drops=tuple(self.drops),
            is_temporary=self.is_temporary,
            if_exists=self.if_exists,
        )

    def facts(self, node: Node) -> StatementFacts:
        """What was found in the statement that a node is."""
        return StatementFacts(
            effects=self.effects(),
            tree=node,
            text=self.text,
            dialect=self.dialect,
            verb=self.verb,
            tables=tuple(self.tables),
            functions=tuple(sorted(self.functions, key=_offset)),
            body_functions=tuple(self.body_functions),
            system_variables=tuple(self.system_variables),
            user_variables=tuple(sorted(self.user_variables, key=_offset)),
            limits=tuple(self.limits),
            assignments=tuple(self.assignments),
            statement_assignments=tuple(self.statement_assignments),
            set_columns=tuple(self.set_columns),
            **self.others,
        )

    # Names ------------------------------------------------------------------------------------

    def resolve(self, name: tree.ObjectName) -> TableName:
        """Give a name its database."""
        if name.database is None:
            return TableName(self.database, name.name)
        return TableName(name.database, name.name)

    def write(self, *tables: TableName) -> None:
        """Note tables that change."""
        self.writes.update(dict.fromkeys(tables))

    def read(self, *tables: TableName) -> None:
        """Note tables that are read or named."""
        self.reads.update(dict.fromkeys(tables))

    def use(self, table: TableUse) -> None:
        """Note a place where a table is named, and that it is changed or read."""
        self.tables.append(table)
        (self.write if table.changes else self.read)(table.name)

    def name_table(self, name: tree.ObjectName, lock: str = "") -> TableName:
        """Note a place where a table is named whose rows are neither read nor changed."""
        found = self.resolve(name)
        self.tables.append(
            TableUse(
                name=found,
                alias=found.table,
                offset=name.at,
                length=name.end - name.at,
                lock=lock,
            )
        )
        return found

    def change(self, index: int, change: RowChange) -> None:
        """Note that the rows of a table noted before change."""
        table = self.tables[index]
        self.tables[index] = _with(table, changes=table.changes | {change})
        self.write(table.name)

    def note(self, **facts: Any) -> None:
        """Note facts that few statements have."""
        self.others.update(facts)

    def add_options(self, options: Iterable[str]) -> None:
        """Note words that a command adds."""
        self.others["options"] = self.others.get("options", frozenset()) | frozenset(options)

    def text_of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.at : node.end]

    def outer_place(self, query: tree.Query) -> int:
        """Where a query begins, with the parentheses around it."""
        place = query.at
        while (before := self.text[:place].rstrip()).endswith("("):
            place = len(before) - 1
        return place

    # Statements -------------------------------------------------------------------------------

    def statement(self, node: Node) -> None:
        """Find all that a statement says.

        Raises:
            Untold: If a name of it means nothing.
        """
        while isinstance(node, statements.SetStatement):
            self._assign(node.items, self.statement_assignments)
            node = node.statement
        reader = STATEMENTS.get(type(node))
        if reader is None:
            reader = FactFinder.compound if isinstance(node, statements.PROGRAMS) else _no_statement
        reader(self, node)

    def insert(self, node: statements.Insert) -> None:
        """INSERT and REPLACE."""
        self.kind, changes = _INSERTS[node.verb]
        self.verb = node.verb
        if node.on_duplicate is not None:
            changes |= {RowChange.UPSERT}
        self.use(self._target(node.table, changes))
        rows, query = node.rows, node.query
        if query is not None and isinstance(query.body, tree.Values) and is_plain(query):
            rows, query = query.body.rows, None  # VALUES ROW(…) of MySQL is no reading query
        if rows is not None:
            self.walk(told(rows))
        if query is not None:
            self.walk((query,))
        if node.on_duplicate is not None:
            self._set(node.on_duplicate)
        if node.returning is not None:
            self.walk(node.returning)
        self.note(
            is_replace=node.verb == "REPLACE",
            is_ignore="IGNORE" in node.modifiers,
            is_delayed="DELAYED" in node.modifiers,
            columns=node.columns,
            row_count=0 if rows is None else len(rows),
            has_query=query is not None,
            query_offset=None if query is None else self.outer_place(query),
            is_on_duplicate=node.on_duplicate is not None,
            on_duplicate_offset=node.on_duplicate_at if node.on_duplicate is not None else None,
            has_returning=node.returning is not None,
        )

    def _target(self, table: tree.TableUse, changes: frozenset[RowChange]) -> TableUse:
        name = self.resolve(table.name)
        return TableUse(
            name=name,
            alias=table.alias or name.table,
            changes=changes,
            offset=table.name.at,
            length=table.name.end - table.name.at,
        )

    def _set(self, assignments: Sequence[statements.Assignment], scope: Scope = Scope()) -> None:  # noqa: B008 - a value
        """What UPDATE and ON DUPLICATE KEY UPDATE set."""
        for item in assignments:
            *qualifier, name = item.column.parts
            self.set_columns.append(
                SetColumn(qualifier=qualifier[-1] if qualifier else None, name=name)
            )
            self.walk((item.value,), scope)

    def update(self, node: statements.Update) -> None:
        """UPDATE of one or several tables."""
        self.kind, self.verb = StatementKind.UPDATE, "UPDATE"
        scope = self._with(node.with_)
        before = len(self.tables)
        self.walk(node.tables, scope)
        targets = self._outermost(before)
        self._set(node.assignments, scope)
        for item in node.assignments:
            *qualifier, _ = item.column.parts
            self._change_targets(targets, qualifier, item.column, RowChange.UPDATE)
        self._clauses(node, scope)
        self.note(
            is_multi_table=len(node.tables) > 1 or type(node.tables[0]) is not tree.TableUse,
            is_ignore="IGNORE" in node.modifiers,
        )

    def delete(self, node: statements.Delete) -> None:
        """DELETE of one or several tables."""
        self.kind, self.verb = StatementKind.DELETE, "DELETE"
        scope = self._with(node.with_)
        before = len(self.tables)
        self.walk(node.tables, scope)
        targets = self._outermost(before)
        if node.targets is None:
            self._change_targets(targets, (), node.tables[0], RowChange.DELETE)
        else:
            for target in node.targets:
                parts = (
                    (target.name,) if target.database is None else (target.database, target.name)
                )
                self._change_targets(targets, parts, target, RowChange.DELETE)
        if node.before is not None:
            self.walk((node.before,), scope)
        self._clauses(node, scope)
        self.note(is_multi_table=node.targets is not None, is_ignore="IGNORE" in node.modifiers)
        if "HISTORY" in node.modifiers:
            self.add_options(("HISTORY",))

    def _clauses(self, node: statements.Update | statements.Delete, scope: Scope) -> None:
        for clause in (node.where, *node.order_by, node.limit, *(node.returning or ())):
            if clause is not None:
                self.walk((clause,), scope)
        self.note(has_where=node.where is not None, has_returning=node.returning is not None)

    def _outermost(self, before: int) -> list[int]:
        """The tables that the statement itself names, among those noted from `before` on."""
        return [
            index
            for index in range(before, len(self.tables))
            if self.tables[index].is_outermost and not self.tables[index].is_sequence
        ]

    def _change_targets(
        self, targets: Sequence[int], qualifier: Sequence[str], node: Node, change: RowChange
    ) -> None:
        """Note that the tables which a qualifier means change, all if there is none."""
        found = [index for index in targets if not qualifier or self._is_called(index, qualifier)]
        if not found:
            raise Untold(node, "a table of the statement")
        for index in found:
            self.change(index, change)

    def _is_called(self, index: int, qualifier: Sequence[str]) -> bool:
        table = self.tables[index]
        if self.dialect.lower_case_names:
            qualifier = [folded(name) for name in qualifier]
        if len(qualifier) == 1:
            return table.alias == qualifier[0]
        return table.alias == table.name.table and table.name == TableName(*qualifier)

    def load_data(self, node: statements.LoadData) -> None:
        """LOAD DATA and LOAD XML."""
        self.kind, self.verb = StatementKind.LOAD_DATA, node.verb
        self.use(self._target(node.table, frozenset((RowChange.LOAD,))))
        self._set(node.assignments)
        columns = node.columns
        self.note(
            name=string_value(
                self.text_of(node.file).lstrip("nN"),
                has_escapes=not self.dialect.no_backslash_escapes,
            ),
            is_ignore="IGNORE" in node.modifiers,
            is_replace="REPLACE" in node.modifiers,
            is_local="LOCAL" in node.modifiers,
            columns=columns
            and tuple(
                column.parts[-1] if isinstance(column, values.Name) else self.text_of(column)
                for column in columns
            ),
        )

    def query_statement(self, node: statements.QueryStatement) -> None:
        """A query."""
        self.kind = StatementKind.SELECT
        self.verb = "SELECT" if node.verb == "WITH" else node.verb
        self.walk((node.query,))

    def do(self, node: statements.Do) -> None:
        """DO."""
        self.kind, self.verb = StatementKind.DO, "DO"
        self.walk(node.values)

    def call_procedure(self, node: statements.CallProcedure) -> None:
        """CALL."""
        self.kind, self.verb = StatementKind.CALL, "CALL"
        self.calls[self.resolve(node.name)] = None
        self.walk(node.arguments)
        self._note_call(node.name.name, node.name.database, node.arguments, node.name.at, node.end)

    def handler(self, node: statements.HandlerStatement) -> None:
        """HANDLER."""
        self.kind, self.verb = StatementKind.HANDLER, node.verb
        self.note(name=node.alias or node.name.name)
        if node.verb == "HANDLER OPEN":
            use = self._target(tree.TableUse(node.at, node.end, node.name), frozenset())
            self.use(_with(use, alias=node.alias or node.name.name))
        self.walk((*node.values, *(each for each in (node.where, node.limit) if each is not None)))

    # SET, transactions, prepared statements ---------------------------------------------------

    def set(self, node: statements.Set) -> None:
        """SET."""
        self.kind, self.verb = StatementKind.SET, node.verb
        self._assign(node.items, self.assignments)

    def _assign(self, items: Sequence[statements.SetItem], found: list[Assignment]) -> None:
        for item in items:
            if item.value is not None:
                value = self.text_of(item.value)
                self.walk((item.value,))
            else:
                value = item.words or "DEFAULT"
            found.append(
                Assignment(
                    name=item.name,
                    scope=_SCOPES[item.scope],
                    value=value,
                    node=item.value,
                    offset=item.at,
                    length=item.end - item.at,
                )
            )

    def transaction(self, node: statements.Transaction) -> None:
        """BEGIN, COMMIT, SAVEPOINT, XA and the like."""
        self.verb = node.verb
        self.kind = _TRANSACTIONS.get(node.verb, StatementKind.XA)
        self.note(name=node.name)
        if node.xid:
            self.note(xid=self.text[node.xid[0].at : node.xid[-1].end])
        if node.options:
            self.add_options(node.options - {"AND NO CHAIN", "NO RELEASE"})

    def prepare(self, node: statements.Prepare) -> None:
        """PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE."""
        self.verb = node.verb
        self.kind = _PREPARES[node.verb]
        self.note(name=node.name)
        if node.source is not None:
            self.walk((node.source,))
        self.walk(node.using)

    def lock(self, node: statements.Lock) -> None:
        """LOCK TABLES and the like."""
        self.kind, self.verb = StatementKind.LOCK, node.verb
        for table, words in node.tables:
            self.name_table(table.name, words)

    def administration(self, node: statements.Administration) -> None:
        """USE, SHOW, FLUSH, maintenance, ANALYZE of a statement."""
        first = node.verb.partition(" ")[0]
        if first == "ANALYZE" and node.statement is not None:
            self.statement(node.statement)  # it is executed
            self.add_options(("ANALYZE",))
            return
        self.verb = node.verb
        self.kind = StatementKind.SESSION
        if first == "FLUSH":
            self.kind = StatementKind.FLUSH
        elif first in _MAINTENANCE and node.verb.endswith((" TABLE", " VIEW")):
            self.kind = StatementKind.MAINTENANCE
        if self.kind is not StatementKind.SESSION:
            self.note(is_local=bool(node.options & {"NO_WRITE_TO_BINLOG", "LOCAL"}))
            for table in node.tables:
                self.write(self.name_table(table))
        if node.name:
            self.note(name=node.name)
        self.add_options(node.options & {"WITH READ LOCK", "FOR EXPORT"})

    def diagnostics(self, node: statements.Diagnostics) -> None:
        """SIGNAL, RESIGNAL, GET DIAGNOSTICS."""
        self.kind, self.verb = StatementKind.SIGNAL, node.verb
        if node.verb != "GET DIAGNOSTICS":
            self.walk([value for _, value in node.items])

    def binlog(self, node: statements.BinlogStatement) -> None:
        """BINLOG."""
        self.kind, self.verb = StatementKind.BINLOG, node.verb

    def empty(self, _: Node) -> None:
        """Nothing."""
        self.kind = StatementKind.EMPTY

    def compound(self, node: Node) -> None:
        """A compound statement outside of routines."""
        self.kind, self.verb = StatementKind.COMPOUND, "BEGIN NOT ATOMIC"
        self.note(body_offset=node.at)
        self.program(node)

    # Bodies -----------------------------------------------------------------------------------

    def program(self, body: Node) -> None:
        """Note all that a body names and does."""
        for node in parts_of(body):
            if is_statement(node):
                inner = FactFinder(self.text, self.database, self.dialect)
                inner.statement(node)
                self._absorb(inner)
            else:
                self.walk((node,))

    def _absorb(self, other: FactFinder) -> None:
        """Note all that a statement of a body names and does."""
        self.writes.update(other.writes)
        self.reads.update(other.reads)
        self.databases.update(other.databases)
        self.objects.update(other.objects)
        self.calls.update(other.calls)
        self.renames += other.renames
        self.drops.update(other.drops)
        self.tables += other.tables
        self.functions += other.functions
        self.system_variables += other.system_variables
        self.user_variables += other.user_variables
        self.limits += other.limits

    def refer_to(self, body: FactFinder) -> None:
        """Note everything that the body of a view, routine, trigger or event names."""
        self.read(*body.writes, *body.reads)
        self.calls.update(body.calls)
        self.body_functions += sorted(body.functions, key=_offset)

    # Queries and expressions ------------------------------------------------------------------

    def walk(self, nodes: Iterable[Node], scope: Scope = Scope()) -> None:  # noqa: B008 - a value
        """Go through queries, tables and expressions, without the depth of Python's own stack."""
        waiting = [(node, scope) for node in nodes]
        waiting.reverse()
        while waiting:
            node, where = waiting.pop()
            kind = type(node)
            if kind in _LEAVES:
                continue
            reader = _READERS.get(kind)
            inside = _inside(node, where) if reader is None else reader(self, node, where)
            if inside:
                inside.reverse()
                waiting += inside

    def _user_variable(self, node: values.UserVariable, _: Scope) -> None:
        self._note_variable(node, is_assigned=False)

    def _note_variable(self, node: values.UserVariable, *, is_assigned: bool) -> None:
        self.user_variables.append(
            UserVariableUse(
                name=node.name,
                is_assigned=is_assigned,
                is_read=not is_assigned,
                offset=node.at,
                length=node.end - node.at,
            )
        )

    def _assignment(self, node: values.Assign, scope: Scope) -> list[Step]:
        self._note_variable(node.target, is_assigned=True)
        return [(node.value, scope)]

    def _system_variable(self, node: values.SystemVariable, _: Scope) -> None:
        self.system_variables.append(
            SystemVariableUse(
                name=node.name,
                scope=_SCOPES[node.scope],
                offset=node.at,
                length=node.end - node.at,
            )
        )

    def _call(self, node: values.Call, scope: Scope) -> list[Step]:
        name = node.upper_name
        inside = [(child, scope) for child in children(node)]
        if name in _NO_FUNCTIONS and not node.is_quoted:
            return inside
        if (
            name in _SEQUENCE_FUNCTIONS
            and node.database is None
            and node.arguments
            and isinstance(sequence := node.arguments[0], values.Name)
            and self.dialect.may_be_mariadb
        ):
            self._use_sequence(sequence, advances=name != "LASTVAL")
            inside = inside[1:]
        if node.database is not None:
            called = TableName(node.database, node.name)
            self.calls[called.folded if self.dialect.lower_case_names else called] = None
        self._note_call(
            node.name,
            node.database,
            node.arguments,
            node.at,
            node.end,
            is_quoted=node.is_quoted,
        )
        return inside

    def _note_call(
        self,
        name: str,
        database: str | None,
        arguments: Sequence[values.Expression],
        start: int,
        end: int,
        *,
        is_quoted: bool = False,
    ) -> None:
        self.functions.append(
            FunctionUse(
                name=name,
                database=database,
                arguments=tuple(arguments),
                offset=start,
                length=end - start,
                is_quoted=is_quoted,
            )
        )

    def _use_sequence(self, node: values.Name, *, advances: bool) -> None:
        name = tree.ObjectName(
            node.at, node.end, node.parts[-2] if len(node.parts) > 1 else None, node.parts[-1]
        )
        found = self.resolve(name)
        self.use(
            TableUse(
                name=found,
                alias=found.table,
                changes=frozenset((RowChange.SEQUENCE,) if advances else ()),
                offset=node.at,
                length=node.end - node.at,
                is_sequence=True,
            )
        )

    def _default(self, node: values.Default, _: Scope) -> None:
        if node.column is None and node.word == "DEFAULT":
            self.note(defaults=True)

    def _subquery(self, node: values.Subquery | tree.DerivedTable, scope: Scope) -> list[Step]:
        return [(node.query, scope.inside())]

    def _with(self, node: tree.With | None, scope: Scope = Scope()) -> Scope:  # noqa: B008 - a value
        """Go through WITH; the scope of what stands behind it."""
        if node is None:
            return scope
        common = scope.common
        for table in node.tables:
            known = common | {table.name}
            self.walk(
                (table.query,), Scope(known if node.is_recursive else common, is_outermost=False)
            )
            common = known
        return scope._replace(common=common)

    def _query(self, node: tree.Query, scope: Scope) -> list[Step]:
        if node.with_ is not None:
            scope = self._with(node.with_, scope)
        inner = scope._replace(locked=None) if scope.locked is not None else scope
        outer = inner
        for lock in node.locks:
            if lock.is_for_update:
                names = frozenset(table.name for table in lock.tables)
                inner = inner._replace(locked=names)
            if lock.wait in ("SKIP LOCKED", "NOWAIT"):
                name = "skip_locked" if lock.wait == "SKIP LOCKED" else "nowait"
                self.others.setdefault(name, lock.wait_at)
        if node.into is not None:
            self._into(node.into)
        inside: list[Step] = [(node.body, inner)]
        inside += [(item, outer) for item in node.order_by]
        if node.limit is not None:
            inside.append((node.limit, outer))
        return inside

    def _into(self, node: tree.Into) -> None:
        self.note(has_into=True)
        if node.outfile is not None or node.dumpfile is not None:
            self.add_options(("OUTFILE",))
        for target in node.variables:
            if isinstance(target, values.UserVariable):
                self._note_variable(target, is_assigned=True)

    def _select(self, node: tree.Select, scope: Scope) -> list[Step]:
        plain = scope._replace(locked=None) if scope.locked is not None else scope
        inside = [(child, plain) for child in children(node)]
        if scope.locked is not None:
            start = len(node.items)
            inside[start : start + len(node.tables)] = [(table, scope) for table in node.tables]
        if node.procedure is not None:
            self.add_options(("PROCEDURE",))
        return inside

    def _table_use(self, node: tree.TableUse, scope: Scope) -> list[Step] | None:
        name = node.name
        if name.database is None and name.name in scope.common:
            return None
        alias = node.alias or name.name
        self.use(
            TableUse(
                name=self.resolve(name),
                alias=alias,
                offset=name.at,
                length=name.end - name.at,
                is_outermost=scope.is_outermost,
                is_locked_for_update=scope.locked is not None
                and (not scope.locked or alias in scope.locked),
            )
        )
        if node.period is None and node.portion is None:
            return None
        return [(child, scope) for child in children(node) if child is not name]

    def _join(self, node: tree.Join, scope: Scope) -> list[Step]:
        inside: list[Step] = [(node.left, scope), (node.right, scope)]
        if node.on is not None:
            inside.append((node.on, scope))
        return inside

    def _limit(self, node: tree.Limit, scope: Scope) -> list[Step]:
        self.limits.append(
            Limit(
                offset=node.at,
                length=node.end - node.at,
                is_zero=isinstance(node.count, values.Literal) and self.text_of(node.count) == "0",
            )
        )
        return [(child, scope) for child in children(node)]


def is_plain(query: tree.Query) -> bool:
    """Whether a query has no clauses around its body."""
    return query.with_ is None and query.limit is None and not query.order_by


def _inside(node: Node, scope: Scope) -> list[Step] | None:
    return [(child, scope) for child in children(node)]


class Untold(Exception):  # noqa: N818 - not an error of the text: no server's catalog is at hand
    """The statement is understood, but what it is about cannot be told.

    Attributes:
        node: What.
        expected: What is missing.
    """

    def __init__(self, node: Node, expected: str) -> None:
        super().__init__(expected)
        self.node = node
        self.expected = expected


_LEAVES: Final = frozenset(
    (values.Literal, values.Name, values.Parameter, values.Star, values.DataType, tree.ObjectName)
)
_Reader = Callable[[FactFinder, Any, Scope], "list[Step] | None"]
_READERS: Final[Mapping[type, _Reader]] = MappingProxyType(
    {
        values.UserVariable: FactFinder._user_variable,  # noqa: SLF001 - its own table
        values.SystemVariable: FactFinder._system_variable,  # noqa: SLF001
        values.Assign: FactFinder._assignment,  # noqa: SLF001
        values.Call: FactFinder._call,  # noqa: SLF001
        values.Default: FactFinder._default,  # noqa: SLF001
        values.Subquery: FactFinder._subquery,  # noqa: SLF001
        tree.DerivedTable: FactFinder._subquery,  # noqa: SLF001
        tree.Query: FactFinder._query,  # noqa: SLF001
        tree.Select: FactFinder._select,  # noqa: SLF001
        tree.TableUse: FactFinder._table_use,  # noqa: SLF001
        tree.Join: FactFinder._join,  # noqa: SLF001
        tree.Limit: FactFinder._limit,  # noqa: SLF001
    }
)


PROGRAM_PARTS: Final = (
    *statements.PROGRAMS,
    statements.VariableDeclaration,
    statements.ConditionDeclaration,
    statements.CursorDeclaration,
    statements.HandlerDeclaration,
    statements.Branch,
)
_TRANSACTIONS: Final = {
    "BEGIN": StatementKind.BEGIN,
    "START TRANSACTION": StatementKind.BEGIN,
    "COMMIT": StatementKind.COMMIT,
    "ROLLBACK": StatementKind.ROLLBACK,
    "ROLLBACK TO": StatementKind.ROLLBACK_TO,
    "SAVEPOINT": StatementKind.SAVEPOINT,
    "RELEASE SAVEPOINT": StatementKind.RELEASE_SAVEPOINT,
}
_PREPARES: Final = {
    "PREPARE": StatementKind.PREPARE,
    "EXECUTE": StatementKind.EXECUTE,
    "EXECUTE IMMEDIATE": StatementKind.EXECUTE_IMMEDIATE,
    "DEALLOCATE": StatementKind.DEALLOCATE,
}
_MAINTENANCE: Final = frozenset(("ANALYZE", "OPTIMIZE", "REPAIR", "CHECK"))


def _offset(use: FunctionUse | UserVariableUse) -> int:
    return use.offset


def _with(table: TableUse, **changes: Any) -> TableUse:
    return replace(table, **changes)


def _no_statement(_: FactFinder, node: Node) -> None:
    raise Untold(node, "a statement")


# What DDL does to objects ---------------------------------------------------------------------


def _create_table(finder: FactFinder, node: definitions.CreateTable) -> None:
    finder.verb = "CREATE TABLE"
    finder.kind = StatementKind.CREATE_TABLE
    finder.is_temporary, finder.if_exists = node.is_temporary, node.if_not_exists
    target = len(finder.tables)
    table = finder.name_table(node.name)
    finder.write(table)
    finder.note(is_or_replace=node.is_or_replace)
    if node.like is not None:
        finder.kind = StatementKind.CREATE_TABLE_LIKE
        finder.read(finder.name_table(node.like))
        return
    _define(finder, node.elements, table)
    _define(finder, node.options, table)
    if node.query is None:
        return
    finder.kind = StatementKind.CREATE_TABLE_SELECT
    is_replace = node.on_existing == "REPLACE"
    finder.change(target, RowChange.REPLACE if is_replace else RowChange.INSERT)
    finder.note(
        is_replace=is_replace,
        is_ignore=node.on_existing == "IGNORE",
        has_query=True,
        query_offset=finder.outer_place(node.query),
    )
    finder.walk((node.query,))


def _define(finder: FactFinder, parts: Iterable[Node], table: TableName) -> None:
    """Note what definitions of columns, keys and options refer to."""
    waiting = list(reversed(list(parts)))
    while waiting:
        node = waiting.pop()
        if isinstance(node, definitions.Reference):
            finder.read(_beside(finder, node.table, table))
        elif isinstance(node, definitions.TableOption):
            if node.name == "ENGINE":
                finder.note(engine=node.value.upper())
            finder.read(*(finder.resolve(name) for name in node.tables))
        elif isinstance(node, values.Call) and node.upper_name in _SEQUENCE_FUNCTIONS:
            finder.read(*map(finder.resolve, _sequence_names(node)))
        else:
            waiting.extend(reversed(list(children(node))))


def _sequence_names(call: values.Call) -> Iterable[tree.ObjectName]:
    for name in call.arguments[:1]:
        if not isinstance(name, values.Name):
            continue
        yield tree.ObjectName(
            name.at, name.end, name.parts[-2] if len(name.parts) > 1 else None, name.parts[-1]
        )


def _beside(finder: FactFinder, name: tree.ObjectName, table: TableName) -> TableName:
    """The table that REFERENCES means: without a database it is that of the table that refers."""
    return TableName(table.database, name.name) if name.database is None else finder.resolve(name)


def _alter_table(finder: FactFinder, node: definitions.AlterTable) -> None:
    finder.kind, finder.verb = StatementKind.ALTER_TABLE, "ALTER TABLE"
    finder.if_exists = "IF EXISTS" in node.modifiers
    finder.note(is_ignore="IGNORE" in node.modifiers)
    table = finder.name_table(node.name)
    finder.write(table)
    for action in node.actions:
        if action.table is None:
            _define(finder, (action,), table)
            continue
        other = finder.name_table(action.table)
        finder.write(other)
        if action.kind == "RENAME":
            finder.renames = [(table, other)]
        elif "CONVERT TABLE" in " ".join((action.kind, *action.words)):
            finder.drops[other] = None
        _define(finder, (each for each in children(action) if each is not action.table), table)


def _create_index(finder: FactFinder, node: definitions.CreateIndex) -> None:
    finder.kind, finder.verb = StatementKind.CREATE_INDEX, "CREATE INDEX"
    finder.if_exists = node.key.if_not_exists
    finder.note(is_or_replace="OR REPLACE" in node.words)
    finder.write(finder.name_table(node.table))


def _drop_index(finder: FactFinder, node: definitions.DropIndex) -> None:
    finder.kind, finder.verb = StatementKind.DROP_INDEX, "DROP INDEX"
    finder.if_exists = node.if_exists
    finder.write(finder.name_table(node.table))


_DROPS: Final = {
    "DROP TABLE": StatementKind.DROP_TABLE,
    "DROP VIEW": StatementKind.DROP_VIEW,
    "DROP SEQUENCE": StatementKind.DROP_SEQUENCE,
    "TRUNCATE TABLE": StatementKind.TRUNCATE_TABLE,
}


def _drop_tables(finder: FactFinder, node: definitions.DropTables) -> None:
    finder.kind, finder.verb = _DROPS[node.verb], node.verb
    finder.is_temporary, finder.if_exists = node.is_temporary, node.if_exists
    for name in node.names:
        table = finder.name_table(name)
        if finder.kind is StatementKind.DROP_VIEW:
            _change_object(finder, table)
            continue
        finder.write(table)
        if finder.kind is not StatementKind.TRUNCATE_TABLE:
            finder.drops[table] = None
    if node.option:
        finder.add_options((node.option,))


def _rename_tables(finder: FactFinder, node: definitions.RenameTables) -> None:
    finder.kind, finder.verb = StatementKind.RENAME_TABLE, "RENAME TABLE"
    finder.if_exists = node.if_exists
    for old, new in node.pairs:
        finder.renames.append((finder.name_table(old), finder.name_table(new)))
    renamed = finder.effects()
    finder.write(*renamed.renamed_tables, *(new for _, new in renamed.net_renames))


def _sequence(finder: FactFinder, node: definitions.Sequence) -> None:
    finder.verb = node.verb
    is_new = node.verb.startswith("CREATE")
    finder.kind = StatementKind.CREATE_SEQUENCE if is_new else StatementKind.ALTER_SEQUENCE
    finder.is_temporary, finder.if_exists = node.is_temporary, node.if_exists
    finder.note(is_or_replace=node.is_or_replace)
    finder.write(finder.name_table(node.name))


_DATABASES: Final = {
    "CREATE": StatementKind.CREATE_DATABASE,
    "ALTER": StatementKind.ALTER_DATABASE,
    "DROP": StatementKind.DROP_DATABASE,
}


def _database(finder: FactFinder, node: definitions.Database) -> None:
    finder.verb = node.verb
    finder.kind = _DATABASES[node.verb.partition(" ")[0]]
    finder.if_exists = node.if_exists
    finder.note(is_or_replace=node.is_or_replace)
    if node.name is None:
        finder.databases[finder.database] = None
    else:
        finder.databases[node.name.name] = None


def _change_object(finder: FactFinder, name: TableName) -> None:
    """Note a view, trigger, routine or event, and that its database changes."""
    finder.objects[name] = None
    finder.databases[name.database] = None


def _view(finder: FactFinder, node: definitions.CreateView) -> None:
    finder.verb = node.verb
    is_new = node.verb.startswith("CREATE")
    finder.kind = StatementKind.CREATE_VIEW if is_new else StatementKind.ALTER_VIEW
    finder.if_exists = node.if_not_exists
    finder.note(is_or_replace=node.is_or_replace, body_offset=finder.outer_place(node.query))
    _change_object(finder, finder.resolve(node.name))
    body = FactFinder(finder.text, finder.database, finder.dialect)
    body.walk((node.query,))
    finder.refer_to(body)
    finder.tables += body.tables


def _routine(finder: FactFinder, node: definitions.CreateRoutine) -> None:
    finder.kind, finder.verb = StatementKind.CREATE_ROUTINE, node.verb
    finder.if_exists = node.if_not_exists
    finder.note(is_or_replace=node.is_or_replace)
    name = finder.resolve(node.name)
    _change_object(finder, name)
    if node.soname:
        finder.add_options(("SONAME",))
    elif node.body is not None:
        _body(finder, node.body, node.body_at, name)
    elif node.body_at >= 0:
        finder.note(body_offset=node.body_at)


def _body(finder: FactFinder, body: Node, start: int, name: TableName) -> None:
    """Refer to what a body names.

    It runs in the database of its program, whatever the default one is when that is made.
    """
    inside = FactFinder(finder.text, name.database, finder.dialect)
    inside.program(body)
    finder.note(body_offset=start)
    finder.refer_to(inside)


def _trigger(finder: FactFinder, node: definitions.CreateTrigger) -> None:
    finder.kind, finder.verb = StatementKind.CREATE_TRIGGER, "CREATE TRIGGER"
    finder.if_exists = node.if_not_exists
    finder.note(is_or_replace=node.is_or_replace)
    name = finder.resolve(node.name)
    finder.objects[name] = None
    # Its table counts as written, for what it does changes.
    finder.write(finder.name_table(node.table))
    _body(finder, node.body, node.body_at, name)


def _event(finder: FactFinder, node: definitions.Event) -> None:
    finder.verb = node.verb
    is_new = node.verb.startswith("CREATE")
    finder.kind = StatementKind.CREATE_EVENT if is_new else StatementKind.ALTER_EVENT
    finder.if_exists = node.if_exists
    finder.note(is_or_replace=node.is_or_replace)
    name = finder.resolve(node.name)
    _change_object(finder, name)
    if node.new_name is not None:
        _change_object(finder, finder.resolve(node.new_name))
    if node.body is not None:
        _body(finder, node.body, node.body_at, name)


_OBJECTS: Final = {
    "PROCEDURE": "ROUTINE",
    "FUNCTION": "ROUTINE",
    "TRIGGER": "TRIGGER",
    "EVENT": "EVENT",
    "PACKAGE": "PACKAGE",
    "PACKAGE BODY": "PACKAGE",
    "LIBRARY": "LIBRARY",
}
"""Objects of a database, by what a verb calls them."""
_TABLESPACES: Final = ("TABLESPACE", "UNDO", "LOGFILE")


def _object(finder: FactFinder, node: definitions.ObjectStatement) -> None:
    finder.verb = node.verb
    finder.if_exists = node.if_exists
    finder.note(is_or_replace=node.is_or_replace)
    action, _, what = node.verb.partition(" ")
    kind = _OBJECTS.get(what)
    if kind is not None:
        finder.kind = StatementKind[f"{action}_{kind}"]
        if node.name is not None:
            _change_object(finder, finder.resolve(node.name))
    elif what == "SERVER":
        finder.kind = StatementKind.SERVER
        finder.databases[ACCOUNT_DATABASE] = None
    elif what.startswith("SPATIAL"):
        finder.kind = StatementKind[f"{action}_REFERENCE_SYSTEM"]
        finder.databases[ACCOUNT_DATABASE] = None
    elif what.startswith(_TABLESPACES):
        finder.kind = StatementKind.TABLESPACE
    else:
        finder.kind = StatementKind.SESSION


def _account(finder: FactFinder, node: definitions.AccountStatement) -> None:
    finder.verb = node.verb
    if node.verb == "SET ROLE":
        finder.kind = StatementKind.SET
        finder.assignments.append(
            Assignment(
                name="role",
                scope=VariableScope.UNSAID,
                value=finder.text[node.at : node.end].split(None, 2)[-1],
                offset=node.at,
                length=node.end - node.at,
            )
        )
        return
    finder.kind = StatementKind.ACCOUNT
    finder.note(is_or_replace="OR REPLACE" in node.options)
    finder.databases[ACCOUNT_DATABASE] = None


STATEMENTS: Final[Mapping[type, Callable[[FactFinder, Any], None]]] = MappingProxyType(
    {
        statements.Insert: FactFinder.insert,
        statements.Update: FactFinder.update,
        statements.Delete: FactFinder.delete,
        statements.LoadData: FactFinder.load_data,
        statements.QueryStatement: FactFinder.query_statement,
        statements.Do: FactFinder.do,
        statements.CallProcedure: FactFinder.call_procedure,
        statements.HandlerStatement: FactFinder.handler,
        statements.Set: FactFinder.set,
        statements.Transaction: FactFinder.transaction,
        statements.Prepare: FactFinder.prepare,
        statements.Lock: FactFinder.lock,
        statements.Administration: FactFinder.administration,
        statements.Diagnostics: FactFinder.diagnostics,
        statements.BinlogStatement: FactFinder.binlog,
        statements.Empty: FactFinder.empty,
        definitions.CreateTable: _create_table,
        definitions.AlterTable: _alter_table,
        definitions.CreateIndex: _create_index,
        definitions.DropIndex: _drop_index,
        definitions.DropTables: _drop_tables,
        definitions.RenameTables: _rename_tables,
        definitions.Sequence: _sequence,
        definitions.Database: _database,
        definitions.CreateView: _view,
        definitions.CreateRoutine: _routine,
        definitions.CreateTrigger: _trigger,
        definitions.Event: _event,
        definitions.ObjectStatement: _object,
        definitions.AccountStatement: _account,
    }
)


def parts_of(body: Node) -> Iterator[Node]:
    """The statements, expressions and queries of a body, in the order of the text."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, PROGRAM_PARTS):
            waiting.extend(reversed(list(children(node))))
        elif not isinstance(node, values.DataType):
            yield node


def is_statement(node: Node) -> bool:
    """Whether a part of a body is a statement, no expression or query."""
    return type(node) in STATEMENTS or isinstance(node, statements.SetStatement)


def facts_of(node: Node, text: str, database: str, dialect: Dialect) -> StatementFacts:
    """The facts of a statement, query or expression; those of an expression are those of a DO.

    Args:
        node: It; also one in a body.
        text: What holds it: all places count from its begin.
        database: The default database.
        dialect: As it was read.

    Raises:
        Untold: If a name in it means nothing.
    """
    if dialect.lower_case_names:
        database = folded(database)
    finder = FactFinder(text, database, dialect)
    if is_statement(node) or isinstance(node, statements.PROGRAMS):
        finder.statement(node)
    else:
        is_query = isinstance(node, tree.Query)
        finder.kind = StatementKind.SELECT if is_query else StatementKind.DO
        finder.verb = "SELECT" if is_query else "DO"
        finder.walk((node,))
    return finder.facts(node)
