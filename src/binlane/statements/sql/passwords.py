"""Passwords in statements: where they stand in clear, and the same statements with hashes.

MariaDB logs statements on accounts as they were typed, MySQL with hashes; both log the definitions of
routines and events as they were typed. A statement with a hash makes the same account as the one
with the password. What is looked for are a few tokens in a row, wherever they stand: in a body, behind
SET STATEMENT, in the text of PREPARE.

Source: MariaDB 11.8, sql/sql_yacc.yy: user, grant_user, opt_auth_str; MySQL 9.7, sql_yacc.yy:
identification; what both log and keep, measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from binlane.log.codec.password_hashes import hash_of
from binlane.log.codec.types import Flavor
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import (
    NAME_KINDS,
    SqlSyntaxError,
    Token,
    TokenKind,
    string_value,
    tokenise,
)

_SIGN: Final = re.compile("IDENTIFIED", re.IGNORECASE)
_QUOTES: Final = ("'", '"')
_OWNER_LENGTH: Final = 256
# Plugin of IDENTIFIED BY, unless the server was configured otherwise.
_DEFAULTS: Final = {
    Flavor.MARIADB: "mysql_native_password",
    Flavor.MYSQL: "caching_sha2_password",
}


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordReader:
    """Reads statements of one session.

    Attributes:
        flavor: Flavor of the server whose grammar holds.
        dialect: Dialect of the session's texts.
        encode: A text's bytes in the character set of the statement, which are what MariaDB
            hashes. Raises UnicodeError for what it lacks.
        salt: Gives a salt for the password behind a text, which says whose it is.
    """

    flavor: Flavor
    dialect: Dialect
    encode: Callable[[str], bytes]
    salt: Callable[[str], bytes]

    def with_hashes(self, text: str) -> str:
        """Give a statement with hashes in the place of its passwords.

        A password without a known hash stays: that of somebody else's plugin, or in a text that
        cannot be read.
        """
        if not _SIGN.search(text):
            return text
        try:
            tokens = list(tokenise(text, self.dialect))
        except SqlSyntaxError:
            return text
        parts: list[str] = []
        done = 0
        for index, token in enumerate(tokens):
            if token.kind is not TokenKind.STRING or token.text[0] not in _QUOTES:
                continue
            start = max(done, token.offset - _OWNER_LENGTH)
            edit = self._edit(tokens, index, text[start : token.offset])
            if edit is not None:
                parts += (text[done : edit.start], edit.text)
                done = edit.end
        return "".join((*parts, text[done:]))

    def _edit(self, tokens: Sequence[Token], index: int, owner: str) -> _Edit | None:
        """Give the replacement of a string, and of the words around it, if it is or has a password."""
        before, token = list(_words_before(tokens, index)), tokens[index]
        if (before[1], before[0]) == ("EXECUTE", "IMMEDIATE") or (
            (before[2], before[0]) == ("PREPARE", "FROM")
        ):
            inner = self.with_hashes(token.value)
            is_same = inner == token.value
            return None if is_same else _Edit(token.offset, token.end, self._quoted(inner))
        if self.flavor is Flavor.MARIADB:
            return self._edit_of_mariadb(tokens, index, before, owner)
        return self._edit_of_mysql(tokens, index, before, owner)

    def _edit_of_mariadb(
        self,
        tokens: Sequence[Token],
        index: int,
        before: Sequence[str],
        owner: str,
    ) -> _Edit | None:
        token = tokens[index]
        if before[:2] == ["BY", "IDENTIFIED"] and before[2] != "ROWS":  # LOAD XML
            found = self._hash(_DEFAULTS[self.flavor], token, owner)
            return None if found is None else _Edit(token.offset, token.end, f"PASSWORD '{found}'")
        # IDENTIFIED VIA plugin USING PASSWORD('…') OR plugin AS PASSWORD('…')
        is_call = before[:2] == ["(", "PASSWORD"] and before[2] in {"USING", "AS"}
        if not is_call or before[4] not in {"VIA", "WITH", "OR"} or tokens[index + 1].text != ")":
            return None
        found = self._hash(_name(tokens[index - 4]), token, owner)
        start, end = tokens[index - 2].offset, tokens[index + 1].end
        return None if found is None else _Edit(start, end, f"'{found}'")

    def _edit_of_mysql(
        self,
        tokens: Sequence[Token],
        index: int,
        before: Sequence[str],
        owner: str,
    ) -> _Edit | None:
        token = tokens[index]
        # To name the old password is possible only beside the new one.
        if before[0] != "BY" or tokens[index + 1].word == "REPLACE":
            return None
        if before[1] == "IDENTIFIED" and before[2] != "ROWS":
            plugin = _DEFAULTS[self.flavor]
            found = self._hash(plugin, token, owner)
            new = f"WITH '{plugin}' AS '{found}'"
        elif before[2:4] == ["WITH", "IDENTIFIED"]:
            found = self._hash(_name(tokens[index - 2]), token, owner)
            new = f"AS '{found}'"
        else:
            return None
        return None if found is None else _Edit(tokens[index - 1].offset, token.end, new)

    def _hash(self, plugin: str, token: Token, owner: str) -> str | None:
        """The hash of a string; None if there is none, or nothing to hide."""
        if not token.value:
            return None
        try:
            if self.flavor is Flavor.MARIADB:
                # The bytes count, not what their character set makes of them.
                password = self.encode(string_value(token.text, self.dialect._replace(charset="")))
            else:
                password = token.value.encode()
        except UnicodeError:
            return None
        return hash_of(plugin, password, self.salt(owner))

    def _quoted(self, text: str) -> str:
        """A text as a literal."""
        if not self.dialect.no_backslash_escapes:
            text = text.replace("\\", "\\\\")
        return "'" + text.replace("'", "''") + "'"


_BEFORE: Final = 5


def _words_before(tokens: Sequence[Token], index: int) -> Iterator[str]:
    """Yield the words before a token, the nearest first: words in capitals, signs, else nothing."""
    for place in range(index - 1, index - 1 - _BEFORE, -1):
        token = tokens[place] if place >= 0 else None
        if token is None:
            yield ""
        else:
            yield token.text if token.kind is TokenKind.OPERATOR else token.word


def _name(token: Token) -> str:
    is_name = token.kind in NAME_KINDS or token.kind is TokenKind.STRING
    return token.value if is_name else ""
