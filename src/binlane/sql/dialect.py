"""Whose SQL a text is, and how its session reads it: what every reader of text takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

_ANSI_QUOTES: Final = 0x4
_PIPES_AS_CONCAT: Final = 0x2
_IGNORE_SPACE: Final = 0x8
_NO_BACKSLASH_ESCAPES: Final = 0x100000
_HIGH_NOT_PRECEDENCE: Final = 0x20000000
_ORACLE: Final = 0x200


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a text is to be read.

    Attributes:
        flavor: `mariadb` or `mysql`, whose grammar alone holds; empty for what either of them
            takes, as for a log whose server nobody has named.
        version: Three numbers; those of executable comments and of the grammar. Of no flavor:
            unused.
        ansi_quotes: sql_mode ANSI_QUOTES: `"a"` is a name.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES.
        is_oracle: sql_mode ORACLE of MariaDB.
        pipes_as_concat: sql_mode PIPES_AS_CONCAT: `||` joins strings.
        ignore_space: sql_mode IGNORE_SPACE: a blank may stand before a call's parenthesis.
        high_not_precedence: sql_mode HIGH_NOT_PRECEDENCE: NOT binds as `!` does.
        lower_case_names: `lower_case_table_names` is not 0: names of databases, tables and their
            aliases are read in lower case.
    """

    flavor: str = ""
    version: tuple[int, int, int] = (99, 0, 0)
    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    is_oracle: bool = False
    pipes_as_concat: bool = False
    ignore_space: bool = False
    high_not_precedence: bool = False
    lower_case_names: bool = False

    @property
    def may_be_mariadb(self) -> bool:
        """MariaDB's grammar holds, alone or beside MySQL's."""
        return self.flavor != "mysql"

    @property
    def may_be_mysql(self) -> bool:
        """MySQL's grammar holds, alone or beside MariaDB's."""
        return self.flavor != "mariadb"

    def has_mariadb(self, *version: int) -> bool:
        """Whether what MariaDB understands from a version on may stand here."""
        return not self.flavor or (self.flavor == "mariadb" and self.version >= version)

    def has_mysql(self, *version: int) -> bool:
        """Whether what MySQL understands from a version on may stand here."""
        return not self.flavor or (self.flavor == "mysql" and self.version >= version)

    def with_mode(self, sql_mode: int) -> Self:
        """The same server's, in a session of another sql_mode.

        Args:
            sql_mode: Its bits, as a QUERY event has them.
        """
        return replace(
            self,
            ansi_quotes=bool(sql_mode & _ANSI_QUOTES),
            no_backslash_escapes=bool(sql_mode & _NO_BACKSLASH_ESCAPES),
            pipes_as_concat=bool(sql_mode & _PIPES_AS_CONCAT),
            ignore_space=bool(sql_mode & _IGNORE_SPACE),
            high_not_precedence=bool(sql_mode & _HIGH_NOT_PRECEDENCE),
            is_oracle=self.may_be_mariadb and bool(sql_mode & _ORACLE),
        )


ANY: Final = Dialect()
"""That of a server nobody has named, in a session without modes."""
