"""The errors that a server gives to statements, predicted from its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.resolution import Opening
from binlane.statements.policy.server import Server
from binlane.statements.policy.server_errors import Identity
from binlane.statements.predicted_errors.account_rights import (
    check_of,
    denied_to_definer,
    no_definer,
    not_granted,
)
from binlane.statements.predicted_errors.column_names import unknown_column
from binlane.statements.predicted_errors.defined_tables import wrong_copy, wrong_table, wrong_view
from binlane.statements.predicted_errors.granted_objects import wrong_account
from binlane.statements.predicted_errors.object_names import (
    missing_altered_databases,
    missing_altered_view,
    missing_database,
    missing_databases,
    missing_dropped_tables,
    missing_dropped_views,
    missing_events,
    missing_for_routine,
    missing_libraries,
    missing_opened,
    missing_packages,
    missing_read,
    missing_renamed,
    missing_routines,
    missing_sequence,
    missing_tables,
    missing_trigger_table,
    missing_triggers,
    missing_used,
)
from binlane.statements.predicted_errors.parser_errors import no_database, unparsed
from binlane.statements.predicted_errors.row_privileges import denied_inside
from binlane.statements.predicted_errors.row_values import lacking_value
from binlane.statements.predicted_errors.statement_privileges import denied
from binlane.statements.predicted_errors.taken_names import (
    taken_database,
    taken_new_name,
    taken_package,
    taken_program,
    taken_table,
    taken_view,
)
from binlane.statements.predicted_errors.variable_names import unknown_variable
from binlane.statements.session.server_errors import SessionErrors
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.accounts import OWN, AccountName, Grantee, roles_of
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.schema import Routine, Table, Trigger
from binlane.statements.sql.statement_kinds import TABLE_DROPPING_KINDS, StatementKind
from binlane.statements.sql.tree.account_statements import AccountStatement
from binlane.statements.sql.tree.definitions import CreateView

_TOLERANT: Final = TABLE_DROPPING_KINDS | {
    *(StatementKind.DROP_VIEW, StatementKind.DROP_ROUTINE, StatementKind.DROP_TRIGGER),
    *(StatementKind.DROP_DATABASE, StatementKind.RENAME_TABLE, StatementKind.ALTER_TABLE),
}
"""Statements that MariaDB's sql_if_exists makes tolerate missing objects."""
_OPEN_OR_RUN: Final = frozenset(
    (
        *(StatementKind.INSERT, StatementKind.REPLACE, StatementKind.UPDATE, StatementKind.DELETE),
        *(StatementKind.LOAD_DATA, StatementKind.SELECT, StatementKind.DO, StatementKind.SET),
        *(StatementKind.CALL, StatementKind.CREATE_TABLE_SELECT),
    )
)
"""Statements that come to nothing where they are denied; others commit first what is open."""
_COLUMNS_MAX: Final = 4096
_NO_FACTS: Final = StatementFacts(effects=StatementEffects(kind=StatementKind.EMPTY))


class PredictedErrors(SessionErrors):
    """Predicts the errors of a server that are sure."""

    predicts: ClassVar = True

    def __init__(self) -> None:
        self._columns: dict[tuple[object, ...], tuple[Refusal | None]] = {}

    def of_parser(self, state: SessionState, statement: SessionStatement) -> Refusal | None:
        """Return the error that the server's parser finds beyond its grammar; None if it has none."""
        return unparsed(state, statement) or no_database(statement)

    def denied_at_once(self, state: SessionState, statement: SessionStatement) -> Refusal | None:
        """Return the refusal of a denied statement that commits nothing before it is denied."""
        if not (statement.succeeds and statement.facts.effects.kind in _OPEN_OR_RUN):
            return None
        return self.denied(statement.facts, state.opening(statement.database), state.identity)

    def denied_behind_commit(
        self, state: SessionState, statement: SessionStatement
    ) -> Refusal | None:
        """Return the refusal of a denied statement that commits first, like all DDL."""
        kind = statement.facts.effects.kind
        if kind in _OPEN_OR_RUN or not _is_told_by_objects(statement):
            return None
        return self.denied(statement.facts, state.opening(statement.database), state.identity)

    def of_objects(self, state: SessionState, statement: SessionStatement) -> Refusal | None:
        """Return the error of objects that are missing or there already, or of a wrong definition."""
        kind = statement.facts.effects.kind
        if not _is_told_by_objects(statement):
            return None
        if kind in _TOLERANT and state.variables.is_on("sql_if_exists", default=False):
            return None
        finders = [_FINDERS.get(kind), _EXISTING.get(kind)]
        if state.server.is_mariadb and kind is StatementKind.CREATE_TABLE_LIKE:
            finders.reverse()
        # The query of a view is prepared before the server looks if there is one.
        finders.insert(1 if kind is StatementKind.CREATE_VIEW else 2, _DEFINING.get(kind))
        errors = (find(state, statement) for find in finders if find is not None)
        return next((error for error in errors if error is not None), None)

    def denied(self, facts: StatementFacts, opening: Opening, identity: Identity) -> Refusal | None:
        """Return the error of privileges that are missing before a statement's tables are opened."""
        check = check_of(facts, opening, identity)
        return None if check is None else denied(check)

    def denied_inside(
        self, facts: StatementFacts, opening: Opening, identity: Identity
    ) -> Refusal | None:
        """Return the error of privileges on columns, views and functions, once the tables are open."""
        check = check_of(facts, opening, identity)
        return None if check is None else denied_inside(check)

    def wrong_definer(
        self,
        program: Routine | Trigger,
        opening: Opening,
        identity: Identity,
        *,
        knows_accounts: bool,
    ) -> Refusal | None:
        """Return the error of a program whose definer does not exist, or may not run it."""
        definer = program.definer
        is_unknown = definer not in opening.objects.accounts and definer not in OWN
        if is_unknown and knows_accounts:
            return no_definer(definer)
        check = check_of(_NO_FACTS, opening, identity)
        return None if check is None else denied_to_definer(program, check)

    def wrong_roles(
        self,
        roles: frozenset[AccountName],
        account: AccountName,
        opening: Opening,
        *,
        knows_accounts: bool,
    ) -> Refusal | None:
        """Return the error of SET ROLE for roles that were not granted to an account."""
        accounts, is_mariadb = opening.objects.accounts, opening.server.is_mariadb
        if not (knows_accounts or account in accounts):
            return None
        given = accounts.get(account, Grantee()).roles
        granted = roles_of(accounts, given) if is_mariadb else given
        lacking = sorted(roles.difference(granted))
        return not_granted(lacking[0], account, is_mariadb=is_mariadb) if lacking else None

    def unknown_column(
        self,
        facts: StatementFacts,
        opening: Opening,
        is_local: Callable[[str], bool] | None = None,
    ) -> Refusal | None:
        """Return the error of columns that a statement names and that do not exist."""
        objects, server, database = opening.objects, opening.server, opening.database
        if facts.shape is None:
            error = unknown_column(facts, objects, server=server, database=database)
        else:
            key = (facts.shape, objects.version, server.flavor, server.version, database)
            if (known := self._columns.get(key)) is None:
                if len(self._columns) >= _COLUMNS_MAX:
                    self._columns.clear()
                known = (
                    unknown_column(facts.shape.facts, objects, server=server, database=database),
                )
                self._columns[key] = known
            (error,) = known
        if error is None or is_local is None:
            return error
        return unknown_column(facts, objects, server=server, database=database, is_local=is_local)

    def lacking_value(
        self, facts: StatementFacts, table: Table, server: Server, *, is_strict: bool, is_kept: bool
    ) -> Refusal | None:
        """Return the error of an INSERT whose rows surely lack a value."""
        return lacking_value(facts, table, server=server, is_strict=is_strict, is_kept=is_kept)

    def unknown_variable(self, name: str) -> Refusal | None:
        """Return the error of a system variable that no server has; `name` in small letters."""
        return unknown_variable(name)


def _is_told_by_objects(statement: SessionStatement) -> bool:
    """Return True if objects tell why a statement fails, whatever error the script states.

    The knowledge of accounts is not complete, DROP TABLE goes on behind a missing table, and ALTER VIEW opens
    the tables of its query before it looks for the view.
    """
    if statement.succeeds:
        return True
    facts = statement.facts
    is_of_several = facts.effects.kind in TABLE_DROPPING_KINDS
    return not (is_of_several or isinstance(facts.tree, AccountStatement | CreateView))


_Finder = Callable[[SessionState, SessionStatement], Refusal | None]
_FINDERS: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        StatementKind.ALTER_TABLE: missing_tables,
        StatementKind.TRUNCATE_TABLE: missing_tables,
        StatementKind.CREATE_INDEX: missing_tables,
        StatementKind.DROP_INDEX: missing_tables,
        StatementKind.ALTER_SEQUENCE: missing_sequence,
        StatementKind.RENAME_TABLE: missing_renamed,
        StatementKind.CREATE_TABLE: missing_database,
        StatementKind.CREATE_SEQUENCE: missing_database,
        StatementKind.CREATE_ROUTINE: missing_for_routine,
        StatementKind.CREATE_LIBRARY: missing_database,
        StatementKind.ALTER_LIBRARY: missing_libraries,
        StatementKind.DROP_LIBRARY: missing_libraries,
        StatementKind.CREATE_EVENT: missing_database,
        StatementKind.CREATE_TABLE_LIKE: missing_read,
        StatementKind.CREATE_VIEW: missing_read,
        StatementKind.LOCK: missing_read,
        StatementKind.CREATE_TRIGGER: missing_trigger_table,
        StatementKind.DROP_TABLE: missing_dropped_tables,
        StatementKind.DROP_SEQUENCE: missing_dropped_tables,
        StatementKind.DROP_VIEW: missing_dropped_views,
        StatementKind.ALTER_VIEW: missing_altered_view,
        StatementKind.DROP_ROUTINE: missing_routines,
        StatementKind.ALTER_ROUTINE: missing_routines,
        StatementKind.CREATE_PACKAGE: missing_packages,
        StatementKind.DROP_PACKAGE: missing_packages,
        StatementKind.DROP_TRIGGER: missing_triggers,
        StatementKind.DROP_EVENT: missing_events,
        StatementKind.ALTER_EVENT: missing_events,
        StatementKind.DROP_DATABASE: missing_databases,
        StatementKind.ALTER_DATABASE: missing_altered_databases,
        StatementKind.SESSION: missing_used,
        StatementKind.HANDLER: missing_opened,
    }
)
_EXISTING: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        StatementKind.CREATE_TABLE: taken_table,
        StatementKind.CREATE_TABLE_LIKE: taken_table,
        StatementKind.CREATE_TABLE_SELECT: taken_table,
        StatementKind.CREATE_SEQUENCE: taken_table,
        StatementKind.CREATE_VIEW: taken_view,
        StatementKind.CREATE_ROUTINE: taken_program,
        StatementKind.CREATE_LIBRARY: taken_program,
        StatementKind.CREATE_TRIGGER: taken_program,
        StatementKind.CREATE_EVENT: taken_program,
        StatementKind.CREATE_PACKAGE: taken_package,
        StatementKind.CREATE_DATABASE: taken_database,
        StatementKind.RENAME_TABLE: taken_new_name,
        StatementKind.ALTER_TABLE: taken_new_name,
        StatementKind.ACCOUNT: wrong_account,
    }
)
_DEFINING: Final[Mapping[StatementKind, _Finder]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *(StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_SELECT),
                *(StatementKind.ALTER_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX),
            ),
            wrong_table,
        ),
        StatementKind.CREATE_TABLE_LIKE: wrong_copy,
        **dict.fromkeys((StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW), wrong_view),
    }
)
