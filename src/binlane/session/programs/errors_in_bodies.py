"""Errors that end the statements of functions and triggers."""

from __future__ import annotations

from binlane.names import TableName
from binlane.policy.refusals import LoggingError
from binlane.session.programs.conditions import Raised
from binlane.session.report import Refusal


def raised_by(error: LoggingError) -> Raised:
    """What a statement raises that is refused."""
    return Raised.by(
        Refusal(
            errno=error.errno,
            sqlstate=error.sqlstate,
            symbol=error.symbol,
            message=error.message,
        )
    )


def table_in_use(name: TableName, *, is_mariadb: bool) -> Raised:
    """1442."""
    message = (
        f"Can't update table '{name.table}' in stored function/trigger because it is already used "
        "by statement which invoked this stored function/trigger"
    )
    return Raised.by(
        Refusal(
            errno=1442,
            sqlstate="HY000",
            symbol="ER_CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG",
            message=message if is_mariadb else f"{message}.",
        )
    )
