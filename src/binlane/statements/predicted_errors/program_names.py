"""Names that the body of a program does not declare, and statements that may not stand in it.

Only faults that the servers' parsers find are predicted, in the order of the text. Names of objects are looked
up when the program runs.

Source: sql_yacc.yy and sp_pcontext.cc of MariaDB 10.11 and MySQL 9.7; measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.column_expressions import plain_names
from binlane.statements.predicted_errors.prediction import PredictedError
from binlane.statements.predicted_errors.variable_names import is_no_variable
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import Objects
from binlane.statements.sql.tree.definitions import (
    AlterTable,
    CreateEvent,
    CreateIndex,
    CreateRoutine,
    CreateTable,
    CreateTrigger,
    CreateView,
    Database,
    DropIndex,
    DropTables,
    RenameTables,
)
from binlane.statements.sql.tree.expressions import Name, Node, walk
from binlane.statements.sql.tree.statements import (
    PROGRAMS,
    Block,
    CallProcedure,
    CaseStatement,
    Close,
    ConditionDeclaration,
    CursorDeclaration,
    Diagnostics,
    Fetch,
    ForRange,
    ForRows,
    HandlerDeclaration,
    If,
    Iterate,
    Leave,
    LoadData,
    Loop,
    Open,
    Prepare,
    QueryStatement,
    Repeat,
    Return,
    Set,
    SetItem,
    TransactionStatement,
    VariableDeclaration,
    While,
)

_ROWS: Final = {"INSERT": ("new",), "DELETE": ("old",), "UPDATE": ("new", "old")}
_COMMITTING: Final = (AlterTable, RenameTables, CreateIndex, DropIndex, Database, CreateView)
_TRANSACTIONS: Final = frozenset(("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK"))
_CONDITIONS: Final = ("SQLSTATE", "SQLEXCEPTION", "SQLWARNING", "NOT FOUND")


@dataclass(slots=True)
class _NamesInScope:
    """Names that a place in a body can use, in small letters.

    Attributes:
        outer: Scope of the block around this one.
        variables: Local variables and parameters declared here.
        label: Label of the block or loop, and whether ITERATE may name it too.
        is_handler: True for the scope of a handler: labels around it are out of reach.
    """

    outer: _NamesInScope | None = None
    variables: set[str] = field(default_factory=set)
    cursors: set[str] = field(default_factory=set)
    conditions: set[str] = field(default_factory=set)
    label: tuple[str, bool] = ("", False)
    is_handler: bool = False

    def __iter__(self) -> Iterator[_NamesInScope]:
        scope: _NamesInScope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def has_variable(self, name: str) -> bool:
        return any(name.lower() in scope.variables for scope in self)

    def has_cursor(self, name: str) -> bool:
        return any(name.lower() in scope.cursors for scope in self)

    def has_condition(self, name: str) -> bool:
        return any(name.lower() in scope.conditions for scope in self)

    def label_of(self, name: str) -> tuple[str, bool] | None:
        """The label of a name that can be reached."""
        for scope in self:
            if scope.label[0] == name.lower():
                return scope.label
            if scope.is_handler:
                return None
        return None


def wrong_program(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error with which a program cannot be made; None if none is sure.

    Args:
        facts: Of CREATE PROCEDURE, FUNCTION, TRIGGER or EVENT, or of a compound statement.
        objects: The server's, for the columns of a trigger's table.
        server: Server whose texts of errors are given.
        database: Default database of the statement's session.
    """
    if facts.dialect.is_oracle:
        return None
    tree = facts.tree
    checks = _ProgramReader(facts, server, tree if isinstance(tree, CreateTrigger) else None)
    try:
        if isinstance(tree, CreateRoutine):
            checks.routine(tree, database)
        elif isinstance(tree, CreateEvent):
            checks.statements((tree.body,) if tree.body is not None else (), _NamesInScope())
        elif isinstance(tree, CreateTrigger):
            checks.is_function, checks.kind = True, "trigger"
            checks.statement(tree.body, _NamesInScope())
            checks.columns(tree, objects, database)
        elif isinstance(tree, PROGRAMS):
            checks.statement(tree, _NamesInScope())
    except PredictedError as wrong:
        return wrong.error
    return None


@dataclass(slots=True)
class _ProgramReader:
    text: StatementFacts
    server: Server
    trigger: CreateTrigger | None
    is_function: bool = False
    kind: str = "function"
    may_return: bool = False
    has_return: bool = False

    def routine(self, tree: CreateRoutine, database: str) -> None:
        if tree.body is None:
            return
        scope = _NamesInScope()
        for parameter in tree.parameters:
            if parameter.name.lower() in scope.variables:
                raise PredictedError(refusal(1330, parameter.name))
            scope.variables.add(parameter.name.lower())
        self.is_function = self.may_return = tree.returns is not None
        self.statement(tree.body, scope)
        if self.is_function and not self.has_return:
            name = TableName(tree.name.database or database, tree.name.name)
            raise PredictedError(refusal(1320, name.plain))

    def statements(self, statements: Iterable[Node], scope: _NamesInScope) -> None:
        for statement in statements:
            self.statement(statement, scope)

    def statement(self, node: Node, scope: _NamesInScope) -> None:
        """Look at a statement of a body, and at what is inside of it."""
        label = getattr(node, "label", "")
        if isinstance(node, Block):
            self.block(node, self.labelled(scope, label, is_loop=False))
        elif isinstance(node, If | CaseStatement):
            self.branches(node, scope)
        elif isinstance(node, Loop | While | Repeat | ForRange | ForRows):
            self.loop(node, scope, self.labelled(scope, label))
        elif isinstance(node, Leave | Iterate):
            self.jump(node, scope)
        elif isinstance(node, Return):
            if not self.may_return:
                raise PredictedError(refusal(1313))
            self.has_return = True
            self.value(node.value, scope)
        elif isinstance(node, Open | Close | Fetch):
            if node.cursor:  # FETCH GROUP NEXT ROW has none
                self.cursor(node.cursor, scope)
            self.targets(node.variables if isinstance(node, Fetch) else (), scope)
        else:
            self.plain(node, scope)
            self.forbidden(node)
            self.rows_of(node)

    def jump(self, node: Leave | Iterate, scope: _NamesInScope) -> None:
        found = scope.label_of(node.label)
        if found is None or (isinstance(node, Iterate) and not found[1]):
            raise PredictedError(refusal(1308, type(node).__name__.upper(), node.label))

    def branches(self, node: If | CaseStatement, scope: _NamesInScope) -> None:
        if isinstance(node, CaseStatement):
            self.value(node.operand, scope)
        for branch in node.branches:
            self.value(branch.condition, scope)
            self.statements(branch.statements, scope)
        self.statements(node.otherwise or (), scope)

    def loop(
        self,
        node: Loop | While | Repeat | ForRange | ForRows,
        scope: _NamesInScope,
        inside: _NamesInScope,
    ) -> None:
        if isinstance(node, While):
            self.value(node.condition, inside)
        elif isinstance(node, ForRange | ForRows):
            if isinstance(node, ForRows) and node.query is None:
                self.cursor(node.cursor, scope)
            inside.variables.add(node.variable.lower())
        self.statements(node.statements, inside)
        if isinstance(node, Repeat):
            self.value(node.condition, inside)

    def labelled(self, scope: _NamesInScope, label: str, *, is_loop: bool = True) -> _NamesInScope:
        if label and scope.label_of(label) is not None:
            raise PredictedError(refusal(1309, label))
        return _NamesInScope(scope, label=(label.lower(), is_loop))

    def block(self, node: Block, scope: _NamesInScope) -> None:
        for declaration in node.declarations:
            match declaration:
                case VariableDeclaration():
                    for name in declaration.names:
                        self.declare(name, scope.variables, 1331)
                    self.value(declaration.default, scope)
                case ConditionDeclaration():
                    self.declare(declaration.name, scope.conditions, 1332)
                case CursorDeclaration():
                    self.declare(declaration.name, scope.cursors, 1333)
                case HandlerDeclaration():
                    for condition in declaration.conditions:
                        self.condition(condition, scope)
                    self.statement(declaration.statement, _NamesInScope(scope, is_handler=True))
        self.statements(node.statements, scope)

    def declare(self, name: str, declared: set[str], errno: int) -> None:
        if name.lower() in declared:
            raise PredictedError(refusal(errno, name))
        declared.add(name.lower())

    def cursor(self, name: str, scope: _NamesInScope) -> None:
        # A variable may hold a cursor in MariaDB 12.
        if not scope.has_cursor(name) and not scope.has_variable(name):
            raise PredictedError(refusal(1324, name))

    def condition(self, name: str, scope: _NamesInScope) -> None:
        is_own = name.upper().startswith(_CONDITIONS) or name[:1].isdigit()
        if not is_own and not scope.has_condition(name):
            raise PredictedError(refusal(1319, name))

    def targets(self, targets: Iterable[Node], scope: _NamesInScope) -> None:
        """Variables that get values."""
        for target in targets:
            if isinstance(target, Name) and not scope.has_variable(target.parts[0]):
                raise PredictedError(refusal(1327, target.parts[0]))

    def diagnostics(self, node: Diagnostics, scope: _NamesInScope) -> None:
        if node.condition and not node.verb.startswith("GET"):
            self.condition(node.condition, scope)
        self.targets(node.targets, scope)
        if not node.targets:
            for _, value in node.items:
                self.value(value, scope)

    def assignment(self, item: SetItem, scope: _NamesInScope) -> None:
        is_local = scope.has_variable(item.name.partition(".")[0])
        if item.target is not None and not is_local:
            self.row_assignment(item.target)
        elif is_local and not item.is_system:
            self.value(item.value, scope)
        elif is_no_variable(item.name) and not item.words:
            written = self.text.text_of(item)[: len(item.name)]
            is_plain = written.lower() == item.name
            raise PredictedError(refusal(1193, written if is_plain else item.name))
        if item.value is not None:
            self.rows_of(item.value)

    def row_assignment(self, target: Name) -> None:
        """SET NEW.a."""
        row = target.parts[0].lower()
        if self.trigger is None or row not in ("new", "old"):
            return
        if row == "old":
            raise PredictedError(refusal(1362, "OLD", ""))
        self.row(target)
        if self.trigger.time == "AFTER":
            raise PredictedError(refusal(1362, "NEW", "after "))

    def row(self, name: Name) -> None:
        """Look whether there is such a row in the trigger."""
        assert self.trigger is not None
        for event in self.trigger.events:
            if name.parts[0].lower() not in _ROWS[event]:
                raise PredictedError(refusal(1363, name.parts[0].upper(), event))

    def rows_of(self, node: Node) -> None:
        if self.trigger is not None:
            for name in _row_names(node):
                self.row(name)

    def columns(self, tree: CreateTrigger, objects: Objects, database: str) -> None:
        """Columns of NEW and OLD, which are looked up when the whole is read; the last is told."""
        name = TableName(tree.table.database or database, tree.table.name)
        table = objects.table(name)
        if table is None or not table.is_complete or not table.definition.columns:
            return
        known = {column.name.lower() for column in table.definition.columns}
        for each in _row_names(tree.body):
            if each.parts[1].lower() not in known:
                raise PredictedError(refusal(1054, each.parts[1], each.parts[0].upper()))

    def value(self, value: Node | None, scope: _NamesInScope) -> None:
        """An expression that belongs to no query: MariaDB looks its variables up at once."""
        if value is None:
            return
        if self.server.is_mariadb:
            for name in plain_names(value):
                if not scope.has_variable(name.parts[0]):
                    raise PredictedError(refusal(1327, name.parts[0]))
        self.rows_of(value)

    def plain(self, node: Node, scope: _NamesInScope) -> None:
        """A statement that is no part of the language of programs."""
        into = node.query.into if isinstance(node, QueryStatement) else None
        if isinstance(node, Diagnostics):
            self.diagnostics(node, scope)
        elif isinstance(node, Set):
            for item in node.items:
                self.assignment(item, scope)
        elif isinstance(node, CallProcedure):
            for argument in node.arguments:
                self.value(argument, scope)
        elif isinstance(node, Prepare) and self.server.is_mariadb:
            for each in (node.source, *node.using):
                self.value(each, scope)
        elif into is not None:
            self.targets(into.variables, scope)

    def forbidden(self, node: Node) -> None:
        """Statements that may not stand in bodies, or not in functions and triggers."""
        if isinstance(node, LoadData):
            raise PredictedError(refusal(1314, "LOAD DATA"))
        if not self.is_function:
            return
        if isinstance(node, QueryStatement) and node.verb == "SELECT" and node.query.into is None:
            raise PredictedError(refusal(1415, self.kind))
        if _commits(node):
            raise PredictedError(refusal(1422, server=self.server))


def _commits(node: Node) -> bool:
    """Return True if a statement commits the open transaction."""
    if isinstance(node, TransactionStatement):
        return node.verb in _TRANSACTIONS
    if isinstance(node, CreateTable | DropTables):
        return not node.is_temporary
    return isinstance(node, _COMMITTING)


def _row_names(node: Node) -> list[Name]:
    """`NEW.a` and `OLD.a` in a node, as the parser comes to them: what is set behind its value."""
    nodes = list(walk(node))
    ends = {id(one.target): one.end for one in nodes if isinstance(one, SetItem)}
    found = [
        each
        for each in nodes
        if isinstance(each, Name) and len(each.parts) == 2 and each.parts[0].lower() in _ROW_NAMES
    ]
    return sorted(found, key=lambda name: ends.get(id(name), name.at))


_ROW_NAMES: Final = ("new", "old")
