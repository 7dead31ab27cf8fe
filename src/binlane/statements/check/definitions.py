"""Reading the binlogs that a script of definitions leaves."""

from __future__ import annotations

from collections.abc import Iterable

from binlane.errors import ConfigError, StatementError
from binlane.statements.check.script import ScriptStatement, read_script
from binlane.statements.scope.definition import Definition, duplicate_binlog, look_up
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import AlterBinlog, CreateBinlog, DropBinlog, alter, create
from binlane.statements.sql.script import Script


def read_definitions(
    script: str | Script,
    *,
    name: str,
    before: Iterable[Definition] = (),
    ignores_case: bool = False,
    are_for_files: bool = False,
) -> tuple[Definition, ...]:
    """Read the binlogs that a script of CREATE, ALTER and DROP BINLOG leaves.

    Args:
        script: Text or bytes of the script.
        name: Name of the script in messages.
        before: Definitions of the binlogs that exist before the script.
        ignores_case: The server keeps names of databases and tables in lower case.
        are_for_files: True if the binlogs are made from files, and so cannot begin WITH ROWS.

    Raises:
        ConfigError: If the script has another statement, or one that cannot be executed.
    """
    definitions = {definition.name: definition for definition in before}
    first = 1 + max((definition.log_id for definition in definitions.values()), default=0)
    for number, statement in enumerate(read_script(script), first):
        try:
            if are_for_files:
                _check_rows(statement)
            _define(statement, number, definitions, ignores_case=ignores_case)
        except StatementError as error:
            raise ConfigError(
                f"{error}", key=f"{name}:{statement.line}", hint=error.hint
            ) from error
    return tuple(definitions.values())


def _check_rows(statement: ScriptStatement) -> None:
    parsed = parse_binlog_statement(statement.sql)
    if isinstance(parsed, CreateBinlog | AlterBinlog) and parsed.with_rows:
        raise StatementError(
            "WITH ROWS reads the tables of a server: from files a binlog has changes alone",
            hint="leave WITH ROWS out, or let `binlane serve` make the binlog",
        )


def _define(
    statement: ScriptStatement,
    number: int,
    definitions: dict[str, Definition],
    *,
    ignores_case: bool,
) -> None:
    parsed = parse_binlog_statement(statement.sql)
    if isinstance(parsed, CreateBinlog):
        if parsed.name not in definitions:
            definitions[parsed.name] = create(parsed, number, ignores_case=ignores_case)
        elif not parsed.if_not_exists:
            raise duplicate_binlog(parsed.name)
    elif isinstance(parsed, AlterBinlog):
        definitions[parsed.name] = alter(look_up(parsed.name, definitions), parsed)
    elif isinstance(parsed, DropBinlog):
        if parsed.name in definitions or not parsed.if_exists:
            del definitions[look_up(parsed.name, definitions).name]
    elif _verb(statement.sql) not in ("USE", "SET"):
        raise StatementError(
            f"{statement.sql[:40]!r} defines no binlog",
            hint="a file of --binlogs holds CREATE, ALTER and DROP BINLOG",
        )


def _verb(statement: str) -> str | None:
    from binlane.statements.sql.reading import read  # noqa: PLC0415  # as above
    from binlane.statements.sql.servers import Dialect  # noqa: PLC0415  # definitions need no analysis

    return read(statement, database="", dialect=Dialect()).verb
