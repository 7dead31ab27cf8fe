"""Errors and other conditions of a program, and which handlers are for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.session.report import Refusal

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
        is_certain: No condition that could not be known leads there.
    """

    errno: int
    sqlstate: str
    message: str
    refusal: Refusal | None = None
    is_certain: bool = True

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
            is_stated=not self.is_certain,
        )


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
