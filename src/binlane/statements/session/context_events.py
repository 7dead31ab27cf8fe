"""Values that a statement's text depends on, logged before it in statement format.

A statement makes the server choose AUTO_INCREMENT values where a new row gives the column no value,
NULL or DEFAULT, and mostly also for 0.

Source: MariaDB 10.11 sql/log.cc `MYSQL_BIN_LOG::write`, MySQL 9.7 sql/binlog.cc
`MYSQL_BIN_LOG::write_event`.
MariaDB 10.11 and MySQL 9.7 sql/handler.cc, `handler::update_auto_increment`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.names import TableName
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.unsafe_defaults import (
    gives_unsafe_default,
    has_random_default,
    prepared_defaults,
)
from binlane.statements.policy.used_objects import columns_behind, columns_of_view
from binlane.statements.programs.environment import SessionEnvironment
from binlane.statements.programs.host import NO_VALUES, SessionValues
from binlane.statements.programs.routines import silent
from binlane.statements.programs.trace import Trace
from binlane.statements.session import log_events
from binlane.statements.session.decision import Decided
from binlane.statements.session.log_events import Body
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.evaluation.statements import expressions_at, leaves_to_server
from binlane.statements.sql.facts import FunctionUse, RowChange, SetColumn, StatementFacts
from binlane.statements.sql.schema import Table, View
from binlane.statements.sql.servers import LoggingMode
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tree.definitions import CreateTable, CreateView
from binlane.statements.sql.tree.expressions import (
    Call,
    Literal,
    LiteralKind,
    Name,
    Node,
    Query,
    Select,
    SelectItem,
    SetOperation,
    Star,
    children,
)
from binlane.statements.sql.tree.statements import Delete, Insert, QueryStatement, Update

_LAST_INSERT_ID: Final = frozenset(("last_insert_id", "identity"))
_CHANGING_IN_PLACE: Final = frozenset((StatementKind.UPDATE, StatementKind.DELETE))
_VIEWS_MAX: Final = 64
_INSERTING: Final = frozenset(
    (RowChange.INSERT, RowChange.REPLACE, RowChange.UPSERT, RowChange.LOAD)
)


def context_events(
    state: SessionState,
    statement: SessionStatement,
    decided: Decided,
    trace: Trace,
    *,
    created: Table | None = None,
) -> list[Body]:
    """Return the events that stand in the log before a statement's text.

    Args:
        state: The state of the session.
        statement: The statement that is logged.
        decided: The decision, with what is known of all statements of its shape.
        trace: The statement's effects on rows and variables.
        created: The table that CREATE … SELECT makes; None for others.
    """
    shape = decided.shape if created is None else None
    own = NO_VALUES
    if shape is None or shape.can_depend is not False:
        environment = statement.environment
        if environment is None:
            environment = SessionEnvironment(state.host, statement.database)
        assert isinstance(environment, SessionEnvironment)
        use = SessionUse(statement.facts, decided.resolved, environment)
        if shape is not None and shape.can_depend is None:
            shape.can_depend = use.can_depend()
        own = use.values(trace)
        if created is not None:
            own = own._replace(
                random=own.random or has_random_default(created),
                insert_id=use.generates_for_created(created) and bool(trace.runs),
            )
    own = own._replace(random=own.random or decided.takes_seeds)
    return [*value_events(own.with_those(trace.values)), *trace.user_variables]


def value_events(values: SessionValues) -> list[Body]:
    """The events of values that a text depends on, in the servers' order."""
    events: tuple[Body, ...] = (
        log_events.LAST_INSERT_ID,
        log_events.INSERT_ID,
        log_events.RANDOM_SEEDS,
    )
    return [event for event, is_used in zip(events, values, strict=True) if is_used]


def random_seeds(
    state: SessionState,
    name: str,
    statement: SessionStatement,
    tables: Iterable[Table | None],
    *,
    is_begun: bool = True,
) -> list[Body]:
    """Return the seeds of RAND() that a binlog has before DDL that gets an expression with it ready.

    The expression stands in the DEFAULT of one of the tables, or in the query of a view. Under MIXED, a
    statement that gives an unsafe DEFAULT is for rows, which have no seeds; MariaDB never has its views for
    rows.

    Args:
        state: The state of the session.
        name: Name of the binlog with the seeds.
        statement: The statement of DDL that needs them.
        tables: Tables that the statement opens.
        is_begun: The statement is decided for rows or not; ALTER that starts in two phases is not.
    """
    is_view = statement.facts.effects.kind in (StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW)
    if (state.is_row_now(name) and not (is_view and state.server.is_mariadb)) or (
        state.mode(name) is LoggingMode.MIXED
        and is_begun
        and gives_unsafe_default(statement.facts, state.server)
    ):
        return []
    is_random = any(table is not None and has_random_default(table) for table in tables) or (
        is_view and _has_random_query(state, statement)
    )
    return [log_events.RANDOM_SEEDS] if is_random else []


def _has_random_query(state: SessionState, statement: SessionStatement) -> bool:
    """True if the query of a view, or of a view that it names, calls RAND()."""
    tree = statement.facts.tree
    assert isinstance(tree, CreateView)
    views = views_behind(state, statement.facts.effects.reads)
    return _calls_rand(tree.query) or any(
        any(map(_is_random, view.facts.functions)) for view in views
    )


def views_behind(state: SessionState, names: Iterable[TableName]) -> list[View]:
    """The views among some names, and those that their queries name."""
    names, found = list(names), []
    for name in names:
        view = state.objects.view(name)
        if view is not None and len(names) < _VIEWS_MAX:
            found.append(view)
            names.extend(use.name for use in view.facts.tables)
    return found


def _calls_rand(node: Node) -> bool:
    is_random = isinstance(node, Call) and node.upper_name == "RAND" and not node.arguments
    return is_random or any(map(_calls_rand, children(node)))


def _is_random(use: FunctionUse) -> bool:
    return use.upper_name == "RAND" and not use.arguments


def _is_last_insert_id(use: FunctionUse) -> bool:
    return use.upper_name == "LAST_INSERT_ID" and not use.arguments


@dataclass(frozen=True, slots=True)
class SessionUse:
    """The session's values that a statement itself depends on, its functions and triggers left out.

    Attributes:
        facts: Facts of the statement's text.
        resolved: The statement's tables with its accesses.
        environment: Names that the statement's expressions can refer to.
    """

    facts: StatementFacts
    resolved: ResolvedStatement
    environment: SessionEnvironment

    def can_depend(self) -> bool:
        """True if some statement that differs only in its literals depends on the session."""
        functions = (*self.facts.functions, *self._in_views())
        return (
            any(_is_random(use) or _is_last_insert_id(use) for use in functions)
            or any(use.name in _LAST_INSERT_ID for use in self.facts.system_variables)
            or any(one.changes and one.table.auto_increment for one in self.resolved.accesses)
            or self._has_random_default()
        )

    def values(self, trace: Trace | None = None) -> SessionValues:
        """Return the session values that the statement depends on; without a `trace`, as if rows changed."""
        facts, of_views = self.facts, list(self._in_views())
        # Rows of VALUES are tried in any case, those of a query only where there are some.
        tries_rows = trace is None or bool(trace.runs) or not facts.has_query
        return SessionValues(
            last_insert_id=_reads_last_insert_id(facts, trace)
            or (self.environment.is_mariadb and self._is_converted_early())
            or (tries_rows and any(map(_is_last_insert_id, of_views))),
            insert_id=tries_rows and self.generates_insert_id(),
            random=any(map(_is_random, (*facts.functions, *of_views)))
            or self._has_random_default(),
        )

    def _is_converted_early(self) -> bool:
        """True if MariaDB evaluates LAST_INSERT_ID() before the statement runs, whatever rows it finds.

        MariaDB does so where a text that no row changes is converted to a column's character set.
        """
        if not any(map(_is_last_insert_id, self.facts.functions)):
            return False
        charset = self.environment.host.collation.partition("_")[0]
        others = {
            column.name.lower()
            for access in self.resolved.accesses
            for column in access.table.definition.columns
            if column.charset not in (None, "binary", charset)
        }
        return bool(others) and _joins_constant(self.facts.tree, others)

    def _in_views(self) -> Iterator[FunctionUse]:
        """The functions of the views that it uses.

        MariaDB leaves a view's own columns alone where UPDATE or DELETE changes it.
        """
        objects, facts = self.environment.host.objects, self.facts
        skips_targets = self.environment.is_mariadb and facts.effects.kind in _CHANGING_IN_PLACE
        names = [use.name for use in facts.tables if not (skips_targets and use.changes)]
        for name in names:
            view = objects.view(name)
            if view is not None and len(names) < _VIEWS_MAX:
                yield from view.facts.functions
                names.extend(use.name for use in view.facts.tables)

    def _has_random_default(self) -> bool:
        server = self.environment.host.server
        return any(
            _is_random(use)
            for access in self.resolved.accesses
            if access.table.definition.has_default_expressions
            and (server.is_mariadb or (access.changes and not access.is_prelocked))
            for default in prepared_defaults(access.table, self.facts, server)
            for use in default.functions
        )

    def generates_insert_id(self) -> bool:
        """True if the server chooses an AUTO_INCREMENT value for each row."""
        tree = self.facts.tree
        for access in self.resolved.accesses:
            column = access.table.auto_increment
            if (
                access.is_prelocked
                or not access.changes & _INSERTING
                or column is None
                or not access.table.is_auto_increment_first
            ):
                continue
            columns = self._columns(access)
            if column.lower() not in columns:
                return True
            if isinstance(tree, Insert) and self._leaves(tree, columns.index(column.lower())):
                return True
        return False

    def generates_for_created(self, created: Table) -> bool:
        """True if the query of CREATE … SELECT leaves a value of the new table to the server."""
        column, tree = created.auto_increment, self.facts.tree
        if column is None or not created.is_auto_increment_first:
            return False
        if not isinstance(tree, CreateTable) or tree.query is None:
            return False
        names = _names(tree.query)
        if "*" in names and any(_has_column(one, column) for one in self.resolved.accesses):
            return False
        if column.lower() not in names:
            return True
        return self._leaves(tree.query, names.index(column.lower()))

    def _leaves(self, source: Insert | Query, position: int) -> bool:
        """True if some value of a column makes the server choose one."""
        facts, environment = self.facts, self.environment
        zero_is_chosen = not environment.host.has_sql_mode("NO_AUTO_VALUE_ON_ZERO")
        with silent(environment):
            return any(
                leaves_to_server(value, facts, environment, zero_is_chosen=zero_is_chosen)
                for value in expressions_at(source, position)
            )

    def _columns(self, access: TableAccess) -> list[str]:
        """The table's columns that get values, in small letters, in the order of the values."""
        view = None
        if access.via and access.via[0].kind == "view":
            view = self.environment.host.objects.view(access.via[0].name)
        names: Iterable[str] = self.facts.columns or ()
        if self.facts.columns is not None and view is not None:
            given = [SetColumn(qualifier=None, name=name) for name in names]
            names = [column.name for column in columns_behind(view, given)]
        elif self.facts.columns is None:
            names = columns_of_view(view) if view is not None else ()
            names = names or [column.name for column in access.table.definition.columns]
        return [name.lower() for name in names]


def _reads_last_insert_id(facts: StatementFacts, trace: Trace | None) -> bool:
    """True if LAST_INSERT_ID() is evaluated; where no row is changed, only behind WHERE."""
    if any(use.name in _LAST_INSERT_ID for use in facts.system_variables):
        return True
    offsets = [use.offset for use in facts.functions if _is_last_insert_id(use)]
    if not offsets or trace is None:
        return bool(offsets)
    if facts.on_duplicate_offset is not None and all(run.kind != "update" for run in trace.runs):
        offsets = [offset for offset in offsets if offset < facts.on_duplicate_offset]
    if not trace.runs and (facts.has_query or facts.effects.kind is StatementKind.UPDATE):
        where = _where(facts.tree)
        start = None if where is None else facts.place(where.at)
        offsets = [offset for offset in offsets if start is not None and offset >= start]
    return bool(offsets)


def _joins_constant(node: Node, columns: Collection[str]) -> bool:
    """True if a call joins one of some columns with a constant text that contains LAST_INSERT_ID()."""
    if isinstance(node, Call):
        parts = [list(_ends(argument)) for argument in node.arguments]
        has_column = any(
            isinstance(leaf, Name) and leaf.parts[-1].lower() in columns
            for leaves in parts
            for leaf in leaves
        )
        if has_column and any(map(_is_constant_text, parts)):
            return True
    return any(_joins_constant(child, columns) for child in children(node))


def _ends(node: Node) -> Iterator[Node]:
    if isinstance(node, Call) and node.name.upper() == "LAST_INSERT_ID":
        yield node
        return
    below = children(node)
    if not below:
        yield node
    for child in below:
        yield from _ends(child)


def _is_constant_text(leaves: Sequence[Node]) -> bool:
    has_text = any(isinstance(leaf, Literal) and leaf.kind is LiteralKind.STRING for leaf in leaves)
    has_call = any(
        isinstance(leaf, Call) and leaf.name.upper() == "LAST_INSERT_ID" for leaf in leaves
    )
    return has_text and has_call and not any(isinstance(leaf, Name) for leaf in leaves)


def _where(tree: Node) -> Node | None:
    """The statement's own WHERE; None without."""
    if isinstance(tree, Update | Delete):
        return tree.where
    query = tree.query if isinstance(tree, Insert | CreateTable | QueryStatement) else None
    while query is not None and isinstance(query.body, Query):
        query = query.body
    body = None if query is None else query.body
    if isinstance(body, SetOperation):
        body = body.operands[0].body
    return body.where if isinstance(body, Select) else None


def _names(query: Query) -> list[str]:
    """The names of the columns that a query gives; `*` for all columns of its tables."""
    body = query.body
    if isinstance(body, Query):
        return _names(body)
    if isinstance(body, SetOperation):
        return _names(body.operands[0])
    if not isinstance(body, Select):
        return []
    return [_name(item) for item in body.items]


def _name(item: SelectItem) -> str:
    if isinstance(item.value, Star):
        return "*"
    if item.alias is not None:
        return item.alias.lower()
    return item.value.parts[-1].lower() if isinstance(item.value, Name) else ""


def _has_column(access: TableAccess, column: str) -> bool:
    return any(
        one.name.lower() == column.lower() for one in access.table.definition.columns
    ) and not (access.is_prelocked or access.changes)
