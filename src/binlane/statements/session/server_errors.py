"""Errors of the server that come before anything of a statement is carried out: predicted, or stated."""

from __future__ import annotations

from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome, Refusal, Why
from binlane.statements.policy.server_errors import ServerErrors
from binlane.statements.session import transactions
from binlane.statements.session.report import Unanalysed
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import DDL_KINDS, TABLE_MAKING_KINDS, StatementKind
from binlane.statements.sql.tree.statements import CallProcedure

_OF_THE_PARSER: Final = frozenset(
    {
        *(1046, 1064, 1066, 1115, 1253, 1273, 1303, *range(1308, 1311), 1313, 1314, 1319, 1320),
        *(1324, 1327, *range(1330, 1334), 1337, 1338, 1351, 1362, 1363, 1413, 1415, 1422),
        *(1479, 1480, 1492, 1901),
    }
)
"""Errors of definitions before which a server has done nothing, and has committed nothing."""
_OF_BODIES: Final = frozenset((1054, 1193))
"""Errors of the parser in the bodies of programs; elsewhere the servers find them later."""
_WITH_BODIES: Final = frozenset(
    (StatementKind.CREATE_ROUTINE, StatementKind.CREATE_TRIGGER, StatementKind.CREATE_EVENT)
)
_NAMED_TWICE: Final = 1066
_OR_REPLACE_IF_NOT_EXISTS: Final = 1221
_NO_STATEMENT: Final = Refusal(
    *(1064, "42000", "ER_PARSE_ERROR"),
    "You have an error in your SQL syntax: a procedure is called by its name alone in bodies only",
)
_OF_MARIADBS_PARSER: Final = frozenset((1294, 4128))
"""Likewise, of MariaDB: ON UPDATE of what is no time, and what no partition may be made of."""


def is_stated_of_parser(statement: SessionStatement) -> bool:
    """Return True if the script states that the server's parser refuses a definition."""
    kind = statement.facts.effects.kind
    is_definition = kind in DDL_KINDS or kind in TABLE_MAKING_KINDS
    of_mariadb = () if statement.facts.dialect.flavor == "mysql" else _OF_MARIADBS_PARSER
    errno = statement.outcome.error
    if errno in _OF_BODIES and kind in _WITH_BODIES:
        return True
    if errno == _OR_REPLACE_IF_NOT_EXISTS and statement.facts.effects.is_or_replace:
        return True
    if errno == _NAMED_TWICE and kind is StatementKind.CREATE_VIEW:
        return False
    return is_definition and (errno in _OF_THE_PARSER or errno in of_mariadb)


def no_statement(statement: SessionStatement) -> Refusal | None:
    """Return 1064 for the name of a procedure alone, which is a statement in bodies only."""
    tree = statement.facts.tree
    is_bare = isinstance(tree, CallProcedure) and tree.at == tree.name.at
    return _NO_STATEMENT if is_bare and not statement.is_inner else None


class SessionErrors(ServerErrors):
    """Adds the errors that the state of a session tells; predicts none as well.

    The methods are called in this order, and return the error or None.
    """

    def of_parser(self, state: SessionState, statement: SessionStatement) -> Refusal | None:
        """Return the error that the server's parser finds beyond its grammar."""

    def denied_at_once(self, state: SessionState, statement: SessionStatement) -> Refusal | None:
        """Return the refusal of a denied statement that commits nothing before it is denied."""

    def denied_behind_commit(
        self, state: SessionState, statement: SessionStatement
    ) -> Refusal | None:
        """Return the refusal of a denied statement that commits first, like all DDL."""

    def of_objects(self, state: SessionState, statement: SessionStatement) -> Refusal | None:
        """Return the error of objects that are missing or there already, or of a wrong definition."""


NO_ERRORS: Final = SessionErrors()


CREATES_PROGRAMS: Final = frozenset(
    {
        *(StatementKind.CREATE_TRIGGER, StatementKind.CREATE_ROUTINE, StatementKind.CREATE_EVENT),
        StatementKind.CREATE_PACKAGE,
    }
)


def syntax_error(facts: StatementFacts, outcome: Outcome) -> Refusal:
    """Return the error of a statement outside of the server's grammar: nothing of the session changes."""
    error, token = facts.error, facts.effects.stopped_at
    assert error is not None, "the caller has looked"
    assert token is not None, "it says where"
    return Refusal(
        *(outcome.error or error.errno, error.sqlstate, "ER_PARSE_ERROR", str(error)),
        is_stated=outcome.error is not None,
        why=(Why(offset=token.offset, length=max(1, len(token.text))),),
    )


def not_understood(facts: StatementFacts) -> Unanalysed:
    """Return where and why the analysis of a statement stopped."""
    token = facts.effects.stopped_at
    assert token is not None
    text = token.text[:80]
    where = f"at {text!r}" if text else "at the end of the statement"
    return Unanalysed(
        reason=facts.too_much or f"the statement is not understood {where}",
        offset=token.offset,
        length=max(1, len(token.text)),
    )


def refusal_at_once(
    state: SessionState, statement: SessionStatement, errors: SessionErrors
) -> Refusal | None:
    """Return the refusal of a statement that is found before its objects are looked at."""
    facts = statement.facts
    failure = no_statement(statement) or errors.of_parser(state, statement)
    if not statement.is_condition:
        failure = failure or transactions.refusal_behind_table(state, facts)
    failure = failure or errors.denied_at_once(state, statement)
    if failure is None and transactions.begins_transaction(facts):
        failure = transactions.begin_with_table(state, statement)
    return failure


def hangs_on_unknown(state: SessionState, facts: StatementFacts) -> bool:
    """True if a statement names programs that nobody knows; one that makes them anew does not."""
    unknown = state.unknown_programs
    if not unknown:
        return False
    effects = facts.effects
    if effects.kind in CREATES_PROGRAMS and effects.is_or_replace:
        state.unknown_programs -= {*effects.objects}
        return False
    named = {
        *effects.objects,
        *effects.calls,
        *(TableName(use.database or state.database, use.name) for use in facts.functions),
    }
    return not unknown.isdisjoint(named)
