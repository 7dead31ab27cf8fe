"""Errors and other conditions of a program, and which handlers are for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.names import TableName
from binlane.policy.refusals import LoggingError, Refusal

_SYMBOLS: Final = {
    1326: "ER_SP_CURSOR_NOT_OPEN",
    1329: "ER_SP_FETCH_NO_DATA",
    1339: "ER_SP_CASE_NOT_FOUND",
    1424: "ER_SP_NO_RECURSION",
    1456: "ER_SP_RECURSION_LIMIT",
}


@dataclass(frozen=True, slots=True)
class Raised:
    """A condition that a statement raised.

    Attributes:
        errno: The server's number.
        sqlstate: Five characters.
        message: The server's text.
        refusal: Of the session that refused the statement; None if the program raised it itself.
    """

    errno: int
    sqlstate: str
    message: str
    refusal: Refusal | None = None

    @classmethod
    def by(cls, refusal: Refusal) -> Raised:
        """The condition that a refused statement raises."""
        return cls(refusal.errno, refusal.sqlstate, refusal.message, refusal)

    @property
    def as_refusal(self) -> Refusal:
        """What the client gets if no handler is for it."""
        if self.refusal is not None:
            return self.refusal
        return Refusal(
            errno=self.errno,
            sqlstate=self.sqlstate,
            symbol=_SYMBOLS.get(self.errno, "ER_SIGNAL_EXCEPTION"),
            message=self.message,
            is_own=True,
        )


NO_DATA: Final = Raised(1329, "02000", "No data - zero rows fetched, selected, or processed")


def handles(condition: str, raised: Raised) -> int:
    """How exactly a handler's condition names what was raised; 0 if it does not.

    Args:
        condition: `NOT FOUND`, `SQLEXCEPTION`, `SQLWARNING`, `SQLSTATE 23000` or a number.
        raised: What was raised.
    """
    words = condition.upper().replace("'", " ").replace('"', " ").split()
    if not words:
        return 0
    if words[0].isdigit():
        return 3 if int(words[0]) == raised.errno else 0
    if words[0] == "SQLSTATE":
        return 2 if words[-1] == raised.sqlstate else 0
    named = {"SQLWARNING": "01", "NOT": "02"}.get(words[0])
    if named is not None:
        return 1 if raised.sqlstate.startswith(named) else 0
    is_exception = raised.sqlstate[:2] not in {"00", "01", "02"}
    return 1 if words[0] == "SQLEXCEPTION" and is_exception else 0


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
