"""The effects of a statement on rows, and their events in a binlog's caches.

A statement changes rows itself and through triggers, functions and sequences. A sequence reserves as many
values as its CACHE says, and writes its row only then. Rows are logged as annotation, table maps and rows
events.

Source: `remove_eq_conds` in MariaDB 10.11 sql/sql_select.cc and MySQL 9.7 sql/sql_optimizer.cc;
MariaDB's sql/sql_sequence.cc, and sql/sql_class.cc `binlog_write_table_maps`; MySQL's sql/handler.cc
`write_locked_table_maps`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy.engines import NEITHER, traits
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Server
from binlane.statements.policy.used_objects import names_in_view
from binlane.statements.programs.environment import SessionEnvironment
from binlane.statements.programs.host import SessionValues
from binlane.statements.programs.routines import silent
from binlane.statements.programs.trace import RowRun, Trace, Traced, changed_rows, plain_trace
from binlane.statements.programs.tracer import trace
from binlane.statements.programs.ways import SinglePath
from binlane.statements.session import log_events
from binlane.statements.session.caches import BinlogCaches, WriteContext
from binlane.statements.session.context_events import SessionUse
from binlane.statements.session.decision import Decided
from binlane.statements.session.log_events import Body, ChangedRows
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SequenceValues, SessionStatement
from binlane.statements.sql.evaluation.contradictions import NO_COLUMNS, KnownColumns
from binlane.statements.sql.evaluation.key_ranges import cannot_be_met
from binlane.statements.sql.evaluation.statements import (
    is_constant,
    is_multi_table,
    joins_nothing,
    where_holds,
)
from binlane.statements.sql.evaluation.statements import is_proven_empty as proves_empty
from binlane.statements.sql.facts import RowChange, StatementFacts
from binlane.statements.sql.parser import Stopped, parse
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Dialect, Fact
from binlane.statements.sql.show_create import INTEGERS
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    INSERTING_KINDS,
    READING_KINDS,
    StatementKind,
)
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.definitions import Sequence
from binlane.statements.sql.tree.expressions import (
    Call,
    Expression,
    Name,
    Node,
    Operation,
    UserVariable,
    children,
    walk,
)
from binlane.statements.sql.tree.statements import Delete, Update

_OF_ROWS: Final = frozenset(
    (StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE)
)


def trace_of(state: SessionState, statement: SessionStatement, decided: Decided) -> Trace:
    """Follow a statement that runs; called once for it, as it assigns user variables."""
    shape = decided.shape
    known = shape.traces.get(statement.outcome)
    if known is not None:
        return Trace(runs=known.runs, annotation=_annotation(state, statement))
    resolved = decided.resolved
    traced = Traced(
        facts=statement.facts,
        resolved=resolved,
        logged=_annotation(state, statement),
        outcome=statement.outcome,
    )
    environment = statement.environment
    assert environment is None or isinstance(environment, SessionEnvironment)
    sequences = {
        access.name: access.table for access in resolved.accesses if access.table.is_sequence
    }
    if sequences and _always_inserts(statement):
        found = trace(replace(traced, outcome=Outcome()), state.host, environment)
        return replace(found, runs=tuple(run for run in found.runs if run.table not in sequences))
    if (
        shape.is_alone
        and statement.facts.effects.kind in _OF_ROWS
        and statement.succeeds
        and not any([access.is_foreign_key for access in resolved.accesses])  # noqa: C419
        and isinstance(state.programs.ways, SinglePath)
    ):
        found = plain_trace(traced, state.objects)
    else:
        found = trace(traced, state.host, environment)
    found = _without_rows_of_nothing(found, resolved)
    if sequences:
        return _follow_sequences(state, statement, resolved, found, sequences)
    if shape.is_alone and found.error is None:
        shape.traces[statement.outcome] = found
    return found


def _annotation(state: SessionState, statement: SessionStatement) -> str:
    """Return the text that stands before rows: in bodies MySQL has it as it is written there."""
    is_written = statement.is_in_body and not state.server.is_mariadb
    return statement.sql if is_written else statement.text


def _without_rows_of_nothing(found: Trace, resolved: ResolvedStatement) -> Trace:
    """Leave out rows that change in a BLACKHOLE table, which has none."""
    holes = {access.name for access in resolved.accesses if access.table.engine == "BLACKHOLE"}
    if not holes:
        return found
    kept = (run for run in found.runs if run.table not in holes or run.kind == "insert")
    return replace(found, runs=tuple(kept))


def _always_inserts(statement: SessionStatement) -> bool:
    """True if a stated outcome of no rows can only be that of the statement's sequences.

    The sequences then had values left in the range that they had reserved.
    """
    facts = statement.facts
    return (
        statement.outcome == Outcome(rows=0)
        and facts.effects.kind is StatementKind.INSERT
        and facts.row_count > 0
        and not facts.is_ignore
        and not facts.is_on_duplicate
    )


def _follow_sequences(
    state: SessionState,
    statement: SessionStatement,
    resolved: ResolvedStatement,
    found: Trace,
    sequences: dict[TableName, Table],
) -> Trace:
    """Add the changes of SELECT, DO and SET to sequences; leave out rows that need no new range."""
    runs = found.runs
    if statement.facts.effects.kind in READING_KINDS:
        if changed_rows(statement.outcome) == 0:
            return found
        runs = (*_advanced(resolved), *(run for run in runs if run.table not in sequences))
        if statement.outcome.rows is not None:
            return replace(found, runs=runs)
    elif statement.outcome.rows == 0 and statement.outcome.error in _DUPLICATE_KEYS:
        runs = (*_advanced(resolved), *runs)  # by the row that failed
    kept = written_runs(state.sequence_values, runs, sequences, statement.facts)
    return replace(found, runs=kept)


def _advanced(resolved: ResolvedStatement) -> list[RowRun]:
    """The rows of sequences of which the statement's own text takes values."""
    return [
        RowRun(access.name, "insert")
        for access in resolved.accesses
        if RowChange.SEQUENCE in access.changes and not access.is_prelocked
    ]


_DUPLICATE_KEYS: Final = frozenset((1022, 1062, 1169))


# sql_auto_is_null: WHERE id IS NULL finds the row inserted last -----------------------------------


def with_null_ids(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement, trace: Trace
) -> Trace:
    """Add LAST_INSERT_ID to a trace where the statement looks for the row inserted last."""
    if not state.variables.settings.finds_last_by_null:
        return trace
    if _finds_inserted(state) and _looks_for_null(statement, resolved):
        state.null_is_insert_id = False
        trace = replace(trace, values=trace.values.with_those(SessionValues(last_insert_id=True)))
    if statement.facts.effects.kind in INSERTING_KINDS and statement.succeeds and trace.runs:
        environment = SessionEnvironment(state.host, statement.database)
        if SessionUse(statement.facts, resolved, environment).generates_insert_id():
            state.null_is_insert_id = True
    return trace


def _finds_inserted(state: SessionState) -> bool:
    """True if IS NULL of a counter finds the row inserted last: once in MariaDB, always in MySQL."""
    is_asked = state.variables.settings.finds_last_by_null
    return is_asked and (state.null_is_insert_id or not state.server.is_mariadb)


def _looks_for_null(statement: SessionStatement, resolved: ResolvedStatement) -> bool:
    columns = {name.lower() for name in _compared_with_null(statement.facts.tree)}
    return any(
        access.table.auto_increment is not None
        and not access.is_prelocked
        and access.table.auto_increment.lower() in columns
        for access in resolved.accesses
    )


def _compared_with_null(node: Node) -> Iterator[str]:
    """The columns of which a statement asks whether they are NULL."""
    if isinstance(node, Operation) and node.operator == "IS NULL" and not node.is_negated:
        (operand,) = node.operands
        if isinstance(operand, Name):
            yield operand.parts[-1]
    for each in children(node):
        yield from _compared_with_null(each)


# UPDATE and DELETE that are known to change nothing -----------------------------------------------


def is_joined_to_nothing(state: SessionState, statement: SessionStatement) -> bool:
    """True if a DELETE of several tables joins them by a condition that never holds."""
    tree = statement.facts.tree
    if not isinstance(tree, Delete) or len(statement.facts.tables) < 2:
        return False
    environment = environment_of(state, statement)
    with silent(environment):
        return joins_nothing(tree, statement.facts, environment)


def is_proven_empty(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if the server knows that UPDATE or DELETE of one table changes no row.

    Neither server logs such statements, in any format (`-- @rows none` of a script says so of all others).
    """
    facts = statement.facts
    if not isinstance(facts.tree, Update | Delete):
        return False
    environment = environment_of(state, statement)
    with silent(environment):
        where = facts.tree.where
        known = _known_columns(state, resolved, where)
        if state.server.is_mariadb and where is not None and _makes_variables(state, where):
            return False
        if proves_empty(facts.tree, facts, environment, known):
            return True
        if where is None or is_multi_table(facts.tree):
            return False
        if statement.outcome.rows == 0 and _is_asked_once(where, environment):
            return True  # of rows that were there it would have found all
        return cannot_be_met(where, _keyed_columns(state, resolved), facts, environment)


def _makes_variables(state: SessionState, where: Expression) -> bool:
    """True if WHERE reads user variables that do not exist, which it makes."""
    programs = state.programs
    names = {node.name.lower() for node in walk(where) if isinstance(node, UserVariable)}
    fresh = names.difference(programs.user_variables)
    for name in fresh:
        programs.know(name, None)
    return bool(fresh)


def _is_asked_once(where: Expression, environment: SessionEnvironment) -> bool:
    """True if the server evaluates WHERE before it looks at rows, whatever the value is."""
    calls = {node.upper_name for node in walk(where) if isinstance(node, Call)}
    reads_variables = any(isinstance(node, UserVariable) for node in walk(where))
    is_by_row = reads_variables or not calls.isdisjoint(_ASKED_BY_ROW)
    return bool(calls) and not is_by_row and is_constant(where, environment)


_ASKED_BY_ROW: Final = frozenset(
    (
        *("RAND", "UUID", "UUID_SHORT", "SYS_GUID", "SLEEP", "BENCHMARK", "NEXTVAL", "LASTVAL"),
        *("SETVAL", "GET_LOCK", "RELEASE_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "ROWNUM"),
    )
)
"""Functions whose value is not that of the row before."""


def _keyed_columns(state: SessionState, resolved: ResolvedStatement) -> Mapping[str, TableColumn]:
    """The columns in keys of the one table that is changed, by the names in use, in small letters.

    One that sql_auto_is_null has IS NULL find the last row by is none of them.
    """
    access = _only_target(resolved)
    if access is None:
        return {}
    table = access.table
    keyed = {one.lower() for key in table.keys for one in key.columns if not key.is_fulltext}
    filled = {one.lower() for key in table.keys if key.is_primary for one in key.columns}
    if _finds_inserted(state) and table.auto_increment:
        keyed.discard(table.auto_increment.lower())
    return {
        shown: replace(column, is_nullable=column.is_nullable and name not in filled)
        for column in table.definition.columns
        if (name := column.name.lower()) in keyed
        for shown in _names_in_use(state, access, {name})
    }


def _only_target(resolved: ResolvedStatement) -> TableAccess | None:
    """The one table that a statement changes by itself; None if another way leads to it than a view."""
    own = [one for one in resolved.accesses if one.changes and not one.is_prelocked]
    return own[0] if len(own) == 1 and len(own[0].via) <= 1 else None


def _names_in_use(state: SessionState, access: TableAccess, columns: set[str]) -> set[str]:
    """Return the statement's names for some columns of the table that it changes, in small letters."""
    if not access.via:
        return columns
    view = state.objects.view(access.via[0].name)
    return set() if view is None else names_in_view(view, columns)


def holds_for_all(
    state: SessionState, statement: SessionStatement, resolved: ResolvedStatement
) -> bool:
    """True if the WHERE clause of UPDATE or DELETE holds whatever the row, or there is none."""
    facts = statement.facts
    if not isinstance(facts.tree, Update | Delete):
        return False
    environment = environment_of(state, statement)
    columns = _known_columns(state, resolved, facts.tree.where)
    with silent(environment):
        return where_holds(facts.tree, facts, environment, columns) is True


_SPECIAL_NULLS: Final = frozenset(("DATE", "DATETIME"))
"""Types of NOT NULL columns where `IS NULL` finds the date of zeros."""


def _known_columns(
    state: SessionState, resolved: ResolvedStatement, where: Node | None
) -> KnownColumns:
    """Return MySQL's knowledge of the columns of the one table that is changed, without its keys."""
    access = _only_target(resolved)
    if where is None or access is None or state.server.is_mariadb:
        return NO_COLUMNS
    table = access.table
    filled = {one.lower() for key in table.keys if key.is_primary for one in key.columns}
    columns = table.definition.columns
    filled |= {one.name.lower() for one in columns if not one.is_nullable}
    filled -= {one.name.lower() for one in columns if one.type_name in _SPECIAL_NULLS}
    if _finds_inserted(state) and table.auto_increment:
        filled.discard(table.auto_increment.lower())
    integers = {one.name.lower() for one in columns if one.type_name in INTEGERS}
    never_null, equated = (_names_in_use(state, access, one) for one in (filled, integers))
    return KnownColumns(frozenset(never_null), frozenset(equated))


def environment_of(state: SessionState, statement: SessionStatement) -> SessionEnvironment:
    """Return the names that the expressions of a statement can refer to."""
    environment = statement.environment
    if environment is None:
        return SessionEnvironment(state.host, statement.database)
    assert isinstance(environment, SessionEnvironment)
    return environment


_CACHE_DEFAULT: Final = 1000


def written_runs(
    values: dict[TableName, SequenceValues],
    runs: Iterable[RowRun],
    sequences: dict[TableName, Table],
    facts: StatementFacts,
) -> tuple[RowRun, ...]:
    """Leave out the rows of sequences that need not be written.

    Args:
        values: Present values of the session's sequences; kept up to date.
        runs: Row runs of the statement.
        sequences: Sequences that the statement uses.
        facts: Facts of the statement's text.
    """
    given = _values_set(facts)
    kept = []
    for run in runs:
        table = sequences.get(run.table)
        if table is not None:
            known = values.setdefault(table.name, SequenceValues(_first(table)))
            value = given.get(table.name.table)
            written = _take(known, table) if value is None else _set(known, value, table)
            if not written:
                continue
        kept.append(run)
    return tuple(kept)


def release_ranges(state: SessionState, facts: StatementFacts) -> None:
    """Know that sequences take a new range behind DDL on them, and behind FLUSH TABLES.

    Source: measured on MariaDB 10.11.19.
    """
    effects, values, tree = facts.effects, state.sequence_values, facts.tree
    is_flush = effects.kind is StatementKind.FLUSH and facts.verb == "FLUSH TABLES"
    if not values or not (is_flush or effects.kind in DDL_KINDS):
        return
    for name in effects.writes or (tuple(values) if is_flush else ()):
        if name not in values:
            continue
        if not (is_flush or effects.kind is StatementKind.ALTER_SEQUENCE):
            del values[name]
            continue
        known, table = values[name], state.objects.table(name)
        known.reserved = 0
        if isinstance(tree, Sequence) and table is not None and "RESTART" in tree.settings:
            start = _number("START", table, 1)
            said = tree.settings["RESTART"]
            known.next_value = start if said is None else said


def _values_set(facts: StatementFacts) -> dict[str, int]:
    """Return the values that SETVAL sets, by the sequence's name."""
    found: dict[str, int] = {}
    for use in facts.functions:
        if use.upper_name != "SETVAL" or len(use.arguments) < 2:
            continue
        name, value = use.arguments[:2]
        if isinstance(name, Name) and (text := facts.text_of(value)).lstrip("-").isdigit():
            found[name.parts[-1]] = int(text)
    return found


def _take(known: SequenceValues, table: Table) -> bool:
    """Take NEXTVAL's value; True if the sequence takes a new range."""
    known.next_value += _number("INCREMENT", table, 1)
    if known.reserved > 0:
        known.reserved -= 1
        return False
    known.reserved = _range(table) - 1
    return True


def _set(known: SequenceValues, value: int, table: Table) -> bool:
    """Carry out SETVAL; False for values given out already, and for reserved ones, which are known."""
    increment = _number("INCREMENT", table, 1)
    if value < known.next_value if increment > 0 else value > known.next_value:
        return False
    end = known.next_value + known.reserved * increment
    known.next_value = value + increment
    known.reserved = max(0, (end - known.next_value) // increment)
    return known.next_value > end if increment > 0 else known.next_value < end


def _first(table: Table) -> int:
    """Return the first value: that of START, or the end at which the sequence begins to count."""
    is_falling = _number("INCREMENT", table, 1) < 0
    end = _number("MAXVALUE", table, -1) if is_falling else _number("MINVALUE", table, 1)
    return _number("START", table, end)


def _range(table: Table) -> int:
    """Return the number of values that are reserved at once."""
    return max(1, _number("CACHE", table, _CACHE_DEFAULT))


def _number(setting: str, table: Table, default: int) -> int:
    number = _settings(table.create_statement).get(setting, default)
    return default if number is None else number


@lru_cache
def _settings(create_statement: str) -> Mapping[str, int | None]:
    """Return the settings that CREATE SEQUENCE gives."""
    try:
        tree = parse(create_statement, Dialect(flavor="mariadb"))
    except (SqlSyntaxError, Stopped):
        return {}
    return tree.settings if isinstance(tree, Sequence) else {}


class LoggedRows(NamedTuple):
    """A statement's rows for the caches of binlogs, each with True if it is for the transaction cache.

    Attributes:
        first: The annotation, if there is one, and the table maps.
        runs: The rows events that follow.
    """

    first: tuple[tuple[bool, Body], ...]
    runs: tuple[tuple[bool, ChangedRows], ...]

    def without(self, tables: Container[TableName]) -> LoggedRows:
        """Return the rows without those of some tables."""
        return LoggedRows(
            tuple(
                one
                for one in self.first
                if not (isinstance(one[1], log_events.MappedTable) and one[1].table in tables)
            ),
            tuple(one for one in self.runs if one[1].table not in tables),
        )

    def write(self, binlog: BinlogCaches, context: WriteContext) -> None:
        """Add them to a binlog's caches."""
        has_maps = binlog.transaction_cache.open_rows is not None
        binlog.start(context)
        for is_transactional, event in self.first:
            if is_transactional and has_maps:
                continue
            binlog.cache(is_transactional=is_transactional).events.append(event)
        for is_transactional, rows in self.runs:
            binlog.cache(is_transactional=is_transactional).add_rows(rows)


def logged_rows(
    state: SessionState,
    resolved: ResolvedStatement,
    trace: Trace,
    *,
    definition: frozenset[TableName] = frozenset(),
) -> LoggedRows | None:
    """Return the rows of a statement that are logged; None if there are none.

    Args:
        state: The state of the session.
        resolved: The statement's tables with its accesses.
        trace: The statement's effects on the tables.
        definition: Tables whose rows MariaDB logs with the definition of a new table, as if the tables were
            transactional.
    """
    server, variables = state.server, state.variables
    mapped = [table for table in _mapped(state, resolved) if is_row_logged(table, server)]
    places = {table.name: _is_transactional(table, server, definition) for table in mapped}
    runs = [run for run in trace.runs if run.table in places]
    if not runs:
        return None
    first: list[tuple[bool, Body]] = []
    if server.is_mariadb and variables.is_on("binlog_annotate_row_events", default=True):
        is_first_cache = server.has(Fact.ANNOTATES_FIRST_CACHE)
        is_transactional = all(places.values()) if is_first_cache else places[mapped[0].name]
        first.append((is_transactional, log_events.annotation(trace.annotation, server)))
    elif state.safety is None and variables.is_on("binlog_rows_query_log_events", default=False):
        first.append((places[mapped[0].name], log_events.annotation(trace.annotation, server)))
    first.extend((places[table.name], log_events.MappedTable(table.name)) for table in mapped)
    checks_foreign_keys = variables.is_on("foreign_key_checks", default=True)
    checks_unique = variables.is_on("unique_checks", default=True)
    is_partial = variables.text("binlog_row_value_options") == "PARTIAL_JSON"
    return LoggedRows(
        tuple(first),
        tuple(
            (
                places[run.table],
                log_events.rows(
                    run.kind,
                    run.table,
                    server,
                    checks_foreign_keys=checks_foreign_keys and not run.is_cascade,
                    checks_unique=checks_unique,
                    is_partial=is_partial,
                ),
            )
            for run in runs
        ),
    )


def is_row_logged(table: Table, server: Server) -> bool:
    """True if rows of a table can be in a log."""
    return not table.is_temporary and traits(table, server).formats is not NEITHER


def _is_transactional(table: Table, server: Server, definition: frozenset[TableName]) -> bool:
    return table.name in definition or traits(table, server).has_rollback


def _mapped(state: SessionState, resolved: ResolvedStatement) -> Iterator[Table]:
    """The tables with a table map: all that are locked for writing.

    Under LOCK TABLES these are all that were locked so, in the order of that statement.
    """
    written = [access.table for access in resolved.accesses if access.is_locked_for_write]
    names = state.locked_tables.written if state.locked_tables else ()
    locked = [state.objects.table(name) for name in names]
    yield from (table for table in locked if table is not None)
    yield from (table for table in written if table.name not in names)
