"""Reasons to refuse statements; a client is told nothing of binlogs that it may not see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.client.prepared_texts import quoted
from binlane.errors import (
    HINT_ERRNO,
    Diagnostic,
    StatementError,
    UnjudgedError,
    UnsafeStatementError,
)
from binlane.live.gateway.handler import HandlerSession
from binlane.live.port.port_parts import PortParts
from binlane.statements.check.hints import HINTS
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.programs.runner import is_program
from binlane.statements.scope.safety import ROW_HINT, SPLIT_HINT
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind
from binlane.statements.sql.tree.statements import Prepare

NOT_PREPARED: Final = StatementError(
    "This command is not supported in the prepared statement protocol yet",
    errno=1295,
    hint="send it as text",
)
NO_BULK: Final = StatementError(
    "Only row based replication supported for bulk operations",
    errno=4033,
    hint="SET SESSION binlog_format = 'ROW', or execute it for each row of values",
)
_AS_ROWS: Final = "SET SESSION binlog_format = 'ROW' lets it run"
_WITHOUT_SCOPES: Final = "binlogs that log everything would have its rows; one here has a scope"
_SHOWN: Final = 40
_TRIED: Final = "binlane_tried"
"""A prepared statement of binlane's own in the client's session, for a moment."""
_NOT_TRIED: Final = frozenset((1295, 1461))
"""Errors of PREPARE that are not the statement's."""
_OWN: Final = ("ER_BINLOG_", "BINLANE_", "ER_INSIDE_TRANSACTION_PREVENTS_")
"""Beginnings of the symbols of refusals that are binlane's to give: the source logs rows, whatever the
binlogs have, and would let such a statement pass."""
_OWN_SYMBOLS: Final = frozenset(
    (
        "ER_CLIENT_GTID_UNSAFE_CREATE_DROP_TEMP_TABLE_IN_TRX_IN_SBR",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN",
    )
)
_UNNAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BINLANE_PARTIAL_WRITE": "a binlog does not log all that the statement writes",
        "BINLANE_DEPENDENCY": (
            "a binlog does not log all that the statement needs, "
            "consequently the statement might not replay correctly"
        ),
        "BINLANE_PARTIAL_TRANSACTION": (
            "a binlog only records some of the changes made by the transaction"
        ),
        "BINLANE_TABLE_SCOPE_TRIGGER": (
            "a binlog logs a table by its name and in statement format, "
            "with which triggers are not supported"
        ),
        "BINLANE_LOAD_DATA": "a binlog is scoped and would log LOAD DATA as a statement",
    }
)
"""By symbol, what is told in the place of a text that names binlogs."""
_DEFINITION: Final = "BINLANE_DEFINITION"
_OF_THEIR_TABLES: Final = (
    *(StatementKind.MAINTENANCE, StatementKind.FLUSH),
    *(StatementKind.DROP_TABLE, StatementKind.DROP_TRIGGER),
)
"""Kinds of statements that concern only the tables that they name, or that their triggers belong to."""


class Refusals:
    """Refuses the statements of one session.

    Args:
        client: The session on the source.
    """

    def __init__(self, client: HandlerSession) -> None:
        self._client = client

    async def of(
        self,
        result: StatementResult,
        facts: StatementFacts,
        model: PlanningSession,
        shared: PortParts,
    ) -> StatementError | None:
        """The reason why a statement must not run; None if it may, or the source will say the reason."""
        if result.unanalysed is not None:
            if may_take_rows(model.session) or is_logged_by_its_text(facts, model.session):
                return None
            at = result.unanalysed.offset
            where = f" near {facts.text[at : at + _SHOWN]!r}" if facts.text[at:] else ""
            return not_known(f"{result.unanalysed.reason}{where}", model)
        error = result.error
        if error is None or not _is_own(error):
            return None
        before = model.session.predicted_error(facts.text)
        if before is not None and not _is_own(before):
            return None
        seen = await self._seen(shared)
        return as_error(as_told(error, seen), seen)

    async def _seen(self, shared: PortParts) -> Collection[str] | None:
        """The binlogs that the client may see; None for all."""
        try:
            return await shared.seen(self._client)
        except StatementError:
            return ()  # what cannot be found out is not told

    async def of_source(
        self, facts: StatementFacts, as_sent: Callable[[str], str]
    ) -> StatementError | None:
        """Give the error by which the source refuses an unknown statement, too; None if it does not.

        The statement is prepared there, which executes nothing; of a text that is made up, that text.

        Args:
            facts: Parsed facts of the statement's text.
            as_sent: Gives a text as it is sent in the session's character set.
        """
        tree = facts.tree
        if isinstance(tree, Prepare) and tree.source is not None:
            tried = facts.text_of(tree.source)
        elif is_program(facts):
            return None
        else:
            tried = quoted(facts.text, facts)
        try:
            await self._client.run_at_source(as_sent(f"PREPARE {_TRIED} FROM {tried}"))
        except StatementError as error:
            return None if error.errno in _NOT_TRIED else error
        await self._client.run_at_source(f"DEALLOCATE PREPARE {_TRIED}")
        return None


def may_take_rows(session: Session) -> bool:
    """True if every binlog may have the rows of all that a session does.

    False where a binlog has a scope: a statement of which it would have one half is refused.
    """
    return session.may_log_rows and not session.has_scopes


def is_logged_by_its_text(facts: StatementFacts, session: Session) -> bool:
    """True if a statement is always in the source's log, and in each binlog, as its text."""
    effects = facts.effects
    if session.has_scopes:
        # One table is in a scope or is not.
        is_known = effects.stopped_at is None and len((*effects.writes, *effects.objects)) == 1
        return is_known and effects.kind in _OF_THEIR_TABLES
    return effects.kind in DDL_KINDS and not effects.is_temporary


def not_known(what: str, model: PlanningSession | None) -> UnjudgedError:
    """The reason to refuse a statement whose effect is not known."""
    has_scopes = model is not None and model.session.has_scopes
    return UnjudgedError(what, hint=_WITHOUT_SCOPES if has_scopes else _AS_ROWS)


def as_told(refusal: Refusal, seen: Collection[str] | None) -> Refusal:
    """Cut a refusal down to the reasons that an account may know.

    Args:
        refusal: Refusal with all of its reasons.
        seen: The binlogs that the account may see; None for all.
    """
    if seen is None:
        return refusal
    reasons = [replace(refusal, others=()), *refusal.others]
    told = [one for one in reasons if _is_nameless(one) or _is_seen(one, seen)]
    if told:
        return replace(told[0], others=tuple(told[1:]))
    if refusal.symbol == _DEFINITION:
        message = "a statement on binlogs is sent by itself"
        return Refusal(refusal.errno, refusal.sqlstate, refusal.symbol, message)
    error = UnsafeStatementError(_UNNAMED[refusal.symbol])
    helps_rows = any(ROW_HINT in why.hint for why in refusal.why)
    hint = ROW_HINT if helps_rows else SPLIT_HINT
    return Refusal(
        refusal.errno, refusal.sqlstate, refusal.symbol, str(error), why=(Why(hint=hint),)
    )


def as_error(refusal: Refusal, seen: Collection[str] | None) -> StatementError:
    """Give the client's error: the text of the server or the seed, then who refuses, and what helps.

    Args:
        refusal: Refusal as the account may know it.
        seen: The binlogs that the account may see; None for all.
    """
    reasons = [each for one in (refusal, *refusal.others) for each in (one, *one.behind)]
    whys = [why.hint for why in refusal.why] or [HINTS.get(refusal.symbol, "")]
    hints = tuple(dict.fromkeys((_refuser(refusal, seen), *filter(None, whys))))
    return StatementError(
        refusal.message,
        errno=refusal.errno,
        sqlstate=refusal.sqlstate,
        hint="; ".join(hints),
        diagnostics=(
            *(Diagnostic("Error", one.errno, one.message) for one in reasons),
            *(Diagnostic("Note", HINT_ERRNO, hint) for hint in hints),
        ),
    )


def _refuser(refusal: Refusal, seen: Collection[str] | None) -> str:
    """Name who refuses a statement, for which binlogs, and how to see more of it."""
    names = [name for name in refusal.binlogs if seen is None or name in seen]
    listed = ", ".join(f"'{name}'" for name in names)
    of = f" for {'binlogs' if len(names) > 1 else 'binlog'} {listed}" if names else ""
    more = (
        "" if seen is not None and not seen else ": EXPLAIN BINLOG before the statement says more"
    )
    return f"binlane refuses it{of}{more}"


def _is_nameless(refusal: Refusal) -> bool:
    return refusal.symbol not in _UNNAMED and refusal.symbol != _DEFINITION


def _is_seen(refusal: Refusal, seen: Collection[str]) -> bool:
    return bool(refusal.binlogs) and set(refusal.binlogs) <= set(seen)


def _is_own(refusal: Refusal) -> bool:
    """True if binlane refuses, and not the source, which gets to say its own errors itself."""
    return refusal.symbol in _OWN_SYMBOLS or refusal.symbol.startswith(_OWN)
