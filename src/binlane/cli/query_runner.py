"""Statements of `binlane query`, run one by one, and their results written."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.output import open_output
from binlane.cli.query_output import write_parquet, write_result
from binlane.cli.talk import say
from binlane.errors import StoreError

if TYPE_CHECKING:
    import duckdb

    from binlane.tables.query.log_connection import LogConnection


_INTERRUPT_AGAIN_S: Final = 0.1
_STATUS: Final = (["Count"], ["Success"])
"""The columns of what DuckDB answers to a statement that gives no rows."""


class SqlError(click.ClickException):
    """DuckDB does not take a statement, or cannot go on with it.

    Attributes:
        hint: The reader's next step; empty where DuckDB's message says it.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: Any = None) -> None:
        """Write DuckDB's message, line by line, to standard error."""
        del file
        text = self.message.expandtabs(4)
        lines = [line for line in text.splitlines() if line.strip()]
        for number, line in enumerate(lines):
            say(line if number else f"binlane: {line}", err=True)
        if self.hint:
            say(f"hint: {self.hint}", err=True)


class SqlRunner:
    """Runs statements, and writes their results as the options say.

    Args:
        connected: The connection with the log's tables.
        options: The options of the command.
    """

    def __init__(self, connected: LogConnection, options: Mapping[str, Any]) -> None:
        self._connected = connected
        self._connection = connected.connection
        self._form: str = options["form"]
        self._output: str | None = options["output"]
        self._is_quiet: bool = options["quiet"]

    def run_all(self, text: str) -> None:
        """Run all statements of a text.

        DuckDB does not always see a signal while it runs, so it runs in a thread of its own, and
        this one waits for the signal.

        Raises:
            SqlError: If DuckDB does not take a statement, with its message.
            CodecError: With file and position, if the log is damaged.
            StoreError: If a file cannot be read or written.
            KeyboardInterrupt: If somebody interrupts; the statement that ran has ended.
        """
        with ThreadPoolExecutor(1) as executor:
            running = executor.submit(self._run_all, text)
            try:
                running.result()
            except KeyboardInterrupt:
                # Once is enough: another one must not let the prompt come while this still runs.
                before = signal.signal(signal.SIGINT, signal.SIG_IGN)
                while not running.done():
                    self._connection.interrupt()
                    wait([running], timeout=_INTERRUPT_AGAIN_S)
                signal.signal(signal.SIGINT, before)
                raise

    def _run_all(self, text: str) -> None:
        with self._told():
            statements = self._connection.extract_statements(text)
        if self._form == "parquet":
            self._run_for_parquet(statements)
            return
        with open_output(self._output, errors="backslashreplace") as out:
            for statement in statements:
                with self._told():
                    result = self._result(statement)
                    if result is not None:
                        write_result(result, out, self._form)
        self._tell_notes()

    def _run_for_parquet(self, statements: list[duckdb.Statement]) -> None:
        if self._output is None:
            raise click.UsageError("--format parquet needs --output FILE")
        if not statements:
            raise click.UsageError("there is no statement whose result could be written")
        for statement in statements[:-1]:
            with self._told():
                if self._result(statement) is not None:
                    raise click.UsageError("a Parquet file takes the result of one statement")
        with self._told():
            result = self._result(statements[-1])
            if result is None:
                raise click.UsageError("the last statement has no result to be written")
            try:
                write_parquet(result, self._output)
            except OSError as error:
                raise StoreError(
                    f"the result cannot be written: {error.strerror or error}",
                    path=self._output,
                    hint="name another --output",
                ) from error
        self._tell_notes()

    def _result(self, statement: duckdb.Statement) -> duckdb.DuckDBPyRelation | None:
        """Run a statement, or begin to; return its rows if it has some."""
        import duckdb  # noqa: PLC0415 - after --help

        self._connected.log.fault = None
        result = self._connection.sql(statement.query)
        is_query = statement.type == duckdb.StatementType.SELECT
        return result if is_query or result.columns not in _STATUS else None

    def _tell_notes(self) -> None:
        notes = self._connected.log.notes
        for table, columns in {} if self._is_quiet else notes.items():
            names = ", ".join(sorted(columns))
            say(f"note: {table}: row images lack columns, which are NULL there: {names}", err=True)
        notes.clear()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of DuckDB into ours: of the log where it was one, else of the SQL."""
        import duckdb  # noqa: PLC0415 - after --help

        try:
            yield
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except (duckdb.Error, RuntimeError, OSError) as error:
            fault = self._connected.log.fault
            if fault is not None:
                self._connected.log.fault = None
                raise fault from None
            if not isinstance(error, duckdb.Error):
                raise
            raise _sql_error(error) from None


def _sql_error(error: duckdb.Error) -> SqlError:
    import duckdb  # noqa: PLC0415 - after --help

    hint = ""
    if isinstance(error, duckdb.PermissionException):
        hint = "--allow-files lets the SQL use files and the network"
    elif isinstance(error, duckdb.CatalogException):
        hint = "SELECT schema, name FROM (SHOW ALL TABLES) lists the tables of the log"
    return SqlError(str(error), hint=hint)
