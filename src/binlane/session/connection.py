"""The character set and collation of a session's literals, and what SET does to them."""

from __future__ import annotations

from typing import Final

from binlane.session.programs.types import default_collation
from binlane.session.state import SessionState
from binlane.sql.facts import Assignment

CONNECTION_NAMES: Final = frozenset(
    ("names", "character set", "character_set_connection", "collation_connection")
)
_COLLATE: Final = " collate "
_SERVER_CHARSET: Final = {True: "latin1", False: "utf8mb4"}
"""By whether the server is MariaDB: what DEFAULT stands for."""


def connection_after(state: SessionState, assignment: Assignment) -> tuple[str, str]:
    """Character set and collation behind an assignment of one of `CONNECTION_NAMES`."""
    is_mariadb = state.server.is_mariadb
    value = assignment.value.strip().lower()
    charset, _, collation = (
        part.strip("'\"` ") for part in value.replace("\n", " ").partition(_COLLATE)
    )
    if charset == "default":
        charset = _SERVER_CHARSET[is_mariadb]
    elif assignment.name == "character set":
        charset = state.objects.charset_of_database(state.database) or _SERVER_CHARSET[is_mariadb]
    elif assignment.name == "collation_connection":
        charset, collation = charset.partition("_")[0], charset
    if charset == "utf8":
        charset = "utf8mb3"
    if charset == "binary":
        return charset, "binary"
    return charset, collation or default_collation(charset, is_mariadb=is_mariadb)
