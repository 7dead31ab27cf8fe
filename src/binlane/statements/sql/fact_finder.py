"""From the tree of a statement to its facts: one pass over the nodes, in the order of the text.

What queries and expressions name is told by `name_finder`; here is what the statements around them
do with it. What DDL does to objects is told behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from binlane.names import ACCOUNT_DATABASE, TableName, folded
from binlane.statements.sql.facts import (
    FunctionUse,
    RowChange,
    StatementEffects,
    StatementFacts,
    UserVariableUse,
    VariableAssignment,
    VariableScope,
)
from binlane.statements.sql.name_finder import (
    SEQUENCE_FUNCTIONS,
    sequence_of,
)
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_finder import PARTS_MAX, StatementFinder, Untold
from binlane.statements.sql.statement_kinds import StatementKind, kind_of
from binlane.statements.sql.tree import definitions, statements
from binlane.statements.sql.tree import expressions as tree
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.expressions import Node, children

NAMES_MAX: Final = 10_000
"""Tables that one statement names, each time anew, and functions that it calls."""
_MAINTENANCE: Final = ("ANALYZE ", "OPTIMIZE ", "REPAIR ", "CHECK ")
PROGRAM_PARTS: Final = (
    *statements.PROGRAMS,
    statements.VariableDeclaration,
    statements.ConditionDeclaration,
    statements.CursorDeclaration,
    statements.HandlerDeclaration,
    statements.Branch,
)
_MANY_PARTS: Final = f"it has more than {PARTS_MAX:,} columns, keys and changes of them"


class FactFinder(StatementFinder):
    """Facts of one statement while its tree is gone through. Attributes as in the values."""

    def effects(self) -> StatementEffects:
        """Give the objects that were found; a table both written and read counts as written."""
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
            is_or_replace=self.is_or_replace,
            if_exists=self.if_exists,
        )

    def facts(self, node: Node) -> StatementFacts:
        """Give the facts that were found in the statement of a node.

        Raises:
            TooMuch: If the statement names more than is looked up.
        """
        if len(self.tables) > NAMES_MAX:
            raise self._too_much(node, f"it names more than {NAMES_MAX:,} tables")
        functions = (*self.functions, *self.body_functions)
        if len(functions) > NAMES_MAX and len({use.name for use in functions}) > NAMES_MAX:
            raise self._too_much(node, f"it calls more than {NAMES_MAX:,} functions")
        return StatementFacts(
            effects=self.effects(),
            tree=statements.innermost(node),
            whole=node,
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

    def statement(self, node: Node) -> None:
        """Find all that a statement says.

        Raises:
            Untold: If a name of it means nothing.
        """
        while isinstance(node, statements.SetStatement):
            self._assign(node.items, self.statement_assignments)
            node = node.statement
        reader = STATEMENTS.get(type(node))
        if reader is not None:
            # Words that statements of several kinds have in common stand in fields of one name.
            self.verb = getattr(node, "verb", "")
            self.kind = kind_of(self.verb)
            self.is_temporary = getattr(node, "is_temporary", False)
            self.if_exists = getattr(node, "if_exists", getattr(node, "if_not_exists", False))
            self.is_or_replace = getattr(node, "is_or_replace", False)
            if "IGNORE" in getattr(node, "modifiers", ()):
                self.note(is_ignore=True)
            reader(self, node)
        elif isinstance(node, statements.PROGRAMS):
            self.kind, self.verb = StatementKind.COMPOUND, "BEGIN NOT ATOMIC"
            self.note(body_offset=node.at)
            self.program(node)
        else:
            raise Untold(node, "a statement")

    def administration(self, node: statements.Administration) -> None:
        """USE, SHOW, FLUSH, maintenance, ANALYZE of a statement."""
        if node.verb.startswith("ANALYZE") and node.statement is not None:
            self.statement(node.statement)  # it is executed
            self.add_options("ANALYZE")
            return
        is_flush = node.verb.startswith("FLUSH")
        if is_flush or (
            node.verb.startswith(_MAINTENANCE) and node.verb.endswith((" TABLE", " VIEW"))
        ):
            self.kind = StatementKind.FLUSH if is_flush else StatementKind.MAINTENANCE
            self.note(is_local=bool(node.options & {"NO_WRITE_TO_BINLOG", "LOCAL"}))
            self.write(*map(self.name_table, node.tables))
        else:
            self.kind = StatementKind.SESSION
            self._evaluate(node)
        self.note(name=node.name)
        self.add_options(*(node.options & {"WITH READ LOCK", "FOR EXPORT"}))

    def _evaluate(self, node: statements.Administration) -> None:
        """Note evaluation without any change: functions, and views, which may call functions.

        MariaDB evaluates parts that it takes for constant to explain a statement, such as derived
        tables; MySQL executes the statement of EXPLAIN ANALYZE, and opens the tables of other
        statements.
        """
        inner = FactFinder(self.text, self.database, self.dialect)
        if node.condition is not None:
            inner.walk((node.condition,))
        elif node.statement is not None:
            inner.statement(node.statement)
        if inner.functions or inner.tables:
            is_opened = node.statement is not None and self.dialect.flavor == "mysql"
            if not is_opened or "ANALYZE" in node.options:
                self.kind = StatementKind.SELECT
            self.functions += inner.functions
            self.tables += [
                replace(use, changes=frozenset(), is_locked_for_update=False, lock="")
                for use in inner.tables
            ]
            self.read(*inner.writes, *inner.reads)

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

    def define_program(self, body: Node, start: int, name: TableName) -> None:
        """Refer to what the body of a program names.

        The body runs in the database of its program, whatever the default one is when that is made.
        """
        inside = FactFinder(self.text, name.database, self.dialect)
        inside.program(body)
        self.note(body_offset=start)
        self.refer_to(inside)

    # Tables -----------------------------------------------------------------------------------

    def create_table(self, node: definitions.CreateTable) -> None:
        """CREATE TABLE, … LIKE and … SELECT."""
        target = len(self.tables)
        table = self.name_table(node.name)
        self.write(table)
        if node.like is not None:
            self.kind = StatementKind.CREATE_TABLE_LIKE
            self.read(self.name_table(node.like))
            return
        if len(node.elements) > PARTS_MAX:
            raise self._too_much(node.elements[PARTS_MAX], _MANY_PARTS)
        self._define((*node.elements, *node.options), table)
        if node.query is None:
            return
        self.kind = StatementKind.CREATE_TABLE_SELECT
        is_replace = node.on_existing == "REPLACE"
        self.change(target, RowChange.REPLACE if is_replace else RowChange.INSERT)
        self.note(
            is_replace=is_replace,
            is_ignore=node.on_existing == "IGNORE",
            has_query=True,
            query_offset=self.outer_place(node.query),
        )
        self.walk((node.query,))

    def _define(self, parts: Iterable[Node], table: TableName) -> None:
        """Note what definitions of columns, keys and options of a table refer to."""
        waiting = list(reversed(list(parts)))
        while waiting:
            node = waiting.pop()
            if isinstance(node, definitions.Reference):
                # Without a database it is that of the table that refers.
                self.read(TableName(node.table.database or table.database, node.table.name))
            elif isinstance(node, definitions.TableOption):
                if node.name == "ENGINE":
                    self.note(engine=node.value.upper())
                self.read(*map(self.resolve, node.tables))
            elif isinstance(node, tree.Call) and node.upper_name in SEQUENCE_FUNCTIONS:
                if (sequence := sequence_of(node)) is not None:
                    self.read(self.resolve(sequence))
            else:
                waiting.extend(reversed(children(node)))

    def alter_table(self, node: definitions.AlterTable) -> None:
        """ALTER TABLE."""
        self.if_exists = "IF EXISTS" in node.modifiers
        table = self.name_table(node.name)
        self.write(table)
        parts = sum(1 + len(each.columns) + len(each.keys) for each in node.actions)
        if parts > PARTS_MAX:
            raise self._too_much(node.actions[-1], _MANY_PARTS)
        for action in node.actions:
            if action.table is None:
                self._define((action,), table)
                continue
            other = self.name_table(action.table)
            self.write(other)
            if action.kind == "RENAME":
                self.renames = [(table, other)]
            elif "CONVERT TABLE" in " ".join((action.kind, *action.words)):
                self.drops[other] = None
            self._define((each for each in children(action) if each is not action.table), table)

    def create_index(self, node: definitions.CreateIndex) -> None:
        """CREATE INDEX."""
        self.if_exists = node.key.if_not_exists
        self.is_or_replace = "OR REPLACE" in node.words
        self.write(self.name_table(node.table))

    def drop_index(self, node: definitions.DropIndex) -> None:
        """DROP INDEX."""
        self.write(self.name_table(node.table))

    def drop_tables(self, node: definitions.DropTables) -> None:
        """DROP of tables, views and sequences, TRUNCATE."""
        names = [self.name_table(name) for name in node.names]
        if self.kind is StatementKind.DROP_VIEW:
            self.change_objects(*names)
        else:
            self.write(*names)
            if self.kind is not StatementKind.TRUNCATE_TABLE:
                self.drops.update(dict.fromkeys(names))
        if node.option:
            self.add_options(node.option)

    def rename_tables(self, node: definitions.RenameTables) -> None:
        """RENAME TABLE."""
        self.renames += [(self.name_table(old), self.name_table(new)) for old, new in node.pairs]
        renamed = self.effects()
        self.write(*renamed.renamed_tables, *(new for _, new in renamed.net_renames))

    def sequence(self, node: definitions.Sequence) -> None:
        """CREATE SEQUENCE and ALTER SEQUENCE."""
        self.write(self.name_table(node.name))

    # Databases, views, programs, accounts -----------------------------------------------------

    def change_objects(self, *names: TableName) -> None:
        """Note views, triggers, routines or events, and that their databases change."""
        for name in names:
            self.objects[name] = None
            self.databases[name.database] = None

    def define_database(self, node: definitions.Database) -> None:
        """CREATE, ALTER and DROP DATABASE."""
        self.databases[self.database if node.name is None else node.name.name] = None

    def view(self, node: definitions.CreateView) -> None:
        """CREATE VIEW and ALTER VIEW."""
        self.note(body_offset=self.outer_place(node.query))
        self.change_objects(self.resolve(node.name))
        body = FactFinder(self.text, self.database, self.dialect)
        body.walk((node.query,))
        self.refer_to(body)
        self.tables += body.tables

    def routine(self, node: definitions.CreateRoutine) -> None:
        """CREATE PROCEDURE and CREATE FUNCTION."""
        name = self.resolve(node.name)
        self.change_objects(name)
        if node.soname:
            self.add_options("SONAME")
        elif node.body is not None:
            self.define_program(node.body, node.body_at, name)
        elif node.body_at >= 0:
            self.note(body_offset=node.body_at)

    def trigger(self, node: definitions.CreateTrigger) -> None:
        """CREATE TRIGGER: its table counts as written, for what it does changes."""
        name = self.resolve(node.name)
        self.objects[name] = None
        self.write(self.name_table(node.table))
        self.define_program(node.body, node.body_at, name)

    def event(self, node: definitions.CreateEvent) -> None:
        """CREATE EVENT and ALTER EVENT."""
        name = self.resolve(node.name)
        self.change_objects(name)
        if node.new_name is not None:
            self.change_objects(self.resolve(node.new_name))
        if node.body is not None:
            self.define_program(node.body, node.body_at, name)

    def object(self, node: definitions.ObjectStatement) -> None:
        """Note a statement on another object, or on one without a form of its own."""
        if self.kind in _BESIDE_DATABASES:
            self.databases[ACCOUNT_DATABASE] = None
        elif self.kind is StatementKind.UNKNOWN:
            self.kind = StatementKind.SESSION
        elif node.name is not None and self.kind is not StatementKind.TABLESPACE:
            self.change_objects(self.resolve(node.name))

    def library(self, node: definitions.CreateLibrary) -> None:
        """CREATE LIBRARY."""
        self.change_objects(self.resolve(node.name))

    def account(self, node: AccountStatement) -> None:
        """Note a statement on users and roles."""
        if node.verb == "SET ROLE":
            role = self.text_of(node).split(None, 2)[-1]
            self.assignments.append(
                VariableAssignment(name="role", scope=VariableScope.UNSAID, value=role)
            )
            return
        self.kind = StatementKind.ACCOUNT
        self.is_or_replace = "OR REPLACE" in node.options
        self.databases[ACCOUNT_DATABASE] = None


_BESIDE_DATABASES: Final = frozenset(
    (
        StatementKind.SERVER,
        StatementKind.CREATE_REFERENCE_SYSTEM,
        StatementKind.DROP_REFERENCE_SYSTEM,
    )
)
"""Objects that belong to no database, kept in `mysql`."""
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
        statements.TransactionStatement: FactFinder.transaction,
        statements.Prepare: FactFinder.prepare,
        statements.Lock: FactFinder.lock,
        statements.Administration: FactFinder.administration,
        statements.Diagnostics: FactFinder.diagnostics,
        statements.BinlogStatement: FactFinder.binlog,
        statements.Empty: FactFinder.empty,
        definitions.CreateTable: FactFinder.create_table,
        definitions.AlterTable: FactFinder.alter_table,
        definitions.CreateIndex: FactFinder.create_index,
        definitions.DropIndex: FactFinder.drop_index,
        definitions.DropTables: FactFinder.drop_tables,
        definitions.RenameTables: FactFinder.rename_tables,
        definitions.Sequence: FactFinder.sequence,
        definitions.Database: FactFinder.define_database,
        definitions.CreateView: FactFinder.view,
        definitions.CreateRoutine: FactFinder.routine,
        definitions.CreateTrigger: FactFinder.trigger,
        definitions.CreateEvent: FactFinder.event,
        definitions.CreateLibrary: FactFinder.library,
        definitions.ObjectStatement: FactFinder.object,
        AccountStatement: FactFinder.account,
    }
)


def _offset(use: FunctionUse | UserVariableUse) -> int:
    return use.offset


def parts_of(body: Node) -> Iterator[Node]:
    """The statements, expressions and queries of a body, in the order of the text."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, PROGRAM_PARTS):
            waiting.extend(reversed(children(node)))
        elif not isinstance(node, tree.DataType):
            yield node


def is_statement(node: Node) -> bool:
    """True if a part of a body is a statement, no expression or query."""
    return type(node) in STATEMENTS or isinstance(node, statements.SetStatement)


def facts_of(node: Node, text: str, database: str, dialect: Dialect) -> StatementFacts:
    """Give the facts of a statement, query or expression; an expression counts as a DO statement.

    Args:
        node: Statement, query or expression, also inside a body.
        text: Text that holds the node: all places count from its begin.
        database: Name of the default database.
        dialect: Dialect in which the text was read.

    Raises:
        Untold: If a name in the node means nothing.
    """
    if dialect.lower_case_names:
        database = folded(database)
    finder = FactFinder(text, database, dialect)
    if is_statement(node) or isinstance(node, statements.PROGRAMS):
        finder.statement(node)
    else:
        finder.verb = "SELECT" if isinstance(node, tree.Query) else "DO"
        finder.kind = kind_of(finder.verb)
        finder.walk((node,))
    return finder.facts(node)
