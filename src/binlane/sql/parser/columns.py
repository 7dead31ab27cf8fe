"""What stands in the parentheses of CREATE TABLE and behind ADD: columns, keys, checks, periods.

Source: MySQL 9.7, sql/sql_yacc.yy: table_element, column_attribute, table_constraint_def; MariaDB
11.8: field_list_item, attribute, key_def, constraint_def.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from binlane.sql.parser.cursor import Cursor, Stopped
from binlane.sql.parser.expressions import read_expression
from binlane.sql.parser.queries import read_object_name
from binlane.sql.parser.types import collation_name, may_be_compressed, read_column_type
from binlane.sql.tokens import NAME_KINDS, TokenKind
from binlane.sql.tree.definitions import Check, Column, KeyDefinition, KeyPart, Period, Reference
from binlane.sql.tree.expressions import Call, Expression, Literal, LiteralKind, Operation

Element = Column | KeyDefinition | Check | Period

_ACTIONS: Final = (
    ("SET", "NULL"),
    ("SET", "DEFAULT"),
    ("NO", "ACTION"),
    ("CASCADE",),
    ("RESTRICT",),
)
_ALGORITHMS: Final = ("BTREE", "HASH", "RTREE")
_NOW: Final = frozenset({"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_NO_ENGINE_OPTIONS: Final = frozenset(
    [
        "ALGORITHM",
        "AUTOEXTEND_SIZE",
        "AUTO_INCREMENT",
        "AVG_ROW_LENGTH",
        "CHARSET",
        "CHECKSUM",
        "COLLATE",
        "COMMENT",
        "CONNECTION",
        "DATA",
        "DELAY_KEY_WRITE",
        "ENGINE",
        "INDEX",
        "INSERT_METHOD",
        "KEY_BLOCK_SIZE",
        "LOCK",
        "MAX_ROWS",
        "MIN_ROWS",
        "PACK_KEYS",
        "PAGE_CHECKSUM",
        "PASSWORD",
        "ROW_FORMAT",
        "SEQUENCE",
        "STATS_AUTO_RECALC",
        "STATS_PERSISTENT",
        "STATS_SAMPLE_PAGES",
        "STORAGE",
        "TABLESPACE",
        "TABLE_CHECKSUM",
        "TRANSACTIONAL",
        "TYPE",
        "UNION",
    ]
)
"""Words of MariaDB's grammar, which therefore name no option of an engine."""
_GENERATED_WORDS: Final = ("PRIMARY", "KEY", "NOT", "NULL")
_OPERAND: Final = 99
"""Binds more tightly than any operator: COLLATE behind a default value is the column's."""
_KEY_WORDS: Final = ("KEY", "INDEX")
_ALWAYS_KEYS: Final = frozenset({"KEY", "INDEX", "PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL"})


def element(cursor: Cursor, *, is_added: bool = False) -> Element:
    """Read one item of a list of columns, or what ADD adds.

    Args:
        cursor: At its first word.
        is_added: By ALTER TABLE, where MariaDB takes IF NOT EXISTS.

    Raises:
        Stopped: If it is none.
    """
    start = cursor.token
    if cursor.word == "CONSTRAINT":
        return _constraint(cursor, is_added=is_added)
    if cursor.word == "CHECK":
        return _check(cursor, start.offset, "")
    if cursor.word == "FOREIGN":
        return _foreign_key(cursor, start.offset, "", is_added=is_added)
    if is_key(cursor):
        return _key(cursor, start.offset, "", is_added=is_added)
    is_period = cursor.word == "PERIOD" and cursor.word_ahead(1) == "FOR"
    if is_period and cursor.dialect.may_be_mariadb:
        return period(cursor)
    return column(cursor)


def is_key(cursor: Cursor) -> bool:
    """Whether a key's definition comes next, and no column."""
    if cursor.word in _ALWAYS_KEYS:
        return True
    return (
        cursor.word == "VECTOR"
        and cursor.dialect.has_mariadb(11, 7)
        and (cursor.word_ahead(1) in _KEY_WORDS or cursor.word_ahead(1) == "(")
    )


def period(cursor: Cursor) -> Period:
    """Read PERIOD FOR name (from, to)."""
    start = cursor.token
    cursor.expect("PERIOD", "FOR")
    name = cursor.identifier()
    cursor.expect_operator("(")
    first = cursor.identifier()
    cursor.expect_operator(",")
    last = cursor.identifier()
    cursor.expect_operator(")")
    return Period(start.offset, cursor.end, name, first, last)


# Columns --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Attributes:
    """A column's attributes while they are read; see `Column`."""

    type_name: str
    is_nullable: bool | None = None
    default: Expression | None = None
    on_update: Expression | None = None
    generated: Expression | None = None
    storage: str = ""
    is_auto_increment: bool = False
    keys: list[str] = field(default_factory=list)
    references: Reference | None = None
    checks: list[Check] = field(default_factory=list)
    comment: Literal | None = None
    collation: str = ""
    words: set[str] = field(default_factory=set)
    default_at: int = -1
    default_end: int = -1
    generated_at: int = -1
    generated_end: int = -1


def column(cursor: Cursor) -> Column:
    """Read a column's name and definition."""
    return column_definition(cursor, _column_name(cursor))


def column_definition(cursor: Cursor, name: str, at: int = -1) -> Column:
    """Read what stands behind a column's name: type and attributes.

    Args:
        cursor: Behind the name.
        name: Of the column.
        at: Where the column begins; -1: with the token before.
    """
    at = cursor.ahead(-1).offset if at < 0 else at
    kind = read_column_type(cursor)
    found = _Attributes(kind.name)
    if kind.name == "SERIAL":
        found.words.add("SERIAL")
        found.is_auto_increment, found.is_nullable = True, False
        found.keys.append("UNIQUE")
    while cursor.word == "COLLATE":
        cursor.advance()
        _collate(cursor, found)
    if _accept_as(cursor):
        _generated(cursor, found)
    else:
        while _attribute(cursor, found):
            pass
    _checks(cursor, found)
    _references(cursor, found)
    if found.collation:
        kind.collation = found.collation
    return Column(
        at,
        cursor.end,
        name=name,
        type=kind,
        is_nullable=found.is_nullable,
        default=found.default,
        on_update=found.on_update,
        generated=found.generated,
        storage=found.storage,
        is_auto_increment=found.is_auto_increment,
        key=next((key for key in ("PRIMARY", "UNIQUE") if key in found.keys), ""),
        references=found.references,
        checks=tuple(found.checks),
        comment=found.comment,
        words=frozenset(found.words | ({"UNIQUE"} if "UNIQUE" in found.keys else set())),
        default_at=found.default_at,
        default_end=found.default_end,
        generated_at=found.generated_at,
        generated_end=found.generated_end,
    )


def _column_name(cursor: Cursor) -> str:
    """A column's name; MariaDB takes its table's before it."""
    name = cursor.identifier()
    if cursor.dialect.may_be_mariadb:
        while cursor.accept_operator("."):
            name = cursor.identifier()
    return name


def _collate(cursor: Cursor, found: _Attributes) -> None:
    if found.collation and cursor.dialect.flavor == "mysql":
        raise cursor.stop("one COLLATE")
    found.collation = collation_name(cursor)


def _attribute(cursor: Cursor, found: _Attributes) -> bool:  # noqa: C901 - one branch a clause
    """Read one attribute, if one comes next."""
    dialect = cursor.dialect
    match cursor.word:
        case "NOT" if cursor.word_ahead(1) == "NULL":
            cursor.expect("NOT", "NULL")
            found.is_nullable = False
            if dialect.may_be_mariadb:
                cursor.accept("ENABLE")
        case "NULL":
            cursor.advance()
            found.is_nullable = True
            found.words.add("NULL")
        case "DEFAULT":
            cursor.advance()
            found.default_at = cursor.start
            found.default = default_value(cursor)
            found.default_end = cursor.end
        case "ON" if cursor.word_ahead(1) == "UPDATE":
            cursor.expect("ON", "UPDATE")
            is_new = dialect.flavor == "mariadb" and dialect.version >= (11, 8)
            if is_new and cursor.word.startswith("LOCALTIME"):
                raise cursor.stop("CURRENT_TIMESTAMP")
            found.on_update = _now(cursor)
        case "AUTO_INCREMENT":
            cursor.advance()
            found.is_auto_increment = True
        case "SERIAL":
            cursor.expect("SERIAL", "DEFAULT", "VALUE")
            found.is_auto_increment, found.is_nullable = True, False
            found.keys.append("UNIQUE")
        case "PRIMARY" | "KEY" | "UNIQUE" | "COMMENT" | "INVISIBLE":
            _shared_attribute(cursor, found)
        case "COLLATE":
            cursor.advance()
            _collate(cursor, found)
        case _:
            if dialect.may_be_mysql and _mysql_attribute(cursor, found):
                return True
            return dialect.may_be_mariadb and _mariadb_attribute(cursor, found)
    return True


def _shared_attribute(cursor: Cursor, found: _Attributes) -> None:
    """What generated columns may have, too."""
    match cursor.advance().word:
        case "PRIMARY":
            cursor.expect("KEY")
            found.keys.append("PRIMARY")
        case "KEY":
            found.keys.append("PRIMARY")
        case "UNIQUE":
            cursor.accept("KEY")
            found.keys.append("UNIQUE")
        case "COMMENT":
            found.comment = string(cursor)
        case _:
            found.words.add("INVISIBLE")


def _mysql_attribute(cursor: Cursor, found: _Attributes) -> bool:  # noqa: C901 - one branch a clause
    if cursor.accept("VISIBLE"):
        return True
    if cursor.word in {"CHECK", "CONSTRAINT"} and cursor.dialect.has_mysql(8):
        if cursor.dialect.flavor != "mysql" and _is_reference(cursor):
            return False
        found.checks.append(_column_check(cursor))
        return True
    if cursor.accept("COLUMN_FORMAT"):
        word = cursor.accept_any(("DEFAULT", "FIXED", "DYNAMIC"))
        if not word:
            raise cursor.stop("FIXED, DYNAMIC or DEFAULT")
        found.words.add(f"COLUMN_FORMAT {word}")
    elif cursor.accept("STORAGE"):
        word = cursor.accept_any(("DEFAULT", "DISK", "MEMORY"))
        if not word:
            raise cursor.stop("DISK, MEMORY or DEFAULT")
        found.words.add(f"STORAGE {word}")
    elif cursor.word == "SRID" and cursor.dialect.has_mysql(8):
        cursor.advance()
        number(cursor)
    elif not cursor.accept("NOT", "SECONDARY"):
        if cursor.word not in {"ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}:
            return False
        cursor.advance()
        cursor.accept_operator("=")
        string(cursor)
    return True


def _mariadb_attribute(cursor: Cursor, found: _Attributes) -> bool:
    if cursor.accept("WITH", "SYSTEM", "VERSIONING"):
        found.words.add("WITH SYSTEM VERSIONING")
    elif cursor.accept("WITHOUT", "SYSTEM", "VERSIONING"):
        found.words.add("WITHOUT SYSTEM VERSIONING")
    elif cursor.accept("REF_SYSTEM_ID"):
        cursor.expect_operator("=")
        number(cursor)
        found.words.add("REF_SYSTEM_ID")
    elif (
        may_be_compressed(cursor, found.type_name)
        and not (cursor.dialect.flavor and cursor.dialect.version >= (11, 8))
        and cursor.accept("COMPRESSED")
    ):
        found.words.add("COMPRESSED")
    else:
        return accept_engine_option(cursor)
    return True


def accept_engine_option(cursor: Cursor) -> bool:
    """Read `name = value` that MariaDB leaves to the engine, if one comes next."""
    if cursor.kind not in NAME_KINDS or cursor.word_ahead(1) != "=":
        return False
    if cursor.word in _NO_ENGINE_OPTIONS:
        return False
    cursor.advance()
    cursor.advance()
    is_value = cursor.is_at_name or cursor.kind in {TokenKind.STRING, TokenKind.NUMBER}
    if not is_value and cursor.word != "DEFAULT":
        raise cursor.stop("a value")
    cursor.advance()
    return True


def _accept_as(cursor: Cursor) -> bool:
    if cursor.accept("GENERATED"):
        cursor.expect("ALWAYS", "AS")
        return True
    return cursor.accept("AS")


def _generated(cursor: Cursor, found: _Attributes) -> None:
    dialect = cursor.dialect
    if dialect.may_be_mariadb and cursor.accept("ROW"):
        word = cursor.accept_any(("START", "END"))
        if not word:
            raise cursor.stop("START or END")
        found.storage = f"ROW {word}"
    else:
        cursor.expect_operator("(")
        found.generated_at = cursor.start
        found.generated = read_expression(cursor)
        found.generated_end = cursor.end
        cursor.expect_operator(")")
        words = (
            ("VIRTUAL", "STORED", "PERSISTENT") if dialect.may_be_mariadb else ("VIRTUAL", "STORED")
        )
        found.storage = cursor.accept_any(words)
    while True:
        may_be_mysql = dialect.may_be_mysql
        word = cursor.word
        if word in {"UNIQUE", "COMMENT", "INVISIBLE"}:
            _shared_attribute(cursor, found)
        elif (may_be_mysql or found.storage.startswith("ROW")) and word in _GENERATED_WORDS:
            if not _attribute(cursor, found):
                return
        elif word == "COLLATE" and may_be_mysql:
            _attribute(cursor, found)
        elif not (may_be_mysql and _mysql_attribute(cursor, found)):
            return


def _checks(cursor: Cursor, found: _Attributes) -> None:
    """MariaDB's CHECK, which ends a column."""
    if cursor.word == "CHECK" and cursor.dialect.may_be_mariadb:
        found.checks.append(_check(cursor, cursor.start, ""))


def _is_reference(cursor: Cursor) -> bool:
    """Whether CONSTRAINT is followed by REFERENCES, as MariaDB allows."""
    return cursor.word == "CONSTRAINT" and "REFERENCES" in {
        cursor.word_ahead(1),
        cursor.word_ahead(2),
    }


def _references(cursor: Cursor, found: _Attributes) -> None:
    if cursor.dialect.may_be_mariadb and _is_reference(cursor):
        cursor.advance()
        if cursor.word != "REFERENCES":
            cursor.identifier()
    if cursor.word == "REFERENCES":
        found.references = _reference(cursor)


def _column_check(cursor: Cursor) -> Check:
    start = cursor.start
    name = ""
    if cursor.accept("CONSTRAINT") and cursor.word != "CHECK":
        name = cursor.identifier()
    return _check(cursor, start, name)


def default_value(cursor: Cursor) -> Expression:  # noqa: C901 - one branch a clause
    """Read what stands behind DEFAULT: a literal with its sign, a call, or `(expression)`."""
    dialect = cursor.dialect
    start = cursor.token
    if start.text in {"+", "-"}:
        cursor.advance()
        if cursor.kind is not TokenKind.NUMBER or cursor.token.text[:1] not in "0123456789.":
            raise cursor.stop("a number")
        if cursor.token.text[:2].lower() in {"0x", "0b"}:
            raise cursor.stop("a number")
        value = read_expression(cursor, _OPERAND)
        operator = "NEG" if start.text == "-" else "POS"
        return Operation(start.offset, value.end, operator, (value,))
    if start.text == "(" and start.kind is TokenKind.OPERATOR:
        if not (dialect.may_be_mariadb or dialect.has_mysql(8, 0, 13)):
            raise cursor.stop("a literal")
        cursor.advance()
        value = read_expression(cursor)
        cursor.expect_operator(")")
        return value
    if start.text in {"!", "~"} or start.word in {"BINARY", "INTERVAL", "EXISTS", "ROW"}:
        raise cursor.stop("a default value")
    if not dialect.may_be_mariadb:
        if start.word in _NOW:
            return _now(cursor)
        if start.text == "{":
            raise cursor.stop("a literal")
        value = read_expression(cursor, _OPERAND)
        if not isinstance(value, Literal):
            raise Stopped(start, "a literal")
        return value
    return read_expression(cursor, _OPERAND)


def _now(cursor: Cursor) -> Expression:
    start = cursor.token
    if cursor.word not in _NOW:
        raise cursor.stop("CURRENT_TIMESTAMP")
    value = read_expression(cursor, _OPERAND)
    if not isinstance(value, Call):
        raise Stopped(start, "CURRENT_TIMESTAMP")
    return value


# Keys and checks ------------------------------------------------------------------------------


def _constraint(cursor: Cursor, *, is_added: bool) -> Element:
    start = cursor.start
    cursor.expect("CONSTRAINT")
    if is_added and cursor.dialect.may_be_mariadb and cursor.accept("IF", "NOT", "EXISTS"):
        name = cursor.identifier()
        if cursor.word != "CHECK":
            raise cursor.stop("CHECK")
        return _check(cursor, start, name)
    name = ""
    if cursor.word not in {"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"}:
        name = cursor.identifier()
    if cursor.word == "CHECK":
        return _check(cursor, start, name)
    if cursor.word == "FOREIGN":
        return _foreign_key(cursor, start, name, is_added=is_added)
    if cursor.word not in {"PRIMARY", "UNIQUE"}:
        raise cursor.stop("a constraint")
    return _key(cursor, start, name, is_added=is_added)


def _check(cursor: Cursor, at: int, name: str) -> Check:
    cursor.expect("CHECK")
    cursor.expect_operator("(")
    condition_at = cursor.start
    condition = read_expression(cursor)
    condition_end = cursor.end
    cursor.expect_operator(")")
    is_enforced = True
    if cursor.dialect.has_mysql(8):
        if cursor.accept("NOT", "ENFORCED"):
            is_enforced = False
        else:
            cursor.accept("ENFORCED")
    return Check(at, cursor.end, condition, name, is_enforced, condition_at, condition_end)


def _key(cursor: Cursor, at: int, constraint: str, *, is_added: bool) -> KeyDefinition:
    kind = cursor.accept_any(("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"))
    if kind == "PRIMARY":
        cursor.expect("KEY")
    elif not cursor.accept_any(_KEY_WORDS) and not kind:
        raise cursor.stop("KEY")
    if_not_exists = is_added and _accept_if_not_exists(cursor)
    name = algorithm = ""
    if cursor.word != "(":
        if cursor.word != "USING":
            name = cursor.identifier()
        if kind not in {"FULLTEXT", "SPATIAL", "VECTOR"}:
            algorithm = _algorithm(cursor, ("USING", "TYPE") if name else ("USING",))
    key = key_columns(cursor, at, kind=kind or "KEY", name=name, algorithm=algorithm)
    key.constraint = constraint
    key.if_not_exists = if_not_exists
    return key


def key_columns(
    cursor: Cursor, at: int, *, kind: str, name: str, algorithm: str = ""
) -> KeyDefinition:
    """Read a key from its columns' parenthesis on.

    Args:
        cursor: At the parenthesis.
        at: Where the definition begins.
        kind: As in `KeyDefinition`.
        name: Of the index.
        algorithm: What stands before the columns.
    """
    parts = _key_parts(cursor)
    words: set[str] = set()
    parser = ""
    comment: Literal | None = None
    while True:
        if kind == "FULLTEXT" and cursor.accept("WITH", "PARSER"):
            parser = cursor.identifier()
        elif cursor.word == "COMMENT" and cursor.word_ahead(1) != "=":
            cursor.advance()
            comment = string(cursor)
        elif cursor.accept("KEY_BLOCK_SIZE"):
            cursor.accept_operator("=")
            number(cursor)
        elif kind in {"KEY", "UNIQUE", "PRIMARY"} and cursor.word in {"USING", "TYPE"}:
            algorithm = _algorithm(cursor, ("USING", "TYPE"))
        elif not _key_word(cursor, words):
            break
    return KeyDefinition(
        at,
        cursor.end,
        kind=kind,
        name=name,
        constraint="",
        parts=parts,
        algorithm=algorithm,
        parser=parser,
        comment=comment,
        words=frozenset(words),
    )


def _key_word(cursor: Cursor, words: set[str]) -> bool:
    dialect = cursor.dialect
    if cursor.accept("VISIBLE"):
        return True
    if dialect.has_mysql(8) and cursor.accept("INVISIBLE"):
        words.add("INVISIBLE")
    elif dialect.has_mysql(8) and cursor.word in {"ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}:
        cursor.advance()
        cursor.accept_operator("=")
        string(cursor)
    elif dialect.has_mariadb(10, 6) and cursor.accept("IGNORED"):
        words.add("IGNORED")
    elif dialect.has_mariadb(10, 6) and cursor.accept("NOT", "IGNORED"):
        words.add("NOT IGNORED")
    elif dialect.may_be_mariadb and cursor.word == "CLUSTERING":
        accept_engine_option(cursor)
        words.add("CLUSTERING")
    else:
        return dialect.may_be_mariadb and accept_engine_option(cursor)
    return True


def _key_parts(cursor: Cursor) -> tuple[KeyPart, ...]:
    cursor.expect_operator("(")
    parts = [_key_part(cursor)]
    while cursor.accept_operator(","):
        parts.append(_key_part(cursor))
    cursor.expect_operator(")")
    return tuple(parts)


def _key_part(cursor: Cursor) -> KeyPart:
    start = cursor.start
    inner: Expression | None = None
    name, length = "", None
    if cursor.word == "(" and cursor.dialect.has_mysql(8, 0, 13):
        cursor.advance()
        inner = read_expression(cursor)
        cursor.expect_operator(")")
    else:
        name = cursor.identifier()
        if cursor.accept_operator("("):
            length = number(cursor)
            cursor.expect_operator(")")
        if cursor.dialect.may_be_mariadb and cursor.accept("WITHOUT", "OVERLAPS"):
            return KeyPart(start, cursor.end, name)
    is_descending = cursor.accept("DESC")
    if not is_descending:
        cursor.accept("ASC")
    return KeyPart(start, cursor.end, name, inner, length, is_descending)


def _foreign_key(cursor: Cursor, at: int, constraint: str, *, is_added: bool) -> KeyDefinition:
    cursor.expect("FOREIGN", "KEY")
    if_not_exists = is_added and _accept_if_not_exists(cursor)
    name = "" if cursor.word == "(" else cursor.identifier()
    parts = _key_parts(cursor)
    references = _reference(cursor)
    return KeyDefinition(
        at,
        references.end,
        kind="FOREIGN",
        name=name,
        constraint=constraint,
        parts=parts,
        references=references,
        if_not_exists=if_not_exists,
    )


def _reference(cursor: Cursor) -> Reference:
    start = cursor.start
    cursor.expect("REFERENCES")
    table = read_object_name(cursor)
    columns: tuple[str, ...] = ()
    if cursor.word == "(":
        columns = tuple(part.column for part in _key_parts(cursor))
    match = ""
    if cursor.accept("MATCH"):
        match = cursor.accept_any(("FULL", "PARTIAL", "SIMPLE"))
        if not match:
            raise cursor.stop("FULL, PARTIAL or SIMPLE")
    actions: dict[str, str] = {}
    while cursor.word == "ON" and cursor.word_ahead(1) in {"DELETE", "UPDATE"}:
        event = cursor.word_ahead(1)
        if event in actions:
            break
        cursor.advance()
        cursor.advance()
        words = next((words for words in _ACTIONS if cursor.accept(*words)), None)
        if words is None:
            raise cursor.stop("an action")
        actions[event] = " ".join(words)
    return Reference(
        start,
        cursor.end,
        table=table,
        columns=columns,
        on_delete=actions.get("DELETE", ""),
        on_update=actions.get("UPDATE", ""),
        match=match,
    )


def _algorithm(cursor: Cursor, words: tuple[str, ...]) -> str:
    if not cursor.accept_any(words):
        return ""
    found = cursor.accept_any(_ALGORITHMS)
    if not found:
        raise cursor.stop("BTREE or HASH")
    return found


def _accept_if_not_exists(cursor: Cursor) -> bool:
    return cursor.dialect.may_be_mariadb and cursor.accept("IF", "NOT", "EXISTS")


# Shared with other definitions ----------------------------------------------------------------


def string(cursor: Cursor) -> Literal:
    """Read a string."""
    token = cursor.token
    if token.kind is not TokenKind.STRING:
        raise cursor.stop("a string")
    cursor.advance()
    return Literal(token.offset, token.end, LiteralKind.STRING)


def number(cursor: Cursor) -> int:
    """Read a whole number without a sign."""
    token = cursor.token
    if token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
        raise cursor.stop("a number")
    cursor.advance()
    return int(token.text)
