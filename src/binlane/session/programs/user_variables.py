"""User variables in the log: the `User var` events before a statement that reads them."""

from __future__ import annotations

from decimal import Decimal

from binlane.names import quote
from binlane.policy.server import Server
from binlane.session.programs.expression_reader import user_variable_name
from binlane.session.programs.values import (
    UNKNOWN,
    UNKNOWN_TEXT,
    Temporal,
    Value,
    number_text,
)
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts, UserVariableUse


def event_info(name: str, value: Value, server: Server) -> str:
    """What SHOW BINLOG EVENTS prints of a `User var` event.

    Args:
        name: Without `@`.
        value: Before the statement that reads it.
        server: Whose notation is followed.
    """
    if value is None:
        shown = "NULL"
    elif value is UNKNOWN:
        shown = UNKNOWN_TEXT
    elif isinstance(value, int | float | Decimal):
        shown = number_text(value)
    elif isinstance(value, Temporal):
        shown = f"'{value.text}'"
    else:
        digits = value.encoded.hex().upper()
        bytes_text = f"X'{digits}'" if server.is_mariadb else f"0x{digits}"
        shown = f"_{value.charset} {bytes_text} COLLATE {value.collation}"
    return f"@{quote(name)}={shown}"


def names_read(facts: StatementFacts, statement: str) -> list[str]:
    """The user variables that a statement reads, in the order in which the servers look at them.

    UPDATE looks at its WHERE clause first. A name is given as the statement writes it first.
    """
    uses = [use for use in facts.user_variables if use.is_read]
    if facts.effects.kind is StatementKind.LOAD_DATA:
        # Those that its columns are read into are set before they are read.
        assigned = {use.name for use in facts.user_variables if use.is_assigned}
        uses = [use for use in uses if use.name not in assigned]
    if facts.effects.kind is StatementKind.UPDATE and facts.has_where:
        where = statement.upper().find(" WHERE ")
        uses.sort(key=lambda use: use.offset < where)
    found: dict[str, str] = {}
    for use in uses:
        found.setdefault(use.name, _written(use, statement))
    return list(found)


def _written(use: UserVariableUse, statement: str) -> str:
    return user_variable_name(statement[use.offset : use.offset + use.length])
