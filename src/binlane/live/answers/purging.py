"""PURGE BINARY LOGS: which files go, and which stay since somebody reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from binlane.binlogs.store.files import BinlogFile, ended_before
from binlane.binlogs.store.live import LiveBinlog
from binlane.errors import DefinitionError, StatementError
from binlane.live.gateway.handler import HandlerSession
from binlane.log.codec.format import flavor_of
from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tree.expressions import Subquery, walk

_UNKNOWN_TARGET_BINLOG: Final = 1373
_WRONG_TIME: Final = 1292
_NOT_SUPPORTED: Final = 1235
_SUBQUERIES_NOT_SUPPORTED: Final = 1970
_CALLED: Final = re.compile(r"([^\s(),+*/-]+)\s*\(")
_QUERY: Final = re.compile(r"\b(SELECT|TABLE|VALUES)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """A purge's effect on the files of one binlog.

    Attributes:
        first: The first file that stays; None if all stay.
        warning: The reason why more files stay than was asked; empty if not.
    """

    binlog: str
    first: str | None = None
    warning: str = ""


def unknown_target(file: str) -> DefinitionError:
    """The servers' error of PURGE TO a file that is not there."""
    return DefinitionError(
        f"Target log not found in binlog index: '{file}'",
        errno=_UNKNOWN_TARGET_BINLOG,
        hint="SHOW BINARY LOGS lists the files",
    )


def plan_to(live: LiveBinlog, file: str) -> PurgePlan:
    """Plan to purge the files before a named one.

    Raises:
        DefinitionError: If it is none of the binlog's.
    """
    files = live.published.files
    names = [each.name for each in files]
    if file not in names:
        raise unknown_target(file)
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


async def evaluated_time(session: HandlerSession, expression: str) -> float:
    """Let the source evaluate an expression; return the time in seconds since 1970.

    Raises:
        StatementError: If it is no time, or may change something.
    """
    flavor = flavor_of(session.server_version)
    facts = read(f"SELECT {expression}", database="", dialect=Dialect(flavor=flavor.value))
    if not (_is_plain(expression) if facts.error else _reads_nothing(facts)):
        raise _not_plain(flavor)
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


def _not_plain(flavor: Flavor) -> StatementError:
    """Return the error for a time that is more than an expression, for which MySQL has no syntax."""
    if flavor is Flavor.MARIADB:
        return StatementError(
            "PURGE..BEFORE does not support subqueries or stored functions",
            errno=_SUBQUERIES_NOT_SUPPORTED,
            sqlstate="42000",
        )
    return StatementError(
        "binlane doesn't yet support 'subqueries and stored functions in PURGE BINARY LOGS'",
        errno=_NOT_SUPPORTED,
        sqlstate="42000",
        hint="write the time itself",
    )


def _reads_nothing(facts: StatementFacts) -> bool:
    """True if an expression has no subqueries, and nothing stored runs where the source evaluates it."""
    is_alone = not any(isinstance(node, Subquery) for node in walk(facts.whole))
    return is_alone and not facts.tables and runs_nothing_stored(facts)


def _is_plain(expression: str) -> bool:
    """True if an expression that is not understood calls nothing but built-in functions.

    The source finds what is wrong with it.
    """
    called = _CALLED.findall(expression)
    return _QUERY.search(expression) is None and all(map(is_built_in, called))
