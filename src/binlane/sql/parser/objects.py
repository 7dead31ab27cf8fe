"""CREATE, ALTER, DROP and RENAME: which kind of object, and those that are no tables or accounts.

Bodies of programs are read by whom the caller names, who reads statements of any kind.

Source: MySQL 9.7, sql/sql_yacc.yy: create, view_or_trigger_or_sp_or_event; MariaDB 11.8: create.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from binlane.sql.parser import accounts
from binlane.sql.parser.alterations import alter_table
from binlane.sql.parser.columns import number, string
from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.expressions import UNITS, read_expression
from binlane.sql.parser.queries import read_names, read_object_name, read_query
from binlane.sql.parser.tables import (
    Head,
    create_index,
    create_table,
    drop_index,
    drop_tables,
    rename_tables,
    sequence,
    size,
    truncate_table,
)
from binlane.sql.parser.types import accept_charset, charset_name, collation_name, read_type
from binlane.sql.tokens import TokenKind
from binlane.sql.tree.definitions import (
    Account,
    AccountStatement,
    CreateRoutine,
    CreateTrigger,
    CreateView,
    Database,
    DropTables,
    Event,
    ObjectStatement,
    RenameTables,
    RoutineParameter,
    TableOption,
)
from binlane.sql.tree.expressions import DataType, Expression, Literal, Node, ObjectName

BodyReader = Callable[[Cursor], Node]
"""Reads one statement of a program, simple or compound."""

_EVENTS: Final = ("INSERT", "UPDATE", "DELETE")
_INDEX_KINDS: Final = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
_DATABASE: Final = ("DATABASE", "SCHEMA")


@dataclass(slots=True)
class _Head(Head):
    """What stands between CREATE or ALTER and a view or program."""

    algorithm: str = ""
    definer: Account | None = None
    security: str = ""
    is_aggregate: bool = False


def _read_head(cursor: Cursor, head: _Head) -> None:
    """DEFINER, ALGORITHM, SQL SECURITY, AGGREGATE in the order that the servers take."""
    if cursor.accept("ALGORITHM"):
        cursor.expect_operator("=")
        head.algorithm = cursor.accept_any(("MERGE", "TEMPTABLE", "UNDEFINED"))
        if not head.algorithm:
            raise cursor.stop("MERGE, TEMPTABLE or UNDEFINED")
    if cursor.accept("DEFINER"):
        cursor.expect_operator("=")
        head.definer = accounts.read_account(cursor)
    if cursor.accept("SQL", "SECURITY"):
        head.security = _security(cursor)
    head.is_aggregate = cursor.accept("AGGREGATE")


def _security(cursor: Cursor) -> str:
    word = cursor.accept_any(("DEFINER", "INVOKER"))
    if not word:
        raise cursor.stop("DEFINER or INVOKER")
    return word


# CREATE ---------------------------------------------------------------------------------------


def read_create(cursor: Cursor, body: BodyReader) -> Node:  # noqa: C901 - one branch a kind
    """Read CREATE of anything.

    Args:
        cursor: At CREATE.
        body: Reads the bodies of programs.

    Raises:
        Stopped: Where the server would not understand it.
    """
    head = _Head(cursor.start)
    cursor.expect("CREATE")
    if cursor.accept("OR", "REPLACE"):
        head.is_or_replace = True
    word = cursor.word
    dialect = cursor.dialect
    mariadb = dialect.may_be_mariadb
    is_view = word in {"VIEW", "ALGORITHM", "DEFINER", "SQL"}
    is_view |= _is_other_view(cursor) or (word, cursor.word_ahead(1)) == ("SPATIAL", "REFERENCE")
    if head.is_or_replace and not mariadb and not is_view:
        raise cursor.stop("a kind of object")
    if word == "EXTERNAL" and dialect.has_mysql(9):
        cursor.expect("EXTERNAL", "TABLE")
        return create_table(cursor, head)
    if word == "TEMPORARY":
        cursor.advance()
        head.is_temporary = True
        if cursor.word == "SEQUENCE" and mariadb:
            cursor.advance()
            return sequence(cursor, head, "CREATE SEQUENCE")
        cursor.expect("TABLE")
        return create_table(cursor, head)
    if word == "SPATIAL" and cursor.word_ahead(1) == "REFERENCE" and dialect.has_mysql(8):
        return _reference_system(cursor, head)
    if word in _INDEX_KINDS and (word != "VECTOR" or dialect.has_mariadb(11, 7)):
        cursor.advance()
        cursor.expect("INDEX")
        return create_index(cursor, head, word)
    if _is_other_view(cursor):
        return _other_view(cursor, head)
    if word == "UNDO" and dialect.has_mysql(8):
        cursor.advance()
        return _tablespace(cursor, head, "CREATE")
    plain = _created(cursor, head)
    if plain is not None:
        return plain
    _read_head(cursor, head)
    return _program(cursor, head, body, "CREATE")


def _created(cursor: Cursor, head: _Head) -> Node | None:
    """What stands directly behind CREATE [OR REPLACE]."""
    dialect = cursor.dialect
    mariadb, mysql = dialect.may_be_mariadb, dialect.may_be_mysql
    match cursor.word:
        case "TABLE":
            cursor.advance()
            return create_table(cursor, head)
        case "INDEX":
            cursor.advance()
            return create_index(cursor, head, "")
        case "SEQUENCE" if mariadb:
            cursor.advance()
            return sequence(cursor, head, "CREATE SEQUENCE")
        case "DATABASE" | "SCHEMA":
            cursor.advance()
            return _create_database(cursor, head)
        case "USER" | "ROLE" as word if word == "USER" or mariadb or dialect.has_mysql(8):
            cursor.advance()
            return accounts.create_accounts(
                cursor, head.at, f"CREATE {word}", is_or_replace=head.is_or_replace
            )
        case "SERVER":
            cursor.advance()
            return _server(cursor, head, "CREATE SERVER")
        case "TABLESPACE" | "LOGFILE" if mysql:
            return _tablespace(cursor, head, "CREATE")
        case "RESOURCE" if dialect.has_mysql(8):
            return _resource_group(cursor, head, "CREATE")
        case "LIBRARY" if dialect.has_mysql(9, 2):
            cursor.advance()
            return _library(cursor, head)
    return None


def _program(cursor: Cursor, head: _Head, body: BodyReader, verb: str) -> Node:
    """A view or program, at the word that says which."""
    dialect = cursor.dialect
    word = cursor.word
    if word == "VIEW":
        cursor.advance()
        return _view(cursor, head, f"{verb} VIEW")
    if head.algorithm or (head.security and word != "PACKAGE"):
        raise cursor.stop("VIEW")
    if word == "EVENT":
        cursor.advance()
        return _event(cursor, head, body, f"{verb} EVENT")
    if verb == "ALTER":
        raise cursor.stop("a kind of object")
    if word == "TRIGGER":
        cursor.advance()
        return _trigger(cursor, head, body)
    if word == "PROCEDURE":
        cursor.advance()
        return _procedure(cursor, head, body)
    if word == "FUNCTION":
        cursor.advance()
        return _function(cursor, head, body)
    if word == "PACKAGE" and dialect.may_be_mariadb:
        return _package(cursor, head, "CREATE PACKAGE")
    raise cursor.stop("a kind of object")


# Databases ------------------------------------------------------------------------------------


def _create_database(cursor: Cursor, head: Head) -> Database:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _database_name(cursor)
    options = _database_options(cursor)
    return Database(
        head.at,
        cursor.end,
        "CREATE DATABASE",
        name,
        is_or_replace=head.is_or_replace,
        if_exists=if_not_exists,
        options=options,
    )


def _alter_database(cursor: Cursor, head: Head) -> Database:
    name = None
    if not _is_database_option(cursor):
        name = _database_name(cursor)
        is_old = cursor.dialect.may_be_mariadb or not cursor.dialect.has_mysql(8)
        if is_old and cursor.accept("UPGRADE", "DATA", "DIRECTORY", "NAME"):
            return Database(head.at, cursor.end, "ALTER DATABASE", name)
    options = _database_options(cursor)
    if not options:
        raise cursor.stop("an option")
    return Database(head.at, cursor.end, "ALTER DATABASE", name, options=options)


def _is_database_option(cursor: Cursor) -> bool:
    word, following = cursor.word, cursor.ahead(1)
    if word in {"CHARACTER", "CHAR"}:
        return following.word == "SET"
    if word in {"CHARSET", "COLLATE", "DEFAULT"}:
        return True
    if word == "READ":
        return following.word == "ONLY"
    return word in {"COMMENT", "ENCRYPTION"} and (
        following.text == "=" or following.kind is TokenKind.STRING
    )


def _database_options(cursor: Cursor) -> tuple[TableOption, ...]:
    found: list[TableOption] = []
    dialect = cursor.dialect
    while True:
        start = cursor.start
        has_default = cursor.accept("DEFAULT")
        if accept_charset(cursor):
            cursor.accept_operator("=")
            if cursor.word == "DEFAULT" and not dialect.may_be_mariadb:
                raise cursor.stop("a character set")
            name, value = "CHARACTER SET", charset_name(cursor)
        elif cursor.accept("COLLATE"):
            cursor.accept_operator("=")
            name, value = "COLLATE", collation_name(cursor)
        elif dialect.has_mysql(8) and cursor.accept("ENCRYPTION"):
            cursor.accept_operator("=")
            string(cursor)
            name, value = "ENCRYPTION", cursor.ahead(-1).value
        elif not has_default and dialect.has_mariadb(10, 5) and cursor.accept("COMMENT"):
            cursor.accept_operator("=")
            string(cursor)
            name, value = "COMMENT", cursor.ahead(-1).value
        elif not has_default and dialect.has_mysql(8, 0, 22) and cursor.accept("READ", "ONLY"):
            cursor.accept_operator("=")
            if cursor.word != "DEFAULT" and cursor.token.text not in {"0", "1"}:
                raise cursor.stop("0, 1 or DEFAULT")
            name, value = "READ ONLY", cursor.advance().text
        elif has_default:
            raise cursor.stop("an option")
        else:
            return tuple(found)
        found.append(TableOption(start, cursor.end, name, value))


def _database_name(cursor: Cursor) -> ObjectName:
    start = cursor.start
    name = cursor.object_identifier()
    return ObjectName(start, cursor.end, None, name)


def _single_name(cursor: Cursor) -> ObjectName:
    start = cursor.start
    name = cursor.identifier()
    return ObjectName(start, cursor.end, None, name)


# Views ----------------------------------------------------------------------------------------


def _view(cursor: Cursor, head: _Head, verb: str, kind: str = "") -> CreateView:
    dialect = cursor.dialect
    may_exist = dialect.may_be_mariadb or dialect.has_mysql(9, 1)
    may_exist &= verb == "CREATE VIEW"
    may_exist &= dialect.may_be_mariadb or not head.is_or_replace
    if_not_exists = may_exist and cursor.accept("IF", "NOT", "EXISTS")
    name = read_object_name(cursor)
    columns = read_names(cursor) if cursor.word == "(" else ()
    cursor.expect("AS")
    query_at = cursor.start
    query = read_query(cursor)
    check_option = ""
    if cursor.accept("WITH"):
        check_option = cursor.accept_any(("CASCADED", "LOCAL")) or "CASCADED"
        cursor.expect("CHECK", "OPTION")
    return CreateView(
        head.at,
        cursor.end,
        verb,
        name,
        query,
        query_at=query_at,
        is_or_replace=head.is_or_replace,
        if_not_exists=if_not_exists,
        algorithm=head.algorithm,
        definer=head.definer,
        security=head.security,
        columns=columns,
        check_option=check_option,
        kind=kind,
    )


def _is_other_view(cursor: Cursor) -> bool:
    """Whether MySQL's MATERIALIZED or JSON DUALITY VIEW comes next."""
    if not cursor.dialect.has_mysql(9, 4):
        return False
    return cursor.word == "MATERIALIZED" or (
        cursor.word == "JSON" and cursor.word_ahead(1) in {"DUALITY", "RELATIONAL"}
    )


def _other_view(cursor: Cursor, head: _Head) -> CreateView:
    kind = "MATERIALIZED"
    if not cursor.accept("MATERIALIZED"):
        cursor.expect("JSON")
        cursor.accept("RELATIONAL")
        cursor.expect("DUALITY")
        kind = "JSON DUALITY"
    cursor.expect("VIEW")
    return _view(cursor, head, "CREATE VIEW", kind)


# Triggers and events --------------------------------------------------------------------------


def _trigger(cursor: Cursor, head: _Head, body: BodyReader) -> CreateTrigger:
    dialect = cursor.dialect
    may_exist = dialect.may_be_mariadb or dialect.has_mysql(8, 0, 29)
    if_not_exists = may_exist and cursor.accept("IF", "NOT", "EXISTS")
    name = read_object_name(cursor)
    time = cursor.accept_any(("BEFORE", "AFTER"))
    if not time:
        raise cursor.stop("BEFORE or AFTER")
    events: list[str] = []
    columns: list[str] = []
    while True:
        event = cursor.accept_any(_EVENTS)
        if not event:
            raise cursor.stop("INSERT, UPDATE or DELETE")
        events.append(event)
        if event == "UPDATE" and dialect.has_mariadb(11, 8) and cursor.accept("OF"):
            columns.append(cursor.identifier())
            while cursor.accept_operator(","):
                columns.append(cursor.identifier())
        if not (dialect.has_mariadb(12) and cursor.accept("OR")):
            break
    cursor.expect("ON")
    table = read_object_name(cursor)
    cursor.expect("FOR", "EACH", "ROW")
    order, order_at = None, cursor.start
    if word := cursor.accept_any(("FOLLOWS", "PRECEDES")):
        order = (word, cursor.identifier())
    body_at = cursor.start
    statement = body(cursor)
    return CreateTrigger(
        head.at,
        cursor.end,
        name,
        table,
        time,
        tuple(events),
        statement,
        body_at,
        is_or_replace=head.is_or_replace,
        if_not_exists=if_not_exists,
        definer=head.definer,
        columns=tuple(columns),
        order=order,
        order_at=-1 if order is None else order_at,
    )


def _event(cursor: Cursor, head: _Head, body: BodyReader, verb: str) -> Event:  # noqa: C901, PLR0912 - one branch a clause
    is_new = verb == "CREATE EVENT"
    if_exists = is_new and cursor.accept("IF", "NOT", "EXISTS")
    found = Event(
        head.at,
        -1,
        verb,
        read_object_name(cursor),
        is_or_replace=head.is_or_replace,
        if_exists=if_exists,
        definer=head.definer,
    )
    said: set[str] = set()
    if is_new:
        cursor.expect("ON", "SCHEDULE")
        found.schedule = _schedule(cursor)
        _completion(cursor, said)
    elif cursor.accept("ON", "SCHEDULE"):
        found.schedule = _schedule(cursor)
        said.add("ON SCHEDULE")
        _completion(cursor, said)
    else:
        _completion(cursor, said)
    if not is_new and cursor.accept("RENAME", "TO"):
        found.new_name = read_object_name(cursor)
    if cursor.accept("ENABLE"):
        said.add("ENABLE")
    elif cursor.accept("DISABLE"):
        said.add("DISABLE")
        if cursor.accept("ON"):
            if not cursor.accept_any(("SLAVE", "REPLICA")):
                raise cursor.stop("SLAVE or REPLICA")
            said.add("DISABLE ON SLAVE")
    if cursor.accept("COMMENT"):
        found.comment = string(cursor)
    if is_new:
        cursor.expect("DO")
        has_body = True
    else:
        has_body = cursor.accept("DO")
        if not (has_body or said or found.new_name or found.comment):
            raise cursor.stop("what is to change")
    if has_body:
        found.body_at = cursor.start
        found.body = body(cursor)
    found.words = frozenset(said)
    found.end = cursor.end
    return found


def _schedule(cursor: Cursor) -> tuple[Expression, ...]:
    if cursor.accept("AT"):
        return (read_expression(cursor),)
    cursor.expect("EVERY")
    found = [read_expression(cursor)]
    if not cursor.accept_any(UNITS):
        raise cursor.stop("a unit of time")
    if cursor.accept("STARTS"):
        found.append(read_expression(cursor))
    if cursor.accept("ENDS"):
        found.append(read_expression(cursor))
    return tuple(found)


def _completion(cursor: Cursor, words: set[str]) -> None:
    if cursor.accept("ON", "COMPLETION"):
        is_not = cursor.accept("NOT")
        cursor.expect("PRESERVE")
        words.add("ON COMPLETION NOT PRESERVE" if is_not else "ON COMPLETION PRESERVE")


# Routines -------------------------------------------------------------------------------------


def _procedure(cursor: Cursor, head: _Head, body: BodyReader) -> CreateRoutine:
    found = _routine(cursor, head, "CREATE PROCEDURE")
    if cursor.word == "(" or not cursor.dialect.is_oracle:
        _parameters(cursor, found)
    return _rest_of_routine(cursor, found, body)


def _function(cursor: Cursor, head: _Head, body: BodyReader) -> CreateRoutine:
    found = _routine(cursor, head, "CREATE FUNCTION")
    dialect = cursor.dialect
    if cursor.accept("RETURNS"):
        return _loadable(cursor, found)
    if head.is_aggregate and not dialect.may_be_mariadb:
        raise cursor.stop("RETURNS")
    if cursor.word == "(" or not dialect.is_oracle:
        _parameters(cursor, found)
    if not (dialect.is_oracle and cursor.accept("RETURN")):
        cursor.expect("RETURNS")
    may_refer = not dialect.flavor or dialect.is_oracle or dialect.has_mariadb(11, 8)
    found.returns = read_type(cursor, may_refer=may_refer)
    return _rest_of_routine(cursor, found, body)


def _routine(cursor: Cursor, head: _Head, verb: str) -> CreateRoutine:
    dialect = cursor.dialect
    may_exist = dialect.may_be_mariadb or dialect.has_mysql(8, 0, 29)
    if_not_exists = may_exist and cursor.accept("IF", "NOT", "EXISTS")
    return CreateRoutine(
        head.at,
        -1,
        verb,
        read_object_name(cursor),
        is_or_replace=head.is_or_replace,
        if_not_exists=if_not_exists,
        is_aggregate=head.is_aggregate,
        definer=head.definer,
    )


def _loadable(cursor: Cursor, found: CreateRoutine) -> CreateRoutine:
    start = cursor.start
    word = cursor.accept_any(("STRING", "REAL", "DECIMAL", "INTEGER", "INT"))
    if not word:
        raise cursor.stop("STRING, REAL, DECIMAL or INTEGER")
    found.returns = DataType(start, cursor.end, word)
    cursor.expect("SONAME")
    string(cursor)
    found.soname = cursor.ahead(-1).value
    found.end = cursor.end
    return found


def _parameters(cursor: Cursor, found: CreateRoutine) -> None:
    found.parameters_at = cursor.start
    cursor.expect_operator("(")
    parameters: list[RoutineParameter] = []
    if cursor.word != ")":
        while True:
            parameters.append(_parameter(cursor, found.verb))
            if not cursor.accept_operator(","):
                break
    cursor.expect_operator(")")
    found.parameters_end = cursor.end
    found.parameters = tuple(parameters)


def _parameter(cursor: Cursor, verb: str) -> RoutineParameter:
    start = cursor.start
    dialect = cursor.dialect
    may_have = verb == "CREATE PROCEDURE" or dialect.has_mariadb(10, 8)
    direction = ""
    if not dialect.is_oracle:
        direction = cursor.accept_any(("IN", "OUT", "INOUT")) if may_have else ""
    name = cursor.identifier()
    if dialect.is_oracle and (direction := cursor.accept_any(("IN", "OUT", "INOUT"))) == "IN":
        direction = "INOUT" if cursor.accept("OUT") else "IN"
    kind = read_type(cursor)
    default = None
    may_default = dialect.has_mariadb(11, 8)
    if may_default and (cursor.accept("DEFAULT") or cursor.accept_operator(":=")):
        default = read_expression(cursor)
    return RoutineParameter(start, cursor.end, name, kind, direction or "IN", default)


def _rest_of_routine(cursor: Cursor, found: CreateRoutine, body: BodyReader) -> CreateRoutine:
    """Characteristics and body."""
    said: list[str] = []
    language = ""
    while characteristic := _characteristic(cursor, found):
        said.append(characteristic)
        if characteristic.startswith("LANGUAGE "):
            language = characteristic.removeprefix("LANGUAGE ")
    found.characteristics = tuple(each for each in said if each != "COMMENT")
    dialect = cursor.dialect
    if language not in {"", "SQL"} and dialect.has_mysql(9):
        if cursor.accept("USING"):
            _libraries(cursor)
        found.body_at = cursor.start
        cursor.expect("AS")
        string(cursor)
        found.end = cursor.end
        return found
    found.body_at = cursor.start
    is_oracle = dialect.is_oracle or not dialect.flavor
    if is_oracle and cursor.word in {"AS", "IS"}:  # bodies of sql_mode ORACLE are not read
        while not cursor.is_at_end:
            cursor.advance()
    else:
        found.body = body(cursor)
    found.end = cursor.end
    return found


def _libraries(cursor: Cursor) -> None:
    """USING (library AS name, …) of MySQL's routines in another language."""
    cursor.expect_operator("(")
    while True:
        read_object_name(cursor)
        if cursor.accept("AS") or cursor.token.text not in {",", ")"}:
            cursor.identifier()
        if not cursor.accept_operator(","):
            break
    cursor.expect_operator(")")


def _characteristic(cursor: Cursor, found: CreateRoutine | None = None) -> str:
    """Read one characteristic of a routine, in capitals; empty if none comes next."""
    if cursor.accept("COMMENT"):
        comment: Literal = string(cursor)
        if found is not None:
            found.comment = comment
        return "COMMENT"
    if cursor.accept("LANGUAGE", "SQL"):
        return "LANGUAGE SQL"
    if cursor.accept("LANGUAGE"):
        if cursor.dialect.has_mysql(9):
            return f"LANGUAGE {cursor.identifier().upper()}"
        raise cursor.stop("SQL")
    if cursor.accept("SQL", "SECURITY"):
        return f"SQL SECURITY {_security(cursor)}"
    for words in _CHARACTERISTICS:
        if cursor.accept(*words):
            return " ".join(words)
    return ""


def _is_deterministic(cursor: Cursor) -> bool:
    """Whether DETERMINISTIC comes next, which ALTER cannot change."""
    return "DETERMINISTIC" in {cursor.word, cursor.word_ahead(1) if cursor.word == "NOT" else ""}


_CHARACTERISTICS: Final = (
    ("NOT", "DETERMINISTIC"),
    ("DETERMINISTIC",),
    ("CONTAINS", "SQL"),
    ("NO", "SQL"),
    ("READS", "SQL", "DATA"),
    ("MODIFIES", "SQL", "DATA"),
)


def _package(cursor: Cursor, head: _Head, verb: str) -> ObjectStatement:
    """MariaDB's package or its body: the routines in it are not looked at."""
    cursor.expect("PACKAGE")
    if cursor.accept("BODY"):
        verb += " BODY"
    is_new = verb.startswith("CREATE")
    words = ("IF", "NOT", "EXISTS") if is_new else ("IF", "EXISTS")
    if_exists = cursor.accept(*words)
    name = read_object_name(cursor)
    if is_new:
        while _characteristic(cursor):
            pass
        dialect = cursor.dialect
        if dialect.is_oracle:
            if not cursor.accept_any(("AS", "IS")):
                raise cursor.stop("AS or IS")
        elif dialect.flavor and (dialect.version < (11, 4) or cursor.word in {"AS", "IS"}):
            raise cursor.stop("what a package may hold")
        _skip(cursor)
    return _object(cursor, head, verb, name, if_exists=if_exists)


def _library(cursor: Cursor, head: _Head) -> ObjectStatement:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_object_name(cursor)
    if cursor.accept("COMMENT"):
        string(cursor)
    cursor.expect("LANGUAGE")
    cursor.identifier()
    if cursor.accept("COMMENT"):
        string(cursor)
    cursor.expect("AS")
    string(cursor)
    return _object(cursor, head, "CREATE LIBRARY", name, if_exists=if_not_exists)


def _object(
    cursor: Cursor,
    head: Head,
    verb: str,
    name: ObjectName | None,
    *,
    if_exists: bool = False,
    words: tuple[str, ...] = (),
) -> ObjectStatement:
    return ObjectStatement(
        head.at,
        cursor.end,
        verb,
        name,
        is_or_replace=head.is_or_replace,
        if_exists=if_exists,
        definer=head.definer if isinstance(head, _Head) else None,
        words=words,
    )


def _skip(cursor: Cursor) -> None:
    """Go behind all that is left of a statement."""
    while not cursor.is_at_end:
        cursor.advance()


# Servers and tablespaces ----------------------------------------------------------------------


_SERVER_OPTIONS: Final = ("HOST", "DATABASE", "USER", "PASSWORD", "SOCKET", "OWNER")


def _server(cursor: Cursor, head: Head, verb: str) -> ObjectStatement:
    mariadb = cursor.dialect.may_be_mariadb
    if_exists = False
    if verb == "CREATE SERVER":
        if_exists = mariadb and cursor.accept("IF", "NOT", "EXISTS")
    elif verb == "DROP SERVER":
        if_exists = cursor.accept("IF", "EXISTS")
    name = _name_or_string(cursor)
    if verb == "DROP SERVER":
        return _object(cursor, head, verb, name, if_exists=if_exists)
    if verb == "CREATE SERVER":
        cursor.expect("FOREIGN", "DATA", "WRAPPER")
        _name_or_string(cursor)
    cursor.expect("OPTIONS")
    cursor.expect_operator("(")
    while True:
        if cursor.accept("PORT"):
            number(cursor)
        elif cursor.accept_any(_SERVER_OPTIONS):
            string(cursor)
        elif cursor.dialect.has_mariadb(11, 7) and cursor.kind is not TokenKind.OPERATOR:
            cursor.identifier()
            string(cursor)
        else:
            raise cursor.stop("an option")
        if not cursor.accept_operator(","):
            break
    cursor.expect_operator(")")
    return _object(cursor, head, verb, name, if_exists=if_exists)


def _name_or_string(cursor: Cursor) -> ObjectName:
    token = cursor.token
    if token.kind is TokenKind.STRING:
        cursor.advance()
        return ObjectName(token.offset, token.end, None, token.value)
    return _single_name(cursor)


def _tablespace(cursor: Cursor, head: Head, verb: str) -> ObjectStatement:
    """CREATE, ALTER and DROP of tablespaces and log file groups: what belongs to no database."""
    undo = ("UNDO",) if cursor.words[cursor.index - 1] == "UNDO" else ()
    if cursor.accept("LOGFILE"):
        cursor.expect("GROUP")
        kind = "LOGFILE"
    else:
        cursor.expect("TABLESPACE")
        kind = "TABLESPACE"
    name = _single_name(cursor)
    said: list[str] = []
    while word := _tablespace_option(cursor):
        said.append(word)
        cursor.accept_operator(",")
    if verb == "ALTER" and not said:
        raise cursor.stop("what is to change")
    return _object(cursor, head, f"{verb} {kind}", name, words=(*undo, *said))


_SIZES: Final = (
    *("EXTENT_SIZE", "INITIAL_SIZE", "AUTOEXTEND_SIZE", "MAX_SIZE", "FILE_BLOCK_SIZE"),
    *("UNDO_BUFFER_SIZE", "REDO_BUFFER_SIZE"),
)


def _tablespace_option(cursor: Cursor) -> str:  # noqa: C901 - one branch a clause
    word = cursor.word
    if word in {"ADD", "DROP"}:
        cursor.advance()
        if not cursor.accept_any(("DATAFILE", "UNDOFILE", "REDOFILE")):
            raise cursor.stop("DATAFILE")
        string(cursor)
    elif word == "USE":
        cursor.expect("USE", "LOGFILE", "GROUP")
        cursor.identifier()
    elif word == "RENAME":
        cursor.expect("RENAME", "TO")
        cursor.identifier()
    elif word == "SET":
        cursor.advance()
        if not cursor.accept_any(("ACTIVE", "INACTIVE")):
            raise cursor.stop("ACTIVE or INACTIVE")
    elif word in _SIZES:
        cursor.advance()
        cursor.accept_operator("=")
        size(cursor)
    elif word == "NODEGROUP":
        cursor.advance()
        cursor.accept_operator("=")
        number(cursor)
    elif word in {"COMMENT", "ENCRYPTION", "ENGINE_ATTRIBUTE"}:
        cursor.advance()
        cursor.accept_operator("=")
        string(cursor)
    elif word in {"ENGINE", "STORAGE"}:
        cursor.accept("STORAGE")
        cursor.expect("ENGINE")
        cursor.accept_operator("=")
        _name_or_string(cursor)
    elif word in {"WAIT", "NO_WAIT"}:
        cursor.advance()
    else:
        return ""
    return word


def _resource_group(cursor: Cursor, head: Head, verb: str) -> ObjectStatement:
    cursor.expect("RESOURCE", "GROUP")
    name = _single_name(cursor)
    _skip(cursor)
    return _object(cursor, head, f"{verb} RESOURCE", name)


def _reference_system(cursor: Cursor, head: Head) -> ObjectStatement:
    cursor.expect("SPATIAL", "REFERENCE", "SYSTEM")
    if_not_exists = not head.is_or_replace and cursor.accept("IF", "NOT", "EXISTS")
    number(cursor)
    while not cursor.is_at_end and cursor.word != ";":
        if cursor.accept("NAME") or cursor.accept("DEFINITION") or cursor.accept("DESCRIPTION"):
            string(cursor)
        elif cursor.accept("ORGANIZATION"):
            string(cursor)
            cursor.expect("IDENTIFIED", "BY")
            number(cursor)
        else:
            raise cursor.stop("an attribute")
    return _object(cursor, head, "CREATE SPATIAL REFERENCE SYSTEM", None, if_exists=if_not_exists)


# ALTER ----------------------------------------------------------------------------------------


def read_alter(cursor: Cursor, body: BodyReader) -> Node:  # noqa: C901, PLR0912 - one branch a clause
    """Read ALTER of anything; arguments and errors are those of `read_create`."""
    head = _Head(cursor.start)
    cursor.expect("ALTER")
    dialect = cursor.dialect
    mariadb, mysql = dialect.may_be_mariadb, dialect.may_be_mysql
    modifiers: set[str] = set()
    if mariadb:
        modifiers |= {word for word in ("ONLINE", "IGNORE") if cursor.accept(word)}
    if cursor.word == "TABLE" or modifiers:
        cursor.expect("TABLE")
        return alter_table(cursor, head, frozenset(modifiers))
    match cursor.word:
        case "DATABASE" | "SCHEMA":
            cursor.advance()
            return _alter_database(cursor, head)
        case "SEQUENCE" if mariadb:
            cursor.advance()
            return sequence(cursor, head, "ALTER SEQUENCE")
        case "PROCEDURE" | "FUNCTION":
            return _alter_routine(cursor, head)
        case "USER":
            cursor.advance()
            return accounts.alter_user(cursor, head.at)
        case "SERVER":
            cursor.advance()
            return _server(cursor, head, "ALTER SERVER")
        case "UNDO" if dialect.has_mysql(8):
            cursor.advance()
            return _tablespace(cursor, head, "ALTER")
        case "TABLESPACE" | "LOGFILE" if mysql:
            return _tablespace(cursor, head, "ALTER")
        case "RESOURCE" if dialect.has_mysql(8):
            return _resource_group(cursor, head, "ALTER")
        case "INSTANCE" if mysql:
            cursor.advance()
            _skip(cursor)
            return _object(cursor, head, "ALTER INSTANCE", None)
        case "LIBRARY" if dialect.has_mysql(9, 2):
            cursor.advance()
            name = read_object_name(cursor)
            cursor.expect("COMMENT")
            string(cursor)
            return _object(cursor, head, "ALTER LIBRARY", name)
    if _is_other_view(cursor):
        found = _other_view(cursor, head)
        found.verb = "ALTER VIEW"
        return found
    _read_head(cursor, head)
    return _program(cursor, head, body, "ALTER")


def _alter_routine(cursor: Cursor, head: Head) -> ObjectStatement:
    verb = f"ALTER {cursor.advance().word}"
    name = read_object_name(cursor)
    said: list[str] = []
    while not _is_deterministic(cursor) and (word := _characteristic(cursor)):
        said.append(word)
    return _object(cursor, head, verb, name, words=tuple(said))


# DROP, RENAME, TRUNCATE -----------------------------------------------------------------------


def read_drop(cursor: Cursor) -> Node:
    """Read DROP of anything; errors are those of `read_create`."""
    head = Head(cursor.start)
    cursor.expect("DROP")
    dialect = cursor.dialect
    mariadb = dialect.may_be_mariadb
    head.is_temporary = cursor.accept("TEMPORARY")
    word = cursor.word
    if word in {"TABLE", "TABLES"}:
        cursor.advance()
        return drop_tables(cursor, head, "DROP TABLE")
    if word == "SEQUENCE" and mariadb:
        cursor.advance()
        return drop_tables(cursor, head, "DROP SEQUENCE")
    if head.is_temporary:
        raise cursor.stop("TABLE")
    if word == "SPATIAL" and dialect.has_mysql(8):
        cursor.expect("SPATIAL", "REFERENCE", "SYSTEM")
        if_exists = cursor.accept("IF", "EXISTS")
        number(cursor)
        return _object(cursor, head, "DROP SPATIAL REFERENCE SYSTEM", None, if_exists=if_exists)
    if word in {"TABLESPACE", "LOGFILE", "UNDO"} and dialect.may_be_mysql:
        cursor.accept("UNDO")
        return _tablespace(cursor, head, "DROP")
    if word == "RESOURCE" and dialect.has_mysql(8):
        return _resource_group(cursor, head, "DROP")
    if word == "PACKAGE" and mariadb:
        return _package(cursor, _Head(head.at), "DROP PACKAGE")
    if word == "PREPARE":
        raise cursor.stop("a kind of object")
    return _dropped(cursor, head, word)


def _dropped(cursor: Cursor, head: Head, word: str) -> Node:
    dialect = cursor.dialect
    is_known = word in {"VIEW", "INDEX", *_DATABASE, "USER", "SERVER", *_PROGRAMS}
    is_known |= word == "ROLE" and (dialect.may_be_mariadb or dialect.has_mysql(8))
    is_known |= word == "LIBRARY" and dialect.has_mysql(9, 2)
    if not is_known:
        raise cursor.stop("a kind of object")
    cursor.advance()
    if word == "VIEW":
        return drop_tables(cursor, head, "DROP VIEW")
    if word == "INDEX":
        return drop_index(cursor, head)
    if word in {"USER", "ROLE"}:
        return accounts.drop_accounts(cursor, head.at, f"DROP {word}")
    if word == "SERVER":
        return _server(cursor, head, "DROP SERVER")
    if_exists = cursor.accept("IF", "EXISTS")
    if word in _DATABASE:
        name = _database_name(cursor)
        return Database(head.at, cursor.end, "DROP DATABASE", name, if_exists=if_exists)
    return _object(cursor, head, f"DROP {word}", read_object_name(cursor), if_exists=if_exists)


_PROGRAMS: Final = ("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT")


def read_rename(cursor: Cursor) -> RenameTables | AccountStatement:
    """Read RENAME of tables or users."""
    head = Head(cursor.start)
    cursor.expect("RENAME")
    if cursor.accept("USER"):
        return accounts.rename_users(cursor, head.at)
    if not cursor.accept_any(("TABLE", "TABLES")):
        raise cursor.stop("TABLE")
    return rename_tables(cursor, head)


def read_truncate(cursor: Cursor) -> DropTables:
    """Read TRUNCATE."""
    return truncate_table(cursor)
