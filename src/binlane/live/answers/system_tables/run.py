"""Asks the process that answers questions over the system tables, and waits for it."""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from binlane.child_processes import isolated_command
from binlane.errors import StatementError
from binlane.live.answers.system_tables.query_turns import QueryTurns
from binlane.live.answers.system_tables.system_columns import TABLES, Snapshot
from binlane.live.gateway.answers import RowsAnswer
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.results import BINARY_COLLATION, Cell, ColumnDefinition
from binlane.log.codec.types import ColumnType, Flavor
from binlane.statements.scope.scope import SYSTEM_DATABASE

_WORKER: Final = Path(__file__).with_name("query_worker.py")
_INTERRUPTED: Final = 1317
_TIMEOUT: Final = MappingProxyType({Flavor.MARIADB: 1969, Flavor.MYSQL: 3024})
"""Errors that end queries which pass max_statement_time or max_execution_time."""
_SYNTAX: Final = 1064
_OUT_OF_RESOURCES: Final = 1041
_INVALID_TEXT: Final = 1300
_LESS: Final = "ask for less; a recursive query needs an end"
_AT_ONCE_MAX: Final = 3
"""Questions of administrators that are answered at a time, and as many of others; the rest waits."""
_OF_ACCOUNT_MAX: Final = 2
"""Questions of one account among these, so that there is a place for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """Limits of one question's use of the machine.

    Attributes:
        cpu_s: Processor time that the process may use, in seconds.
        wall_s: Time from the question's start, in seconds.
        memory_bytes: Address space of the process.
        rows_max: Most rows of the answer.
        bytes_max: Most bytes of the answer.
        length_max: Most bytes of one value.
    """

    cpu_s: int = 5
    wall_s: float = 15.0
    memory_bytes: int = 512 << 20
    rows_max: int = 100_000
    bytes_max: int = 32 << 20
    length_max: int = 16 << 20


_LIMITS: Final = QueryLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFunctions:
    """Values that functions of the session give.

    Attributes:
        default_database: The value of DATABASE(), empty without one.
        user: The value of USER() in the session.
        account: The value of CURRENT_USER() in the session.
        version: The value of VERSION() in the session.
    """

    default_database: str = ""
    user: str = ""
    account: str = ""
    version: str = ""


class QueryRunner:
    """Answers SELECTs over the system tables, a few at a time, in turn by account.

    Administrators have places of their own, and wait for nobody else.
    """

    def __init__(self, limits: QueryLimits = _LIMITS) -> None:
        self._limits = limits
        self._turns = {
            is_administrator: QueryTurns(_AT_ONCE_MAX, _OF_ACCOUNT_MAX)
            for is_administrator in (False, True)
        }

    async def run(
        self,
        sql: str,
        snapshot: Snapshot,
        circumstances: SessionFunctions,
        *,
        is_administrator: bool = False,
    ) -> RowsAnswer:
        """Answer a question; if the asker is cancelled, nothing is left behind.

        Args:
            sql: The query in SQLite's own notation.
            snapshot: The rows of all tables.
            circumstances: Values of the session's functions.
            is_administrator: True if its account may define binlogs.

        Raises:
            StatementError: If it is wrong, or uses more than it may.
        """
        data = _encoded(sql, snapshot, circumstances, self._limits)
        async with self._turns[is_administrator].turn(circumstances.account):
            output = await _ask(data, self._limits, circumstances)
        return _decoded(json.loads(output))


def _encoded(
    sql: str, snapshot: Snapshot, circumstances: SessionFunctions, limits: QueryLimits
) -> bytes:
    tables = {
        name: {"columns": columns, "rows": snapshot[name]} for name, columns in TABLES.items()
    }
    question = {
        **asdict(limits),
        **asdict(circumstances),
        "sql": sql,
        "database": SYSTEM_DATABASE,
        "tables": tables,
    }
    try:
        return json.dumps(question, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise StatementError(
            "Invalid utf8mb4 character string in the statement", errno=_INVALID_TEXT
        ) from None


def _decoded(answer: Mapping[str, Any]) -> RowsAnswer:
    if "limit" in answer:
        raise _too_much(answer["limit"])
    if "error" in answer:
        raise StatementError(
            f"You have an error in your SQL syntax; over system tables: {answer['error']}",
            errno=_SYNTAX,
            sqlstate="42000",
            hint="system tables are asked in SQLite, which knows most of the servers' SELECT",
        )
    heads = [_head(name, type_) for name, type_ in answer["columns"]]
    return RowsAnswer(heads, [[_cell(value) for value in row] for row in answer["rows"]])


async def _ask(data: bytes, limits: QueryLimits, circumstances: SessionFunctions) -> bytes:
    """Run the worker process on encoded data and return its output.

    Raises:
        StatementError: If it cannot be started, or takes too long, or was killed.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *isolated_command(str(_WORKER)), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
    except OSError as error:
        raise StatementError(
            f"Out of resources: the query cannot be started: {error.strerror}",
            errno=_OUT_OF_RESOURCES,
            hint="see which limits of processes, memory and files binlane runs under",
        ) from None
    output, is_late = b"", False
    try:
        async with asyncio.timeout(limits.wall_s):
            output, _ = await process.communicate(data)
    except TimeoutError:
        is_late = True
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if is_late or process.returncode == -signal.SIGXCPU:
        flavor = flavor_of(circumstances.version)
        raise StatementError(
            "Query execution was interrupted: over system tables it may take"
            f" {limits.cpu_s} s of processor time, and {limits.wall_s:g} s in all",
            errno=_TIMEOUT[flavor],
            sqlstate="70100" if flavor is Flavor.MARIADB else "HY000",
            hint=_LESS,
        )
    if process.returncode != 0 or not output:
        raise StatementError(
            "Out of resources: the process that answers queries over system tables was killed",
            errno=_OUT_OF_RESOURCES,
            hint="see in the system's log whether memory is short",
        )
    return output


def _too_much(what: str) -> StatementError:
    return StatementError(
        f"Query execution was interrupted: it needs more than {what}",
        errno=_INTERRUPTED,
        sqlstate="70100",
        hint=_LESS,
    )


def _head(name: str, type_: str) -> ColumnDefinition:
    if type_ == "integer":
        return ColumnDefinition.integer(name)
    if type_ == "real":
        return ColumnDefinition(
            name=name,
            character_set=BINARY_COLLATION,
            length=23,
            type_code=ColumnType.DOUBLE,
            decimals=31,
        )
    if type_ == "blob":
        return ColumnDefinition(
            name=name, character_set=BINARY_COLLATION, type_code=ColumnType.BLOB
        )
    return ColumnDefinition(name=name)


def _cell(value: Any) -> Cell:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if isinstance(value, bool):
        return int(value)
    return repr(value) if isinstance(value, float) else value
