"""Views, routines, triggers and events as the servers write them anew for the log.

Source: MariaDB 10.11 sql/sql_view.cc `mysql_create_view`, sql/sp.cc `show_create_sp`,
sql/sql_trigger.cc and sql/events.cc; MySQL 9.7 alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.names import quote
from binlane.session.state import Command, SessionState
from binlane.sql.collations import default_collation
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.effects import StatementKind
from binlane.sql.show_create import column_type
from binlane.sql.table_definitions import create_table
from binlane.sql.tokens import SqlSyntaxError, TokenKind, tokenise

_DEFINER: Final = "`root`@`localhost`"
_OBJECTS: Final = ("VIEW", "TRIGGER", "EVENT", "PROCEDURE", "FUNCTION", "PACKAGE", "AGGREGATE")


def definition_text(state: SessionState, command: Command) -> str:
    """The text of a CREATE of a program or view, or of ALTER VIEW, as it is logged."""
    rewrite = _REWRITERS.get(command.facts.effects.kind)
    if rewrite is None:
        return command.text
    try:
        return rewrite(_Reader(state, command))
    except (Stopped, SqlSyntaxError):
        # What is beyond this grammar was found good by the analysis: its own text is the best.
        return command.text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What stands before the kind of object.

    Attributes:
        verb: CREATE, CREATE OR REPLACE or ALTER.
        algorithm: Of a view.
        definer: Quoted.
        security: DEFINER or INVOKER.
        offset: Where the word of the kind stands.
    """

    verb: str
    algorithm: str
    definer: str
    security: str
    offset: int


class _Reader:
    """Reads a definition."""

    def __init__(self, state: SessionState, command: Command) -> None:
        self.state = state
        self.statement = command.text
        self.database = command.database
        self.quoting = state.variables.quoting
        tokens = list(tokenise(self.statement, **self.quoting))
        self.end = next(
            (token.end for token in reversed(tokens) if token.kind is not TokenKind.END), 0
        )
        self.cursor = Cursor(tokens)

    @property
    def flavor(self) -> Flavor:
        return Flavor(self.state.server.flavor)

    def head(self) -> _Head:
        """CREATE [OR REPLACE] [ALGORITHM = …] [DEFINER = …] [SQL SECURITY …]."""
        cursor = self.cursor
        verb = cursor.accept_any(("CREATE", "ALTER"))
        if cursor.accept("OR", "REPLACE"):
            verb = "CREATE OR REPLACE"
        algorithm, definer, security = "UNDEFINED", _DEFINER, "DEFINER"
        while cursor.word not in _OBJECTS:
            if cursor.accept("ALGORITHM"):
                cursor.expect_operator("=")
                algorithm = cursor.advance().word
            elif cursor.accept("DEFINER"):
                cursor.expect_operator("=")
                definer = self._account()
            elif cursor.accept("SQL", "SECURITY"):
                security = cursor.advance().word
            else:
                raise cursor.stop("the kind of object")
        return _Head(
            verb=verb,
            algorithm=algorithm,
            definer=definer,
            security=security,
            offset=cursor.token.offset,
        )

    def _account(self) -> str:
        cursor = self.cursor
        first = cursor.advance()
        if first.word == "CURRENT_USER":
            if cursor.accept_operator("("):
                cursor.expect_operator(")")
            return _DEFINER
        if cursor.token.kind is TokenKind.USER_VARIABLE:
            host = cursor.advance().text[1:].strip("`'\"")
            return f"{quote(first.value)}@{quote(host)}"
        if cursor.accept_operator("@"):
            return f"{quote(first.value)}@{quote(cursor.advance().value)}"
        return f"{quote(first.value)}@`%`"

    def condition(self) -> str:
        """IF NOT EXISTS, as it is written."""
        return "IF NOT EXISTS " if self.cursor.accept("IF", "NOT", "EXISTS") else ""

    def rest(self, offset: int) -> str:
        """The text from an offset; MySQL leaves out a comment at the end."""
        end = len(self.statement) if self.flavor is Flavor.MARIADB else self.end
        return self.statement[offset:end].strip()


def _view(reader: _Reader) -> str:
    head = reader.head()
    cursor = reader.cursor
    cursor.expect("VIEW")
    condition = reader.condition()
    database, name = cursor.qualified_name()
    shown = quote(name)
    if database is not None and database != reader.database:
        shown = f"{quote(database)}.{shown}"
    if cursor.accept_operator("("):
        columns = [quote(cursor.identifier())]
        while cursor.accept_operator(","):
            columns.append(quote(cursor.identifier()))
        cursor.expect_operator(")")
        shown += f"({', '.join(columns)})"
    cursor.expect("AS")
    return (
        f"{head.verb} ALGORITHM={head.algorithm} DEFINER={head.definer} "
        f"SQL SECURITY {head.security} VIEW {condition}{shown} AS "
        f"{reader.rest(cursor.token.offset)}"
    )


def _whole(reader: _Reader) -> str:
    """A trigger or event: only what stands before the word is written anew."""
    head = reader.head()
    return f"{head.verb} DEFINER={head.definer} {reader.rest(head.offset)}"


def _routine(reader: _Reader) -> str:
    head = reader.head()
    cursor = reader.cursor
    aggregate = "AGGREGATE " if cursor.accept("AGGREGATE") else ""
    kind = cursor.accept_any(("PROCEDURE", "FUNCTION"))
    if not kind:
        return f"{head.verb} DEFINER={head.definer} {reader.rest(head.offset)}"
    condition = reader.condition()
    database, name = cursor.qualified_name()
    shown = quote(name) if database is None else f"{quote(database)}.{quote(name)}"
    opening = cursor.token
    cursor.group()
    closing = cursor.at(cursor.index - 1)
    parameters = reader.statement[opening.end : closing.offset]
    returns = ""
    if kind == "FUNCTION":
        returns = f" RETURNS {_returned_type(reader)}"
    traits = _characteristics(reader)
    return (
        f"{head.verb} DEFINER={head.definer} {aggregate}{kind} {condition}{shown}"
        f"({parameters}){returns}\n{traits}{reader.rest(cursor.token.offset)}"
    )


def _returned_type(reader: _Reader) -> str:
    """The type of a function, as the servers print that of a column."""
    cursor = reader.cursor
    if not cursor.accept("RETURNS"):
        cursor.expect("RETURN")
    start = cursor.token.offset
    end = cursor.token.end
    cursor.advance()
    while not cursor.is_at_end:
        if cursor.token.text == "(":
            cursor.group()
        elif cursor.word in _TYPE_WORDS:
            names_charset = cursor.word in ("CHARSET", "SET", "COLLATE")
            cursor.advance()
            if names_charset:
                cursor.advance()
        else:
            break
        end = cursor.at(cursor.index - 1).end
    text = reader.statement[start:end]
    charset = reader.state.objects.charset_of_database(reader.database)
    server_charset = charset or ("latin1" if reader.flavor is Flavor.MARIADB else "utf8mb4")
    column = create_table(
        f"CREATE TABLE t (c {text})", charset=server_charset, quoting=reader.quoting
    ).columns[0]
    shown = column_type(column, reader.flavor)
    if column.charset is None or column.charset == "binary":
        return shown
    shown += f" CHARSET {column.charset}"
    if reader.flavor is Flavor.MARIADB:
        collation = column.collation or default_collation(column.charset, reader.flavor)
        shown += f" COLLATE {collation}"
    return shown


_TYPE_WORDS: Final = frozenset(
    ("UNSIGNED", "SIGNED", "ZEROFILL", "PRECISION", "VARYING", "BINARY", "ASCII", "UNICODE")
) | {"CHARSET", "CHARACTER", "SET", "COLLATE"}


_TRAITS: Final = (
    (("NOT", "DETERMINISTIC"), 1, ""),
    (("DETERMINISTIC",), 1, "    DETERMINISTIC\n"),
    (("CONTAINS", "SQL"), 0, ""),
    (("NO", "SQL"), 0, "    NO SQL\n"),
    (("READS", "SQL", "DATA"), 0, "    READS SQL DATA\n"),
    (("MODIFIES", "SQL", "DATA"), 0, "    MODIFIES SQL DATA\n"),
    (("SQL", "SECURITY", "DEFINER"), 2, ""),
    (("SQL", "SECURITY", "INVOKER"), 2, "    SQL SECURITY INVOKER\n"),
    (("LANGUAGE", "SQL"), 3, ""),
    (("LANGUAGE", "JAVASCRIPT"), 3, "    LANGUAGE JAVASCRIPT\n"),
)
"""The words of a characteristic, its place among those that are printed, and how it is printed."""


def _characteristics(reader: _Reader) -> str:
    """COMMENT, SQL SECURITY and their like, in the order in which the servers print them."""
    cursor = reader.cursor
    printed = [""] * 5
    while True:
        if cursor.accept("COMMENT"):
            text = cursor.advance().value.replace("\\", "\\\\").replace("'", "''")
            printed[4] = f"    COMMENT '{text}'\n" if text else ""
            continue
        for words, place, text in _TRAITS:
            if cursor.accept(*words):
                printed[place] = text
                break
        else:
            return "".join(printed)


_REWRITERS: Final[Mapping[StatementKind, Callable[[_Reader], str]]] = MappingProxyType(
    {
        StatementKind.CREATE_VIEW: _view,
        StatementKind.ALTER_VIEW: _view,
        StatementKind.CREATE_TRIGGER: _whole,
        StatementKind.CREATE_EVENT: _whole,
        StatementKind.CREATE_ROUTINE: _routine,
        StatementKind.CREATE_PACKAGE: _routine,
    }
)
