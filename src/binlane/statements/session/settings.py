"""SET, SET TRANSACTION and SET STATEMENT … FOR, and their effects on a transaction.

The module also has system variables as expressions see them, and expressions as SET assigns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from binlane.statements.policy import refusals
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.server_errors import Identity
from binlane.statements.programs.environment import SessionEnvironment
from binlane.statements.programs.host import Host
from binlane.statements.session.dml import execute_rows
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.variables import (
    ACCESS_NAMES,
    DIRECT,
    ISOLATION_NAMES,
    OF_BINLOGS,
    Variables,
    isolation_level,
    plain,
)
from binlane.statements.session.xa_statements import refusal_in_xa
from binlane.statements.sql.accounts import AccountName, Grantee, default_roles
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.evaluation.values import UNKNOWN, Text, Value, plain_text
from binlane.statements.sql.facts import StatementFacts, VariableAssignment, VariableScope
from binlane.statements.sql.servers import Fact, LoggingMode
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.expressions import Literal, Name

_COLLATION: Final = "utf8mb3_general_ci"
_GLOBAL_PREFIXES: Final = ("global.", "persist.")
_SWITCHES: Final = {"ON": 1, "TRUE": 1, "OFF": 0, "FALSE": 0}
_DEFAULTS: Final[dict[str, Value]] = {
    "autocommit": 1,
    "auto_increment_increment": 1,
    "auto_increment_offset": 1,
    "binlog_direct_non_transactional_updates": 0,
    "foreign_key_checks": 1,
    "sql_auto_is_null": 0,
    "sql_log_bin": 1,
    "unique_checks": 1,
    "default_storage_engine": Text("InnoDB", _COLLATION),
}
_SQL_MODES: Final = {
    True: "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,"
    "NO_ENGINE_SUBSTITUTION",
    False: "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
}
"""By whether the server is MariaDB."""


def system_value(variables: Variables, name: str) -> Value:
    """Return the value of `@@name`; `name` is in lower case, with its scope if one is given."""
    plain_name = name.rpartition(".")[2]
    is_global = name.startswith(_GLOBAL_PREFIXES)
    if plain_name == "binlog_format":
        known = variables.settings
        mode = known.global_logging_mode if is_global else known.logging_mode
        return Text(mode.value, _COLLATION)
    if plain_name in ISOLATION_NAMES:
        text = _text(variables, "tx_isolation", is_global=is_global)
        return Text(text or "REPEATABLE-READ", _COLLATION)
    text = _text(variables, plain_name, is_global=is_global)
    if text.isdigit():
        return int(text)
    if text in _SWITCHES:
        return _SWITCHES[text]
    if text:
        return Text(text, _COLLATION)
    if plain_name == "sql_mode":
        return Text(_SQL_MODES[variables.server.is_mariadb], _COLLATION)
    return _DEFAULTS.get(plain_name, UNKNOWN)


def _text(variables: Variables, name: str, *, is_global: bool) -> str:
    return variables.global_values.get(name, "") if is_global else variables.text(name)


def with_value(
    assignment: VariableAssignment,
    facts: StatementFacts,
    host: Host,
    environment: Environment | None,
) -> VariableAssignment:
    """An assignment whose expression is replaced by its value; a literal or word stays.

    A value that only a server knows stands for the default: scripts keep a variable's value in
    another one to set it back at their end.
    """
    node = assignment.node
    if assignment.name.startswith("@") or node is None or isinstance(node, Literal):
        return assignment
    known = SessionEnvironment(host) if environment is None else environment
    if isinstance(node, Name):
        try:
            value = known.local(".".join(node.parts))
        except LookupError:
            return assignment
    else:
        value = evaluate(node, facts, known)
    if value is UNKNOWN or value is None:
        return replace(assignment, value="DEFAULT")
    return replace(assignment, value=plain_text(value))


_GLOBAL = frozenset((VariableScope.GLOBAL, VariableScope.PERSIST))
_LEVEL = "transaction isolation level"
_MODE = "transaction access mode"
_CHARACTERISTICS = {_LEVEL, _MODE, *ISOLATION_NAMES, *ACCESS_NAMES}


_NO_ISOLATION: Final = Refusal(
    *(1568, "25001", "ER_CANT_CHANGE_TX_CHARACTERISTICS"),
    "Transaction characteristics can't be changed while a transaction is in progress",
)
_OUT_OF_ROWS: Final = Refusal(
    *(1559, "HY000", "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR"),
    "Cannot switch out of the row-based binary log format when the session has open temporary "
    "tables",
)
_SESSION_FORMAT: Final = Refusal(
    *(3745, "HY000", "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT"),
    "Changing @@session.binlog_format is disallowed when the session has open temporary "
    "table(s). You could wait until these temporary table(s) are dropped and try again.",
)
_IN_FUNCTION: Final = {
    "binlog_format": Refusal(
        *(1560, "HY000", "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT"),
        "Cannot change the binary logging format inside a stored function or trigger",
    ),
    DIRECT: Refusal(
        *(1686, "HY000", "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT"),
        "Cannot change the binlog direct flag inside a stored function or trigger",
    ),
    "sql_log_bin": Refusal(
        *(1695, "HY000", "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN"),
        "Cannot change the sql_log_bin inside a stored function or trigger",
    ),
}
_IN_TRANSACTION: Final = {
    name: Refusal(
        *(errno, "HY000", f"ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_{what}"),
        f"Cannot modify @@session.{name} inside a transaction",
    )
    for name, errno, what in (
        ("binlog_format", 1679, "BINLOG_FORMAT"),
        (DIRECT, 1685, "BINLOG_DIRECT"),
        ("sql_log_bin", 1694, "SQL_LOG_BIN"),
    )
}


_WHOLE_TRANSACTIONS: Final = frozenset(
    (
        *("binlog_transaction_compression", "binlog_transaction_compression_level_zstd"),
        *("binlog_row_value_options", "explicit_defaults_for_timestamp", "gtid_next"),
        *("pseudo_replica_mode", "pseudo_slave_mode"),
    )
)
"""Variables that MySQL does not let a session set while it is in a transaction."""


def _in_program(name: str) -> Refusal:
    """Return the refusal of a SET in a program by which the source would log, out of binlane's control."""
    return Refusal(
        *(1235, "42000", "BINLANE_SET_IN_PROGRAM"),
        f"binlane doesn't yet support 'SET {name} in programs and prepared statements'",
    )


def refusal(state: SessionState, assignment: VariableAssignment) -> Refusal | None:
    """Return the refusal of an assignment; None if it is allowed."""
    name, is_active = assignment.name, state.transaction.is_active
    if name in _CHARACTERISTICS:
        is_next = assignment.scope is VariableScope.UNSAID and name in (_LEVEL, _MODE)
        return _NO_ISOLATION if is_next and is_active else None
    if assignment.scope in _GLOBAL:
        return None
    if name in _WHOLE_TRANSACTIONS and is_active and not state.server.is_mariadb:
        return refusals.refusal(1766, name)
    if name not in _IN_TRANSACTION:
        return None
    error = _temporary_refusal(state, assignment)
    if error is not None:
        return error
    return _IN_TRANSACTION[name] if is_active else None


def refusal_in_function(
    state: SessionState, assignments: Iterable[VariableAssignment]
) -> Refusal | None:
    """Return the refusal of a SET in a stored function or trigger; None if it is allowed."""
    for assignment in assignments:
        if assignment.name in _IN_FUNCTION and assignment.scope not in _GLOBAL:
            return _temporary_refusal(state, assignment) or _IN_FUNCTION[assignment.name]
    return None


def _temporary_refusal(state: SessionState, assignment: VariableAssignment) -> Refusal | None:
    """Return the refusal to change the format of a session with temporary tables."""
    is_format = assignment.name == "binlog_format"
    if not is_format or state.safety is not None or not state.objects.temporary_tables():
        return None
    if state.server.has(Fact.ROWS_OF_TEMPORARY_TABLES):
        return _SESSION_FORMAT
    mode, target = state.variables.settings.logging_mode, state.variables.copy()
    target.assign(assignment)
    leaves_rows = mode is LoggingMode.ROW or (
        mode is LoggingMode.MIXED and any(state.is_row_now(name) for name in state.modes())
    )
    is_statement = target.settings.logging_mode is LoggingMode.STATEMENT
    return _OUT_OF_ROWS if leaves_rows and is_statement else None


def checked(
    state: SessionState, statement: SessionStatement, assignments: Iterable[VariableAssignment]
) -> tuple[VariableAssignment, ...] | None:
    """A statement's assignments with the values of their expressions; None if one is refused."""
    found = tuple(
        with_value(assignment, statement.facts, state.host, statement.environment)
        for assignment in assignments
    )
    for assignment in found:
        error = refusal(state, assignment)
        if error is None and statement.environment is None:
            error = state.host.errors.unknown_variable(assignment.name)
        elif error is None and state.logs_source and assignment.name in OF_BINLOGS:
            error = _in_program(assignment.name)
        if error is not None:
            state.fail(error)
            return None
        if state.transaction.xa_phase is not None and _turns_autocommit_on(state, assignment):
            state.fail(refusal_in_xa(state))
            return None
    return found


def _turns_autocommit_on(state: SessionState, assignment: VariableAssignment) -> bool:
    """True if an assignment would commit the transaction by turning autocommit on."""
    if assignment.name != "autocommit" or assignment.scope in _GLOBAL:
        return False
    after = state.variables.copy()
    after.assign(assignment)
    return after.settings.is_autocommit and not state.variables.settings.is_autocommit


def carry_out(state: SessionState, assignments: Iterable[VariableAssignment]) -> None:
    """Carry out assignments to system variables that `checked` found right."""
    for assignment in assignments:
        _assign(state, assignment)


def _assign(state: SessionState, assignment: VariableAssignment) -> None:
    if assignment.name.startswith("@"):
        return
    if assignment.name in (_LEVEL, _MODE) and assignment.scope is VariableScope.UNSAID:
        coming = state.characteristics
        if assignment.name == _LEVEL:
            coming = coming._replace(isolation=isolation_level(assignment.value))
        else:
            coming = coming._replace(is_read_only=plain(assignment.value) == "READ ONLY")
        state.transaction.coming = coming
        return
    was_autocommit = state.variables.settings.is_autocommit
    state.variables.assign(assignment)
    if assignment.scope in _GLOBAL:
        return
    if assignment.name in CONNECTION_NAMES:
        state.variables.connection = connection_after(state, assignment)
    if assignment.name == "autocommit" and was_autocommit != state.variables.settings.is_autocommit:
        _switch_autocommit(state)
    if assignment.name in _CHARACTERISTICS and not state.transaction.is_active:
        state.reset_characteristics()
    if assignment.name == "binlog_format":
        _leave_rows(state)
        if state.safety is not None:
            state.safety.mode_changed(state.modes())


def _leave_rows(state: SessionState) -> None:
    """Know that SET binlog_format ends the row format in which a program stays.

    Source: `reset_current_stmt_binlog_format_row` of both servers, measured.
    """
    if not (state.server.is_mariadb and state.objects.temporary_tables()):
        state.execution.row_binlogs.clear()


def _switch_autocommit(state: SessionState) -> None:
    """Commit the open changes for SET autocommit=1; =0 keeps an open BEGIN."""
    if state.variables.settings.is_autocommit:
        # The characteristics of the transaction are those of the next statement, too.
        characteristics = state.characteristics
        state.commit()
        state.transaction.own = characteristics
    elif state.server.is_mariadb:
        # The server forgets it, too (sql/sys_vars.cc, fix_autocommit).
        state.transaction.changes.changed_nontransactional = False


@contextmanager
def statement_settings(state: SessionState, statement: SessionStatement) -> Iterator[bool]:
    """Set the values of SET STATEMENT … FOR while the statement runs; False if one is refused."""
    assignments = statement.facts.statement_assignments
    if not assignments:
        yield True
        return
    saved = state.variables.copy()
    found = checked(state, statement, assignments)
    if found is None:
        yield False
        return
    carry_out(state, found)
    yield True
    _take_back(state, assignments, saved)


def _take_back(
    state: SessionState, assignments: Iterable[VariableAssignment], saved: Variables
) -> None:
    """Take assignments back as SET would: values that a transaction forbids to set all stay."""
    for assignment in assignments:
        value = (
            saved.settings.logging_mode.value
            if assignment.name == "binlog_format"
            else assignment.value
        )
        if refusal(state, replace(assignment, value=value)) is not None:
            return
    state.variables = saved
    if any(assignment.name == "binlog_format" for assignment in assignments):
        _leave_rows(state)


def names_charset(assignment: VariableAssignment) -> bool:
    """True if an assignment is SET NAMES or SET CHARACTER SET."""
    return assignment.name in ("names", "character set") and bool(plain(assignment.value))


# Character set and collation of literals ----------------------------------------------------------


CONNECTION_NAMES: Final = frozenset(
    ("names", "character set", "character_set_connection", "collation_connection")
)
_COLLATE: Final = " collate "


def connection_after(state: SessionState, assignment: VariableAssignment) -> tuple[str, str]:
    """Character set and collation behind an assignment of one of `CONNECTION_NAMES`."""
    server_charset = state.server.default("character_set_server")
    value = assignment.value.strip().lower()
    charset, _, collation = (
        part.strip("'\"` ") for part in value.replace("\n", " ").partition(_COLLATE)
    )
    if charset == "default":
        charset = server_charset
    elif assignment.name == "character set":
        charset = state.objects.charset_of_database(state.database) or server_charset
    elif assignment.name == "collation_connection":
        charset, collation = charset.partition("_")[0], charset
    if charset == "utf8":
        charset = "utf8mb3"
    if charset == "binary":
        return charset, "binary"
    return charset, collation or state.server.default_collation(charset)


def execute_set(state: SessionState, statement: SessionStatement) -> None:
    """Carry out SET: of system variables here, of user variables as a statement that may read tables."""
    facts = statement.facts
    tree = facts.tree
    if isinstance(tree, AccountStatement):
        _set_role(state, statement, tree)
        return
    assignments: tuple[VariableAssignment, ...] | None = ()
    if statement.succeeds:
        assignments = checked(state, statement, facts.assignments)
    if assignments is None:
        return
    # The first assignment is carried out first: a variable's old value is kept in the same SET.
    keeps_old = facts.assignments[:1] != () and _is_user_variable(facts.assignments[0])
    if not keeps_old:
        carry_out(state, assignments)
    if facts.functions or facts.tables or facts.user_variables or _sets_user_variable(facts):
        execute_rows(state, statement)
    elif not statement.succeeds:
        state.fail_as_stated(statement)
    if keeps_old and state.execution.error is None:
        carry_out(state, assignments)


def _set_role(state: SessionState, statement: SessionStatement, tree: AccountStatement) -> None:
    """Carry out SET ROLE: its roles are active from now on."""
    own, accounts = state.account_name, state.objects.accounts
    given = accounts.get(own, Grantee()).roles
    roles = frozenset(
        AccountName(each.user, "" if state.server.is_mariadb else each.host or "%")
        for each in tree.roles
    )
    if not statement.succeeds:
        state.fail_as_stated(statement)
        return
    if "ALL" in tree.options:
        roles = frozenset(given) - roles
    elif "DEFAULT" in tree.options:
        roles = default_roles(accounts, own)
    error = state.host.errors.wrong_roles(
        roles, own, state.opening(""), knows_accounts=state.knows_accounts
    )
    if error is not None:
        state.fail(error)
        return
    state.identity = Identity(state.identity.account, roles)


def _sets_user_variable(facts: StatementFacts) -> bool:
    return any(_is_user_variable(one) for one in facts.assignments)


def _is_user_variable(assignment: VariableAssignment) -> bool:
    return assignment.name.startswith("@") and not assignment.name.startswith("@@")
