"""PURGE BINARY LOGS: which files go, and which stay since somebody reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.client.questions import text_literal
from binlane.codec.format import flavor_of
from binlane.errors import DefinitionError, StatementError
from binlane.gateway.handler import SessionContext
from binlane.sql.evaluation.functions import is_built_in
from binlane.sql.facts import StatementFacts
from binlane.sql.reading import read
from binlane.sql.servers import Dialect
from binlane.sql.stored import runs_nothing_stored
from binlane.store.files import BinlogFile
from binlane.store.live import LiveBinlog
from binlane.store.purging import ended_before

_UNKNOWN_TARGET_BINLOG: Final = 1373
_WRONG_TIME: Final = 1292
_NOT_SUPPORTED: Final = 1235
_CALLED: Final = re.compile(r"([^\s(),+*/-]+)\s*\(")
_QUERY: Final = re.compile(r"\b(SELECT|TABLE|VALUES)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """What becomes of one binlog's files.

    Attributes:
        binlog: Its name.
        first: The first file that stays; None if all stay.
        warning: Why more stay than was asked; empty if not.
    """

    binlog: str
    first: str | None = None
    warning: str = ""


def plan_to(live: LiveBinlog, file: str) -> PurgePlan:
    """Purge the files before one of them.

    Raises:
        DefinitionError: If it is none of the binlog's.
    """
    files = live.published.files
    names = [each.name for each in files]
    if file not in names:
        raise DefinitionError(
            f"Target log not found in binlog index: '{file}'",
            errno=_UNKNOWN_TARGET_BINLOG,
            hint=f"SHOW BINARY LOGS FOR '{live.name}' lists the files",
        )
    return _plan(live, files, names.index(file))


def plan_before(live: LiveBinlog, timestamp: float) -> PurgePlan:
    """Purge the files that ended before a time, in seconds since 1970."""
    published = live.published
    return _plan(live, published.files, ended_before(published.closed, timestamp))


def _plan(live: LiveBinlog, files: Sequence[BinlogFile], wanted: int) -> PurgePlan:
    """Purge so many files, up to the first that is read: whoever reads it wants the next, too."""
    names = [file.name for file in files]
    count = next((n for n, name in enumerate(names[:wanted]) if name in live.files_read), wanted)
    warning = ""
    if count < wanted:
        warning = (
            f"file {names[count]} was not purged because it was being read, purged only {count} out "
            f"of {wanted} files"
        )
    return PurgePlan(binlog=live.name, first=names[count] if count else None, warning=warning)


async def evaluated_time(session: SessionContext, expression: str) -> float:
    """What the source makes of an expression, in seconds since 1970.

    Raises:
        StatementError: If it is no time, or may change something.
    """
    dialect = Dialect(flavor=flavor_of(session.server_version).value)
    facts = read(f"SELECT {expression}", database="", dialect=dialect)
    is_quiet = _is_plain(expression) if facts.error else await _is_quiet(session, facts)
    if not is_quiet:
        raise StatementError(
            "binlane doesn't yet support 'stored functions and views in PURGE BINARY LOGS'",
            errno=_NOT_SUPPORTED,
            sqlstate="42000",
            hint="write the time itself",
        )
    found = await session.query_source(f"SELECT UNIX_TIMESTAMP({expression}) LIMIT 1")
    cells = [cell for row in found.texts() for cell in row]
    # An invalid time is 0, with a warning of which a purge must not make nothing.
    if len(cells) != 1 or not cells[0] or not float(cells[0]):
        raise StatementError(
            f"Incorrect DATETIME value: {expression}",
            errno=_WRONG_TIME,
            sqlstate="22007",
            hint="a time such as '2026-11-22 10:00:00' or NOW() - INTERVAL 3 DAY, in the session's "
            "time zone",
        )
    return float(cells[0])


async def _is_quiet(session: SessionContext, facts: StatementFacts) -> bool:
    """Whether nothing stored runs where the source evaluates an expression."""
    if runs_nothing_stored(facts):
        return True
    if not runs_nothing_stored(replace(facts, tables=())):
        return False
    names = ", ".join(
        f"({text_literal(name.database) if name.database else 'DATABASE()'},"
        f" {text_literal(name.table)})"
        for name in (use.name for use in facts.tables)
    )
    found = await session.query_source(
        "SELECT COUNT(*) FROM information_schema.VIEWS"  # noqa: S608  # names as literals
        f" WHERE (TABLE_SCHEMA, TABLE_NAME) IN ({names}) LIMIT 1"
    )
    return found.texts()[0][0] == "0"


def _is_plain(expression: str) -> bool:
    """Whether an expression that is not understood calls nothing but what is built in.

    The source finds what is wrong with it.
    """
    called = _CALLED.findall(expression)
    return _QUERY.search(expression) is None and all(map(is_built_in, called))
