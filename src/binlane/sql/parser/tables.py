"""CREATE, DROP, RENAME and TRUNCATE of tables, indexes and sequences; options and partitions.

Source: MySQL 9.7, sql/sql_yacc.yy: create_table_stmt, create_table_option, partition_clause;
MariaDB 11.8: create, create_table_option, partitioning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from binlane.sql.parser.columns import (
    Element,
    accept_engine_option,
    element,
    key_columns,
    number,
    string,
)
from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.expressions import read_expression
from binlane.sql.parser.queries import read_object_name, read_query
from binlane.sql.parser.types import accept_charset, charset_name, collation_name, read_column_type
from binlane.sql.tokens import NAME_KINDS, TokenKind
from binlane.sql.tree.definitions import (
    CreateIndex,
    CreateTable,
    DropIndex,
    DropTables,
    Partition,
    Partitioning,
    RenameTables,
    Sequence,
    TableOption,
)
from binlane.sql.tree.expressions import Expression, Name, ObjectName

_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_NUMBERS: Final = frozenset(
    {
        *("MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "AUTO_INCREMENT", "CHECKSUM"),
        *("TABLE_CHECKSUM", "DELAY_KEY_WRITE", "KEY_BLOCK_SIZE"),
    }
)
_TERNARY: Final = frozenset({"PACK_KEYS", "STATS_AUTO_RECALC", "STATS_PERSISTENT"})
_TEXTS: Final = frozenset({"PASSWORD", "COMMENT", "CONNECTION"})
_MYSQL_TEXTS: Final = frozenset(
    {"COMPRESSION", "ENCRYPTION", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}
)
_ROW_FORMATS: Final = ("DEFAULT", "DYNAMIC", "FIXED", "COMPRESSED", "REDUNDANT", "COMPACT")
_PARTITION_NUMBERS: Final = ("NODEGROUP", "MAX_ROWS", "MIN_ROWS")


@dataclass(slots=True)
class Head:
    """What stands between CREATE, ALTER or DROP and the kind of object."""

    at: int
    is_or_replace: bool = False
    is_temporary: bool = False


# CREATE TABLE ---------------------------------------------------------------------------------


def create_table(cursor: Cursor, head: Head) -> CreateTable:
    """Read what stands behind CREATE TABLE."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_object_name(cursor)
    found = CreateTable(
        head.at,
        -1,
        name=name,
        is_temporary=head.is_temporary,
        is_or_replace=head.is_or_replace,
        if_not_exists=if_not_exists,
    )
    if cursor.accept("LIKE"):
        found.like = read_object_name(cursor)
    elif cursor.word == "(" and cursor.word_ahead(1) == "LIKE":
        cursor.advance()
        cursor.advance()
        found.like = read_object_name(cursor)
        cursor.expect_operator(")")
    else:
        if cursor.word == "(" and not _opens_query(cursor):
            found.elements_at = cursor.start
            found.elements = _elements(cursor)
            found.elements_end = cursor.end
        found.options = table_options(cursor)
        if cursor.word == "PARTITION":
            found.partitioning = partitioning(cursor)
        _read_query(cursor, found)
    found.end = cursor.end
    return found


def _elements(cursor: Cursor) -> tuple[Element, ...]:
    cursor.expect_operator("(")
    found = [element(cursor)]
    while cursor.accept_operator(","):
        found.append(element(cursor))
    cursor.expect_operator(")")
    return tuple(found)


def _opens_query(cursor: Cursor) -> bool:
    count = 0
    while cursor.word_ahead(count) == "(":
        count += 1
    return cursor.word_ahead(count) in _QUERY_WORDS


def _read_query(cursor: Cursor, found: CreateTable) -> None:
    found.on_existing = cursor.accept_any(("IGNORE", "REPLACE"))
    has_as = cursor.accept("AS")
    if has_as or cursor.word in _QUERY_WORDS or cursor.word == "(":
        found.query = read_query(cursor)
    elif found.on_existing:
        raise cursor.stop("a query")


def table_options(cursor: Cursor, *, at_least_one: bool = False) -> tuple[TableOption, ...]:
    """Read options with or without commas between them."""
    found: list[TableOption] = []
    while (option := table_option(cursor)) is not None:
        found.append(option)
        if cursor.word == ",":
            cursor.advance()
            if (option := table_option(cursor)) is None:
                raise cursor.stop("an option")
            found.append(option)
            cursor.accept_operator(",") if _is_option_behind_comma(cursor) else None
    if at_least_one and not found:
        raise cursor.stop("an option")
    return tuple(found)


def _is_option_behind_comma(cursor: Cursor) -> bool:
    return cursor.word == "," and cursor.ahead(1).kind in NAME_KINDS


def options_with_blanks(cursor: Cursor) -> tuple[TableOption, ...]:
    """Read the options of one action of ALTER TABLE, between which no comma stands."""
    found: list[TableOption] = []
    while (option := table_option(cursor)) is not None:
        found.append(option)
    return tuple(found)


def table_option(cursor: Cursor) -> TableOption | None:
    """Read one option of a table, if one comes next."""
    start = cursor.token
    read = _READERS.get(start.word)
    name = start.word
    if name == "DEFAULT":
        if cursor.word_ahead(1) not in {"CHARACTER", "CHAR", "CHARSET", "COLLATE"}:
            return None
        cursor.advance()
        name = cursor.word
        read = _READERS[name]
    if read is not None:
        option = read(cursor, start.offset, name)
        if option is not None:
            return option
    return _engine_option(cursor) if cursor.dialect.may_be_mariadb else None


def _engine_option(cursor: Cursor) -> TableOption | None:
    """`name = value` of MariaDB's engines."""
    token = cursor.token
    if not accept_engine_option(cursor):
        return None
    return _made(cursor, token.offset, token.value.upper(), cursor.ahead(-1).value)


def _made(cursor: Cursor, at: int, name: str, value: str = "") -> TableOption:
    return TableOption(at, cursor.end, name, value)


def _number(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    token = cursor.token
    if (
        token.kind is not TokenKind.NUMBER
        or token.text[:1] not in "0123456789."
        or (token.text[:2] in {"0x", "0b"})
    ):
        raise cursor.stop("a number")
    return _made(cursor, at, name, cursor.advance().text)


def _ternary(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    if cursor.token.text not in {"0", "1"} and cursor.word != "DEFAULT":
        raise cursor.stop("0, 1 or DEFAULT")
    return _made(cursor, at, name, cursor.advance().text)


def _number_or_default(cursor: Cursor, at: int, name: str) -> TableOption:
    if cursor.word_ahead(1) == "DEFAULT" or cursor.word_ahead(2) == "DEFAULT":
        cursor.advance()
        cursor.accept_operator("=")
        return _made(cursor, at, name, cursor.advance().text)
    return _number(cursor, at, name)


def _text(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    string(cursor)
    return _made(cursor, at, name, cursor.ahead(-1).value)


def _mysql_text(cursor: Cursor, at: int, name: str) -> TableOption | None:
    return _text(cursor, at, name) if cursor.dialect.may_be_mysql else None


def _engine(cursor: Cursor, at: int, _: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    if cursor.kind is TokenKind.STRING:
        return _made(cursor, at, "ENGINE", cursor.advance().value)
    return _made(cursor, at, "ENGINE", cursor.identifier())


def _secondary_engine(cursor: Cursor, at: int, name: str) -> TableOption | None:
    if not cursor.dialect.may_be_mysql:
        return None
    cursor.advance()
    cursor.accept_operator("=")
    if cursor.word == "NULL" or cursor.kind is TokenKind.STRING:
        return _made(cursor, at, name, cursor.advance().value)
    return _made(cursor, at, name, cursor.identifier())


def _charset(cursor: Cursor, at: int, _: str) -> TableOption | None:
    if not accept_charset(cursor):
        return None
    cursor.accept_operator("=")
    if cursor.word == "DEFAULT" and not cursor.dialect.may_be_mariadb:
        raise cursor.stop("a character set")
    return _made(cursor, at, "CHARACTER SET", charset_name(cursor))


def _collate(cursor: Cursor, at: int, _: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    return _made(cursor, at, "COLLATE", collation_name(cursor))


def _row_format(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    words = (*_ROW_FORMATS, "PAGE") if cursor.dialect.may_be_mariadb else _ROW_FORMATS
    value = cursor.accept_any(words)
    if not value:
        raise cursor.stop("a row format")
    return _made(cursor, at, name, value)


def _insert_method(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    value = cursor.accept_any(("NO", "FIRST", "LAST"))
    if not value:
        raise cursor.stop("NO, FIRST or LAST")
    return _made(cursor, at, name, value)


def _union(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    cursor.accept_operator("=")
    cursor.expect_operator("(")
    tables: list[ObjectName] = []
    if cursor.word != ")":
        tables.append(read_object_name(cursor))
        while cursor.accept_operator(","):
            tables.append(read_object_name(cursor))
    cursor.expect_operator(")")
    return TableOption(at, cursor.end, name, tables=tuple(tables))


def _directory(cursor: Cursor, at: int, name: str) -> TableOption | None:
    if cursor.word_ahead(1) != "DIRECTORY":
        return None
    cursor.advance()
    return _text(cursor, at, f"{name} DIRECTORY")


def _tablespace(cursor: Cursor, at: int, name: str) -> TableOption | None:
    cursor.advance()
    if cursor.dialect.may_be_mysql:
        cursor.accept_operator("=")
    return _made(cursor, at, name, cursor.identifier())


def _storage(cursor: Cursor, at: int, name: str) -> TableOption:
    cursor.advance()
    value = cursor.accept_any(("DISK", "MEMORY"))
    if not value:
        raise cursor.stop("DISK or MEMORY")
    return _made(cursor, at, name, value)


def _start(cursor: Cursor, at: int, _: str) -> TableOption | None:
    if not (cursor.dialect.has_mysql(8, 0, 21) and cursor.accept("START", "TRANSACTION")):
        return None
    return _made(cursor, at, "START TRANSACTION")


def _autoextend(cursor: Cursor, at: int, name: str) -> TableOption | None:
    if not cursor.dialect.has_mysql(8, 0, 23):
        return None
    cursor.advance()
    cursor.accept_operator("=")
    return _made(cursor, at, name, size(cursor))


def _with(cursor: Cursor, at: int, _: str) -> TableOption | None:
    if cursor.dialect.may_be_mariadb and cursor.accept("WITH", "SYSTEM", "VERSIONING"):
        return _made(cursor, at, "WITH SYSTEM VERSIONING")
    return None


def _mariadb_number(cursor: Cursor, at: int, name: str) -> TableOption | None:
    return _number_or_default(cursor, at, name) if cursor.dialect.may_be_mariadb else None


def size(cursor: Cursor) -> str:
    """Read a size such as `4M`."""
    token = cursor.token
    digits = token.text.rstrip("kKmMgG")
    if not digits.isdecimal() or token.kind is TokenKind.STRING:
        raise cursor.stop("a size")
    return cursor.advance().text


_Reader = Callable[[Cursor, int, str], TableOption | None]
_READERS: Final[dict[str, _Reader]] = {
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_TERNARY, _ternary),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_MYSQL_TEXTS, _mysql_text),
    **dict.fromkeys(("CHARACTER", "CHAR", "CHARSET"), _charset),
    **dict.fromkeys(("DATA", "INDEX"), _directory),
    **dict.fromkeys(("TRANSACTIONAL", "PAGE_CHECKSUM", "SEQUENCE"), _mariadb_number),
    "STATS_SAMPLE_PAGES": _number_or_default,
    "ENGINE": _engine,
    "SECONDARY_ENGINE": _secondary_engine,
    "COLLATE": _collate,
    "ROW_FORMAT": _row_format,
    "INSERT_METHOD": _insert_method,
    "UNION": _union,
    "TABLESPACE": _tablespace,
    "STORAGE": _storage,
    "START": _start,
    "AUTOEXTEND_SIZE": _autoextend,
    "WITH": _with,
}


# Partitions -----------------------------------------------------------------------------------


def partitioning(cursor: Cursor) -> Partitioning:
    """Read PARTITION BY with its partitions."""
    found = Partitioning(cursor.start, -1, "")
    cursor.expect("PARTITION", "BY")
    _partition_kind(cursor, found)
    if cursor.accept("PARTITIONS"):
        found.count = number(cursor)
    if cursor.word == "SUBPARTITION":
        found.sub = Partitioning(cursor.start, -1, "")
        cursor.expect("SUBPARTITION", "BY")
        _hash_or_key(cursor, found.sub)
        if cursor.accept("SUBPARTITIONS"):
            found.sub.count = number(cursor)
        found.sub.end = cursor.end
    if cursor.word == "(" and cursor.word_ahead(1) == "PARTITION":
        found.partitions = _partitions(cursor, "PARTITION")
    found.end = cursor.end
    return found


def new_partitions(cursor: Cursor) -> Partitioning:
    """Read the partitions in parentheses of ADD and REORGANIZE PARTITION."""
    start = cursor.start
    found = _partitions(cursor, "PARTITION")
    return Partitioning(start, cursor.end, "", partitions=found)


def new_partition(cursor: Cursor) -> Partitioning:
    """Read one partition's definition, of CONVERT TABLE … TO."""
    found = _partition(cursor, "PARTITION")
    return Partitioning(found.at, found.end, "", partitions=(found,))


def _partition_kind(cursor: Cursor, found: Partitioning) -> None:
    if word := cursor.accept_any(("RANGE", "LIST")):
        found.kind = word
        if cursor.accept("COLUMNS"):
            found.kind = f"{word} COLUMNS"
            found.values = _columns(cursor)
        else:
            found.values = (_one_expression(cursor),)
    elif cursor.dialect.may_be_mariadb and cursor.accept("SYSTEM_TIME"):
        found.kind = "SYSTEM_TIME"
        found.limits = _system_time(cursor)
    else:
        _hash_or_key(cursor, found)


def _system_time(cursor: Cursor) -> tuple[Expression, ...]:
    found: list[Expression] = []
    if cursor.accept("INTERVAL"):
        found.append(read_expression(cursor))
        cursor.identifier()  # the unit
        if cursor.accept("STARTS"):
            found.append(read_expression(cursor))
        cursor.accept("AUTO")
    elif cursor.accept("LIMIT"):
        number(cursor)
        cursor.accept("AUTO")
    return tuple(found)


def _hash_or_key(cursor: Cursor, found: Partitioning) -> None:
    linear = "LINEAR " * cursor.accept("LINEAR")
    if cursor.accept("HASH"):
        found.kind = f"{linear}HASH"
        found.values = (_one_expression(cursor),)
        return
    if not cursor.accept("KEY"):
        raise cursor.stop("a kind of partitions")
    found.kind = f"{linear}KEY"
    if cursor.accept("ALGORITHM"):
        cursor.expect_operator("=")
        if number(cursor) not in {1, 2}:
            raise cursor.stop("ALGORITHM=1 or 2")
    if not cursor.accept("(", ")"):
        found.values = _columns(cursor)


def _one_expression(cursor: Cursor) -> Expression:
    cursor.expect_operator("(")
    value = read_expression(cursor)
    cursor.expect_operator(")")
    return value


def _columns(cursor: Cursor) -> tuple[Expression, ...]:
    cursor.expect_operator("(")
    found: list[Expression] = []
    while True:
        start = cursor.start
        name = cursor.identifier()
        found.append(Name(start, cursor.end, (name,)))
        if not cursor.accept_operator(","):
            break
    cursor.expect_operator(")")
    return tuple(found)


def _partitions(cursor: Cursor, word: str) -> tuple[Partition, ...]:
    cursor.expect_operator("(")
    found = [_partition(cursor, word)]
    while cursor.accept_operator(","):
        found.append(_partition(cursor, word))
    cursor.expect_operator(")")
    return tuple(found)


def _partition(cursor: Cursor, word: str) -> Partition:
    start = cursor.start
    cursor.expect(word)
    is_sub = word == "SUBPARTITION"
    if is_sub and cursor.kind is TokenKind.STRING:
        name = cursor.advance().value
    else:
        name = cursor.identifier()
    found = Partition(start, -1, name)
    if is_sub:
        found.options = _partition_options(cursor)
    else:
        _partition_values(cursor, found)
        found.options = _partition_options(cursor)
        if cursor.word == "(":
            found.subpartitions = _partitions(cursor, "SUBPARTITION")
    found.end = cursor.end
    return found


def _partition_values(cursor: Cursor, found: Partition) -> None:
    if cursor.accept("VALUES", "LESS", "THAN"):
        found.kind = "LESS THAN"
        found.values_at = cursor.start
        if not cursor.accept("MAXVALUE"):
            found.values = _values(cursor, has_maxvalue=True)
        found.values_end = cursor.end
    elif cursor.accept("VALUES", "IN"):
        found.kind = "IN"
        found.values_at = cursor.start
        found.values = _values(cursor, has_maxvalue=False)
        found.values_end = cursor.end
    elif cursor.dialect.may_be_mariadb:
        found.kind = cursor.accept_any(("HISTORY", "CURRENT", "DEFAULT"))


def _values(cursor: Cursor, *, has_maxvalue: bool) -> tuple[Expression, ...]:
    cursor.expect_operator("(")
    found: list[Expression] = []
    while True:
        if not (has_maxvalue and cursor.accept("MAXVALUE")):
            found.append(read_expression(cursor))
        if not cursor.accept_operator(","):
            break
    cursor.expect_operator(")")
    return tuple(found)


def _partition_options(cursor: Cursor) -> tuple[TableOption, ...]:
    found: list[TableOption] = []
    while (option := _partition_option(cursor)) is not None:
        found.append(option)
    return tuple(found)


def _partition_option(cursor: Cursor) -> TableOption | None:
    start, word = cursor.start, cursor.word
    if word == "STORAGE" and cursor.word_ahead(1) == "ENGINE":
        cursor.advance()
        word = "ENGINE"
    if word == "ENGINE":
        return _engine(cursor, start, word)
    if word == "TABLESPACE":
        cursor.advance()
        cursor.accept_operator("=")
        return _made(cursor, start, word, cursor.identifier())
    if word in _PARTITION_NUMBERS:
        cursor.advance()
        cursor.accept_operator("=")
        return _made(cursor, start, word, str(number(cursor)))
    if word == "COMMENT":
        return _text(cursor, start, word)
    if word in {"DATA", "INDEX"}:
        return _directory(cursor, start, word)
    if cursor.dialect.may_be_mariadb:
        return _engine_option(cursor)
    return None


# Indexes --------------------------------------------------------------------------------------


def create_index(cursor: Cursor, head: Head, kind: str) -> CreateIndex:
    """Read what stands behind CREATE [UNIQUE, …] INDEX."""
    start = cursor.start
    mariadb = cursor.dialect.may_be_mariadb
    if_not_exists = mariadb and cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.identifier()
    algorithm = ""
    if cursor.accept_any(("USING", "TYPE")):
        algorithm = cursor.accept_any(("BTREE", "HASH", "RTREE"))
        if not algorithm:
            raise cursor.stop("BTREE or HASH")
    cursor.expect("ON")
    table = read_object_name(cursor)
    key = key_columns(cursor, start, kind=kind or "KEY", name=name, algorithm=algorithm)
    key.if_not_exists = if_not_exists
    words = {"OR REPLACE"} if head.is_or_replace else set()
    _wait(cursor)
    words |= _algorithm_and_lock(cursor)
    return CreateIndex(head.at, cursor.end, table, key, frozenset(words))


def drop_index(cursor: Cursor, head: Head) -> DropIndex:
    """Read what stands behind DROP INDEX."""
    if_exists = cursor.dialect.may_be_mariadb and cursor.accept("IF", "EXISTS")
    name = cursor.identifier()
    cursor.expect("ON")
    table = read_object_name(cursor)
    _wait(cursor)
    if cursor.dialect.may_be_mysql:
        _algorithm_and_lock(cursor)
    return DropIndex(head.at, cursor.end, table, name, if_exists)


def _algorithm_and_lock(cursor: Cursor) -> set[str]:
    words: set[str] = set()
    while cursor.word in {"ALGORITHM", "LOCK"}:
        word = cursor.advance().word
        cursor.accept_operator("=")
        words.add(f"{word}={algorithm_or_lock(cursor, word)}")
    return words


def algorithm_or_lock(cursor: Cursor, word: str) -> str:
    """Read the value of ALGORITHM or LOCK; one that the server refuses (1800, 1801) is none."""
    if word == "LOCK":
        values: tuple[str, ...] = ("DEFAULT", "NONE", "SHARED", "EXCLUSIVE")
    else:
        values = ("DEFAULT", "INPLACE", "COPY", "INSTANT")
        if cursor.dialect.may_be_mariadb:
            values += ("NOCOPY",)
    value = cursor.accept_any(values)
    if not value:
        raise cursor.stop(f"a value of {word}")
    return value


def _wait(cursor: Cursor) -> None:
    """How long MariaDB waits for locks: NOWAIT or WAIT n."""
    if cursor.dialect.may_be_mariadb and not cursor.accept("NOWAIT") and cursor.accept("WAIT"):
        number(cursor)


# DROP, RENAME, TRUNCATE -----------------------------------------------------------------------


def drop_tables(cursor: Cursor, head: Head, verb: str) -> DropTables:
    """Read what stands behind DROP TABLE, DROP VIEW and DROP SEQUENCE."""
    if_exists = cursor.accept("IF", "EXISTS")
    names = [read_object_name(cursor)]
    while cursor.accept_operator(","):
        names.append(read_object_name(cursor))
    option = ""
    if verb == "DROP TABLE":
        _wait(cursor)
    if verb != "DROP SEQUENCE":
        option = cursor.accept_any(("RESTRICT", "CASCADE"))
    return DropTables(head.at, cursor.end, verb, tuple(names), head.is_temporary, if_exists, option)


def rename_tables(cursor: Cursor, head: Head) -> RenameTables:
    """Read what stands behind RENAME TABLE."""
    if_exists = cursor.dialect.may_be_mariadb and cursor.accept("IF", "EXISTS")
    pairs = []
    while True:
        old = read_object_name(cursor)
        _wait(cursor)
        cursor.expect("TO")
        pairs.append((old, read_object_name(cursor)))
        if not cursor.accept_operator(","):
            break
    return RenameTables(head.at, cursor.end, tuple(pairs), if_exists)


def truncate_table(cursor: Cursor) -> DropTables:
    """Read TRUNCATE."""
    start = cursor.start
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    name = read_object_name(cursor)
    _wait(cursor)
    if cursor.dialect.is_oracle and cursor.accept_any(("DROP", "REUSE")):
        cursor.expect("STORAGE")
    return DropTables(start, cursor.end, "TRUNCATE TABLE", (name,))


# Sequences ------------------------------------------------------------------------------------

_SETTINGS: Final = ("MINVALUE", "MAXVALUE", "START", "INCREMENT", "CACHE", "RESTART")
_NONE_WORDS: Final = {"NOMINVALUE": "MINVALUE", "NOMAXVALUE": "MAXVALUE"}


def sequence(cursor: Cursor, head: Head, verb: str) -> Sequence:
    """Read what stands behind CREATE SEQUENCE and ALTER SEQUENCE."""
    is_new = verb == "CREATE SEQUENCE"
    words = ("IF", "NOT", "EXISTS") if is_new else ("IF", "EXISTS")
    if_exists = cursor.accept(*words)
    name = read_object_name(cursor)
    if is_new:
        _wait(cursor)
        if cursor.dialect.has_mariadb(11, 5) and cursor.accept("AS"):
            read_column_type(cursor)
    settings: dict[str, int | None] = {}
    found: set[str] = set()
    while _setting(cursor, settings, found, is_new=is_new):
        pass
    if not is_new and not (settings or found):
        raise cursor.stop("what is to change")
    options = table_options(cursor) if is_new else ()
    return Sequence(
        head.at,
        cursor.end,
        verb,
        name,
        is_temporary=head.is_temporary,
        is_or_replace=head.is_or_replace,
        if_exists=if_exists,
        settings=settings,
        words=frozenset(found),
        options=options,
    )


def _setting(
    cursor: Cursor, settings: dict[str, int | None], words: set[str], *, is_new: bool
) -> bool:
    word = cursor.word
    if word in {"CYCLE", "NOCYCLE"}:
        words.add(cursor.advance().word)
    elif word in _NONE_WORDS:
        cursor.advance()
        settings[_NONE_WORDS[word]] = None
    elif word == "NO" and cursor.word_ahead(1) in {"MINVALUE", "MAXVALUE"}:
        cursor.advance()
        settings[cursor.advance().word] = None
    elif word == "NOCACHE":
        cursor.advance()
        settings["CACHE"] = 0
    elif word in _SETTINGS and not (is_new and word == "RESTART"):
        cursor.advance()
        with_word = {"START": "WITH", "RESTART": "WITH"}.get(word, "BY")
        has_word = cursor.accept(with_word) or cursor.accept_operator("=")
        if word == "RESTART" and not has_word and cursor.kind is not TokenKind.NUMBER:
            settings[word] = None
        else:
            settings[word] = _signed(cursor)
    else:
        return False
    return True


def _signed(cursor: Cursor) -> int:
    is_negative = cursor.accept_operator("-")
    if not is_negative:
        cursor.accept_operator("+")
    value = number(cursor)
    return -value if is_negative else value
