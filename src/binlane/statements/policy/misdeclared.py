"""Faults of definitions: names that a body does not declare, expressions of columns.

Of the body of a routine, trigger or event only what the servers' parsers find, in the order of the
text; what statements name is looked up when they run. Of columns' expressions the functions that
they may not call, only those of which it was measured, and columns that are not there; conditions of
CHECK are looked at for columns alone.

Source: sql_yacc.yy and sp_pcontext.cc of MariaDB 10.11 and MySQL 9.7,
`Item::check_vcol_func_processor` of MariaDB 10.11 and 11.8, `Item::check_function_as_value_generator`
of MySQL 9.7; measured, tests/vectors/errors.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from binlane.names import TableName, quote
from binlane.statements.policy.lock_list import is_made
from binlane.statements.policy.refusals import Refusal, refusal
from binlane.statements.policy.server import Server
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Objects
from binlane.statements.sql.servers import Dialect, Fact
from binlane.statements.sql.tree.definitions import (
    AlterTable,
    Check,
    Column,
    CreateIndex,
    CreateRoutine,
    CreateTable,
    CreateTrigger,
    CreateView,
    Database,
    DropIndex,
    DropTables,
    Event,
    RenameTables,
)
from binlane.statements.sql.tree.expressions import (
    Call,
    Default,
    Expression,
    Name,
    Node,
    Operation,
    Star,
    Subquery,
    SystemVariable,
    UserVariable,
    children,
    walk,
)
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
    Transaction,
    VariableDeclaration,
    While,
)
from binlane.statements.sql.views import has_aggregates

_SINGLE_WORDS: Final = frozenset(
    (
        *("autocommit", "basedir", "datadir", "flush", "hostname", "identity", "license", "old"),
        *("port", "profiling", "socket", "timestamp", "tmpdir", "userstat", "version"),
        *("names", "password", "role"),  # SET's own words
    )
)
"""All system variables whose name is one word: those of plugins begin with the plugin's."""
_ROWS: Final = {"INSERT": ("new",), "DELETE": ("old",), "UPDATE": ("new", "old")}
_COMMITTING: Final = (AlterTable, RenameTables, CreateIndex, DropIndex, Database, CreateView)
_TRANSACTIONS: Final = frozenset(("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK"))
_CONDITIONS: Final = ("SQLSTATE", "SQLEXCEPTION", "SQLWARNING", "NOT FOUND")


class _Wrong(Exception):  # noqa: N818  # found, not raised by what runs
    def __init__(self, error: Refusal) -> None:
        self.error = error


@dataclass(slots=True)
class _Scope:
    """Names that a place in a body can use, in small letters.

    Attributes:
        outer: Scope of the block around this one.
        variables: Local variables and parameters declared here.
        label: Label of the block or loop, and whether ITERATE may name it too.
        is_handler: True for the scope of a handler: labels around it are out of reach.
    """

    outer: _Scope | None = None
    variables: set[str] = field(default_factory=set)
    cursors: set[str] = field(default_factory=set)
    conditions: set[str] = field(default_factory=set)
    label: tuple[str, bool] = ("", False)
    is_handler: bool = False

    def __iter__(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
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


def is_no_variable(name: str) -> bool:
    """Return True if surely no system variable has a name, given in small letters."""
    return name.isidentifier() and "_" not in name and name not in _SINGLE_WORDS


def misdeclared(
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
    checks = _Checks(facts, server, tree if isinstance(tree, CreateTrigger) else None)
    try:
        if isinstance(tree, CreateRoutine):
            checks.routine(tree, database)
        elif isinstance(tree, Event):
            checks.statements((tree.body,) if tree.body is not None else (), _Scope())
        elif isinstance(tree, CreateTrigger):
            checks.is_function, checks.kind = True, "trigger"
            checks.statement(tree.body, _Scope())
            checks.columns(tree, objects, database)
        elif isinstance(tree, PROGRAMS):
            checks.statement(tree, _Scope())
    except _Wrong as wrong:
        return wrong.error
    return None


@dataclass(slots=True)
class _Checks:
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
        scope = _Scope()
        for parameter in tree.parameters:
            if parameter.name.lower() in scope.variables:
                raise _Wrong(refusal(1330, parameter.name))
            scope.variables.add(parameter.name.lower())
        self.is_function = self.may_return = tree.returns is not None
        self.statement(tree.body, scope)
        if self.is_function and not self.has_return:
            name = TableName(tree.name.database or database, tree.name.name)
            raise _Wrong(refusal(1320, name.plain))

    def statements(self, statements: Iterable[Node], scope: _Scope) -> None:
        for statement in statements:
            self.statement(statement, scope)

    def statement(self, node: Node, scope: _Scope) -> None:
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
                raise _Wrong(refusal(1313))
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

    def jump(self, node: Leave | Iterate, scope: _Scope) -> None:
        found = scope.label_of(node.label)
        if found is None or (isinstance(node, Iterate) and not found[1]):
            raise _Wrong(refusal(1308, type(node).__name__.upper(), node.label))

    def branches(self, node: If | CaseStatement, scope: _Scope) -> None:
        if isinstance(node, CaseStatement):
            self.value(node.operand, scope)
        for branch in node.branches:
            self.value(branch.condition, scope)
            self.statements(branch.statements, scope)
        self.statements(node.otherwise or (), scope)

    def loop(
        self, node: Loop | While | Repeat | ForRange | ForRows, scope: _Scope, inside: _Scope
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

    def labelled(self, scope: _Scope, label: str, *, is_loop: bool = True) -> _Scope:
        if label and scope.label_of(label) is not None:
            raise _Wrong(refusal(1309, label))
        return _Scope(scope, label=(label.lower(), is_loop))

    def block(self, node: Block, scope: _Scope) -> None:
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
                    self.statement(declaration.statement, _Scope(scope, is_handler=True))
        self.statements(node.statements, scope)

    def declare(self, name: str, declared: set[str], errno: int) -> None:
        if name.lower() in declared:
            raise _Wrong(refusal(errno, name))
        declared.add(name.lower())

    def cursor(self, name: str, scope: _Scope) -> None:
        # A variable may hold a cursor in MariaDB 12.
        if not scope.has_cursor(name) and not scope.has_variable(name):
            raise _Wrong(refusal(1324, name))

    def condition(self, name: str, scope: _Scope) -> None:
        is_own = name.upper().startswith(_CONDITIONS) or name[:1].isdigit()
        if not is_own and not scope.has_condition(name):
            raise _Wrong(refusal(1319, name))

    def targets(self, targets: Iterable[Node], scope: _Scope) -> None:
        """Variables that get values."""
        for target in targets:
            if isinstance(target, Name) and not scope.has_variable(target.parts[0]):
                raise _Wrong(refusal(1327, target.parts[0]))

    def diagnostics(self, node: Diagnostics, scope: _Scope) -> None:
        if node.condition and not node.verb.startswith("GET"):
            self.condition(node.condition, scope)
        self.targets(node.targets, scope)
        if not node.targets:
            for _, value in node.items:
                self.value(value, scope)

    def assignment(self, item: SetItem, scope: _Scope) -> None:
        is_local = scope.has_variable(item.name.partition(".")[0])
        if item.target is not None and not is_local:
            self.row_assignment(item.target)
        elif is_local and not item.is_system:
            self.value(item.value, scope)
        elif is_no_variable(item.name) and not item.words:
            written = self.text.text_of(item)[: len(item.name)]
            is_plain = written.lower() == item.name
            raise _Wrong(refusal(1193, written if is_plain else item.name))
        if item.value is not None:
            self.rows_of(item.value)

    def row_assignment(self, target: Name) -> None:
        """SET NEW.a."""
        row = target.parts[0].lower()
        if self.trigger is None or row not in ("new", "old"):
            return
        if row == "old":
            raise _Wrong(refusal(1362, "OLD", ""))
        self.row(target)
        if self.trigger.time == "AFTER":
            raise _Wrong(refusal(1362, "NEW", "after "))

    def row(self, name: Name) -> None:
        """Look whether there is such a row in the trigger."""
        assert self.trigger is not None
        for event in self.trigger.events:
            if name.parts[0].lower() not in _ROWS[event]:
                raise _Wrong(refusal(1363, name.parts[0].upper(), event))

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
                raise _Wrong(refusal(1054, each.parts[1], each.parts[0].upper()))

    def value(self, value: Node | None, scope: _Scope) -> None:
        """An expression that belongs to no query: MariaDB looks its variables up at once."""
        if value is None:
            return
        if self.server.is_mariadb:
            for name in plain_names(value):
                if not scope.has_variable(name.parts[0]):
                    raise _Wrong(refusal(1327, name.parts[0]))
        self.rows_of(value)

    def plain(self, node: Node, scope: _Scope) -> None:
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
            raise _Wrong(refusal(1314, "LOAD DATA"))
        if not self.is_function:
            return
        if isinstance(node, QueryStatement) and node.verb == "SELECT" and node.query.into is None:
            raise _Wrong(refusal(1415, self.kind))
        if _commits(node):
            raise _Wrong(refusal(1422, server=self.server))


def _commits(node: Node) -> bool:
    """Return True if a statement commits the open transaction."""
    if isinstance(node, Transaction):
        return node.verb in _TRANSACTIONS
    if isinstance(node, CreateTable | DropTables):
        return not node.is_temporary
    return isinstance(node, _COMMITTING)


_OF_SEQUENCES: Final = frozenset(("NEXTVAL", "LASTVAL", "SETVAL"))
"""Functions whose argument is no column."""


def plain_names(node: Node) -> Iterator[Name]:
    """The names of one part in an expression, beside its queries."""
    if isinstance(node, Name):
        if len(node.parts) == 1:
            yield node
    elif isinstance(node, Operation) and node.operator == "COLLATE":
        yield from plain_names(node.operands[0])
    elif not isinstance(node, Star | Default | Subquery | Call):
        for child in children(node):
            yield from plain_names(child)
    elif isinstance(node, Call) and node.name.upper() not in _OF_SEQUENCES:
        for argument in node.arguments:
            yield from plain_names(argument)


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

_VARYING: Final = MappingProxyType(
    {
        **{name: name for name in ("RAND", "UUID", "UUID_SHORT", "SYSDATE", "CONNECTION_ID")},
        **{name: name for name in ("UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME", "CURRENT_USER")},
        **{name: name for name in ("USER", "CURRENT_ROLE", "DATABASE")},
        **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"), "NOW"),
        **dict.fromkeys(("CURDATE", "CURRENT_DATE"), "CURDATE"),
        **dict.fromkeys(("CURTIME", "CURRENT_TIME"), "CURTIME"),
        "SYSTEM_USER": "USER",
        "SCHEMA": "DATABASE",
    }
)
"""What gives something else each time, and how errors call it."""
_NEVER: Final = frozenset(
    (
        *("FOUND_ROWS", "ROW_COUNT", "LAST_INSERT_ID", "LOAD_FILE", "BENCHMARK", "SLEEP"),
        *("GET_LOCK", "RELEASE_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "RELEASE_ALL_LOCKS"),
    )
)
_NEVER_CHECKED: Final = frozenset(("VERSION", "VALUES", "NAME_CONST"))
"""What CHECK may not call either, beside UNIX_TIMESTAMP()."""
_GENERATED, _DEFAULT, _CHECK = "GENERATED ALWAYS AS", "DEFAULT", "CHECK"
_MYSQL_CLAUSES: Final = {
    _GENERATED: "generated column function",
    _DEFAULT: "default value expression",
}


def disallowed(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of a function that an expression of a table calls; None if none is sure."""
    failure = _disallowed_in_columns(facts, objects, server=server, database=database)
    return failure or _disallowed_in_checks(facts, objects, server=server, database=database)


def _disallowed_in_columns(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of what a generated column or a DEFAULT calls; None if none is sure."""
    for column, clause, value, check in _expressions(facts):
        if check is not None:
            continue
        is_virtual = clause is _GENERATED and column.storage in ("", "VIRTUAL")
        for node in walk(value):
            found = _name(node, objects, database, facts.dialect)
            if found is None:
                continue
            name, varies = found
            if server.is_mariadb:
                if varies and (is_virtual or clause is _DEFAULT):
                    continue
                return refusal(1901, name, clause, column.name)
            if isinstance(node, UserVariable | SystemVariable):
                return refusal(3772, column.name)
            if isinstance(node, Subquery):
                return refusal(3102 if clause is _GENERATED else 3769, column.name)
            if clause is _GENERATED or not varies:
                shown = name.removesuffix("()")
                shown = "now" if shown == "current_timestamp" else shown
                return refusal(3763 if clause is _GENERATED else 3770, column.name, shown)
    return None


def _disallowed_in_checks(
    facts: StatementFacts, objects: Objects, *, server: Server, database: str
) -> Refusal | None:
    """The error of what a CHECK calls; None if none is sure.

    Source: measured on MariaDB 10.11.19 and MySQL 9.7.4.
    """
    if not server.has(Fact.CHECK_CONSTRAINTS):
        return None
    table = objects.table(facts.effects.writes[0])
    unnamed = 0 if table is None else len(table.check_names)
    for column, _, value, check in _expressions(facts):
        if check is None:
            continue
        shown = column.name if server.is_mariadb and column.name else check.name
        if not shown:
            unnamed += 1
            made_up = (
                "CONSTRAINT_" if server.is_mariadb else f"{facts.effects.writes[0].table}_chk_"
            )
            shown = f"{made_up}{unnamed}"
        for node in walk(value):
            name = _name_in_check(node, objects, database, facts.dialect)
            failure = None if name is None else _refused_in_check(node, name, shown, server)
            if failure is not None:
                return failure
        if column.name and not server.is_mariadb:
            named = (node.parts[-1] for node in walk(value) if isinstance(node, Name))
            if any(name.lower() != column.name.lower() for name in named):
                return refusal(3813, shown)
    return None


def disallowed_in_key(
    expression: Expression, objects: Objects, *, database: str, dialect: Dialect
) -> int | None:
    """MySQL's error of what no key may be made of: a column alone, or what always varies.

    Source: measured on MySQL 9.7.4.
    """
    if isinstance(expression, Name):
        return 3762
    for node in walk(expression):
        if isinstance(node, UserVariable | SystemVariable):
            return 3772
        is_of_rows = isinstance(node, Default) or (
            isinstance(node, Call)
            and (
                node.upper_name == "VALUES"
                or (node.upper_name == "UNIX_TIMESTAMP" and not node.arguments)
            )
        )
        if is_of_rows or _name(node, objects, database, dialect) is not None:
            return 3758
    return None


def _name_in_check(node: object, objects: Objects, database: str, dialect: Dialect) -> str | None:
    """Return the name by which errors call a node that a CHECK may not have; None if it may."""
    found = _name(node, objects, database, dialect)
    if found is not None or not isinstance(node, Call) or node.database is not None:
        return None if found is None else found[0]
    name = node.upper_name
    is_now = name == "UNIX_TIMESTAMP" and not node.arguments
    is_aggregate = dialect.may_be_mariadb and has_aggregates([node])
    is_refused = is_now or is_aggregate or name in _NEVER_CHECKED
    return f"{node.name.lower()}()" if is_refused else None


def _refused_in_check(node: object, name: str, shown: str, server: Server) -> Refusal | None:
    if server.is_mariadb:
        is_query = isinstance(node, Subquery)
        return refusal(1970, _CHECK) if is_query else refusal(1901, name, _CHECK, shown)
    if isinstance(node, UserVariable | SystemVariable):
        return refusal(3816, shown)
    if isinstance(node, Subquery) or name == "name_const()":
        return refusal(3815, shown)
    # MySQL lets SYSDATE() pass.
    return None if name == "sysdate()" else refusal(3814, shown, name.removesuffix("()"))


def _name(
    node: object, objects: Objects, database: str, dialect: Dialect
) -> tuple[str, bool] | None:
    """Return the name by which MariaDB's errors call a refused node, and whether its value varies.

    None if the node is allowed.
    """
    if isinstance(node, Subquery):
        return "select ...", False
    if isinstance(node, UserVariable):
        return f"@{node.name}", True
    if isinstance(node, SystemVariable):
        return f"@@{node.name}", True
    if not isinstance(node, Call):
        return None
    name = node.upper_name
    stored = objects.function(TableName(node.database or database, node.name))
    is_loadable = node.database is None and objects.is_loadable_function(node.name)
    # One that is not there is as little allowed.
    if stored is not None or (is_made(node, dialect) and not is_loadable):
        own = "" if node.database is None else f"{quote(node.database)}."
        return f"{own}{quote(node.name)}()", False
    if name in _NEVER:
        return f"{name.lower()}()", False
    meant = _VARYING.get(name)
    if meant is None:
        return None
    return f"{meant.lower()}()".replace("now()", "current_timestamp()"), True


def named_in_columns(facts: StatementFacts, server: Server) -> list[tuple[str, str]]:
    """The columns that expressions of a definition name, and where; MySQL's CHECK left out."""
    return [
        (name.parts[0], shown)
        for _, clause, value, _ in _expressions(facts)
        if (shown := clause if server.is_mariadb else _MYSQL_CLAUSES.get(clause)) is not None
        for name in plain_names(value)
    ]


def _expressions(
    facts: StatementFacts,
) -> Iterator[tuple[Column, str, Expression, Check | None]]:
    """The expressions of new columns, and where they stand; of a CHECK of the table in no column."""
    tree = facts.tree
    elements: list[object] = []
    if isinstance(tree, CreateTable):
        elements += tree.elements
    elif isinstance(tree, AlterTable):
        for action in tree.actions:
            elements += (*action.columns, *action.checks, *filter(None, (action.check,)))
    no_column = Column(0, 0, "", None)
    for one in elements:
        if isinstance(one, Check):
            yield no_column, _CHECK, one.condition, one
        if not isinstance(one, Column):
            continue
        if one.generated is not None:
            yield one, _GENERATED, one.generated, None
        if one.default is not None:
            yield one, _DEFAULT, one.default, None
        for check in one.checks:
            yield one, _CHECK, check.condition, check
