"""ALTER TABLE.

Source: MySQL 9.7, sql/sql_yacc.yy: alter_table_stmt, alter_list_item; MariaDB 11.8: alter_list_item,
alter_commands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from binlane.sql.parser.columns import (
    column_definition,
    default_value,
    element,
    is_key,
    number,
    period,
)
from binlane.sql.parser.cursor import Cursor
from binlane.sql.parser.literals import read_column
from binlane.sql.parser.queries import read_object_name
from binlane.sql.parser.tables import (
    Head,
    algorithm_or_lock,
    new_partition,
    new_partitions,
    options_with_blanks,
    partitioning,
)
from binlane.sql.parser.types import accept_charset, charset_name, collation_name
from binlane.sql.tree.definitions import (
    AlterAction,
    AlterTable,
    Check,
    Column,
    KeyDefinition,
    Period,
    TableOption,
)
from binlane.sql.tree.expressions import Expression

_PLACES: Final = ("FIRST", "AFTER")
_LOCAL: Final = ("NO_WRITE_TO_BINLOG", "LOCAL")
_ON_PARTITIONS: Final[dict[str, tuple[str, ...]]] = {
    "REBUILD": (),
    "OPTIMIZE": (),
    "ANALYZE": (),
    "CHECK": ("QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED"),
    "REPAIR": ("QUICK", "EXTENDED", "USE_FRM"),
}
"""What is done to partitions, with the words that may stand behind them."""


def alter_table(cursor: Cursor, head: Head, modifiers: frozenset[str]) -> AlterTable:
    """Read what stands behind ALTER TABLE."""
    dialect = cursor.dialect
    words = set(modifiers)
    if dialect.may_be_mariadb and cursor.accept("IF", "EXISTS"):
        words.add("IF EXISTS")
    name = read_object_name(cursor)
    if dialect.may_be_mariadb and not cursor.accept("NOWAIT") and cursor.accept("WAIT"):
        number(cursor)
    alone = _alone(cursor)
    actions = [alone] if alone else _actions(cursor)
    return AlterTable(head.at, cursor.end, name, tuple(actions), frozenset(words))


def _actions(cursor: Cursor) -> list[AlterAction]:
    actions: list[AlterAction] = []
    while not _is_partitioning(cursor) and _may_begin(cursor, actions):
        actions += _action(cursor)
        if not cursor.accept_operator(","):
            break
        if cursor.is_at_end or _is_partitioning(cursor):
            raise cursor.stop("an action")
    if _is_partitioning(cursor):
        start = cursor.start
        if cursor.accept("REMOVE", "PARTITIONING"):
            actions.append(_made(cursor, start, "REMOVE PARTITIONING"))
        else:
            found = partitioning(cursor)
            actions.append(_made(cursor, start, "PARTITION BY", partitioning=found))
    return actions


def _may_begin(cursor: Cursor, actions: list[AlterAction]) -> bool:
    """An ALTER TABLE without any action is one, too."""
    return bool(actions) or not (cursor.is_at_end or cursor.word == ";")


def _is_partitioning(cursor: Cursor) -> bool:
    following = cursor.word_ahead(1)
    return (cursor.word, following) in {("PARTITION", "BY"), ("REMOVE", "PARTITIONING")}


def _made(cursor: Cursor, at: int, kind: str, **fields: Any) -> AlterAction:
    return AlterAction(at, cursor.end, kind, **fields)


# What stands alone ----------------------------------------------------------------------------


def _alone(cursor: Cursor) -> AlterAction | None:
    """Read an action that no other stands beside, if one comes next."""
    start = cursor.start
    dialect = cursor.dialect
    word, following = cursor.word, cursor.word_ahead(1)
    if word in {"DISCARD", "IMPORT"} and following == "TABLESPACE":
        cursor.advance()
        cursor.advance()
        return _made(cursor, start, f"{word} TABLESPACE")
    if word in {"SECONDARY_LOAD", "SECONDARY_UNLOAD"} and dialect.has_mysql(8):
        cursor.advance()
        if cursor.accept("PARTITION"):
            cursor.expect_operator("(")
            _names(cursor)
            cursor.expect_operator(")")
        return _made(cursor, start, "FORCE", words=(word,))
    if word == "CONVERT" and dialect.may_be_mariadb and following in {"PARTITION", "TABLE"}:
        return _convert(cursor)
    if following != "PARTITION":
        return None
    return _on_partitions(cursor)


def _convert(cursor: Cursor) -> AlterAction:
    start = cursor.start
    cursor.expect("CONVERT")
    if cursor.accept("PARTITION"):
        name = cursor.identifier()
        cursor.expect("TO", "TABLE")
        table = read_object_name(cursor)
        words: tuple[str, ...] = ("CONVERT",)
        return _made(cursor, start, "PARTITION", name=name, table=table, words=words)
    cursor.expect("TABLE")
    table = read_object_name(cursor)
    cursor.expect("TO")
    found = new_partition(cursor)
    _validation(cursor, since=(11, 4))
    return _made(
        cursor, start, "PARTITION", table=table, partitioning=found, words=("CONVERT TABLE",)
    )


def _validation(cursor: Cursor, *, since: tuple[int, ...]) -> None:
    may_stand = cursor.dialect.has_mariadb(*since) or cursor.dialect.may_be_mysql
    if may_stand and cursor.accept_any(("WITH", "WITHOUT")):
        cursor.expect("VALIDATION")


def _on_partitions(cursor: Cursor) -> AlterAction | None:  # noqa: C901, PLR0912 - one branch a clause
    start = cursor.start
    verb = cursor.word
    mariadb = cursor.dialect.may_be_mariadb
    names: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    if verb not in {*_ON_PARTITIONS, *_PARTITION_VERBS}:
        return None
    cursor.advance()
    cursor.advance()
    if verb in _ON_PARTITIONS or verb in {"ADD", "COALESCE", "REORGANIZE"}:
        fields["is_local"] = bool(cursor.accept_any(_LOCAL))
    match verb:
        case "ADD":
            fields["if_exists"] = mariadb and cursor.accept("IF", "NOT", "EXISTS")
            if cursor.accept("PARTITIONS"):
                number(cursor)
            elif cursor.word == "(":
                fields["partitioning"] = new_partitions(cursor)
        case "DROP":
            fields["if_exists"] = mariadb and cursor.accept("IF", "EXISTS")
            names = _names(cursor)
        case "COALESCE":
            number(cursor)
        case "REORGANIZE":
            if not cursor.is_at_end and cursor.word != ";":
                names = _names(cursor)
                cursor.expect("INTO")
                fields["partitioning"] = new_partitions(cursor)
        case "EXCHANGE":
            names = (cursor.identifier(),)
            cursor.expect("WITH", "TABLE")
            fields["table"] = read_object_name(cursor)
            _validation(cursor, since=(11, 4))
        case "DISCARD" | "IMPORT":
            if not cursor.dialect.may_be_mysql:
                raise cursor.stop("TABLESPACE")
            names = _all_or_names(cursor)
            cursor.expect("TABLESPACE")
        case _:
            names = _all_or_names(cursor)
            while cursor.accept_any(_ON_PARTITIONS.get(verb, ())) or (
                verb == "CHECK" and cursor.accept("FOR", "UPGRADE")
            ):
                pass
    return _made(cursor, start, "PARTITION", words=(verb, *names), **fields)


_PARTITION_VERBS: Final = frozenset(
    {"ADD", "DROP", "COALESCE", "REORGANIZE", "EXCHANGE", "TRUNCATE", "DISCARD", "IMPORT"}
)


def _names(cursor: Cursor) -> tuple[str, ...]:
    found = [cursor.identifier()]
    while cursor.accept_operator(","):
        found.append(cursor.identifier())
    return tuple(found)


def _all_or_names(cursor: Cursor) -> tuple[str, ...]:
    return ("ALL",) if cursor.accept("ALL") else _names(cursor)


# What stands in a list ------------------------------------------------------------------------


def _action(cursor: Cursor) -> list[AlterAction]:
    start = cursor.start
    read = _READERS.get(cursor.word)
    if read is not None:
        found = read(cursor, start)
        if found is not None:
            return [found]
    options = options_with_blanks(cursor)
    if not options:
        raise cursor.stop("an action of ALTER TABLE")
    return [AlterAction(each.at, each.end, "OPTION", option=each) for each in options]


def _if_exists(cursor: Cursor) -> bool:
    return cursor.dialect.may_be_mariadb and cursor.accept("IF", "EXISTS")


def _add(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("ADD")
    mariadb = cursor.dialect.may_be_mariadb
    if mariadb and cursor.accept("SYSTEM", "VERSIONING"):
        return _made(cursor, at, "ADD SYSTEM VERSIONING")
    if mariadb and cursor.word == "PERIOD":
        if cursor.word_ahead(1) == "IF":
            name = cursor.advance().value
            cursor.expect("IF", "NOT", "EXISTS")
            cursor.expect("FOR")
            return _added_period(cursor, at, name)
        if cursor.word_ahead(1) == "FOR":
            return _made(cursor, at, "ADD PERIOD", period=period(cursor))
    has_word = cursor.accept("COLUMN")
    _no_column(cursor, has_word=has_word)
    if not has_word and (cursor.word in {"CONSTRAINT", "CHECK", "FOREIGN"} or is_key(cursor)):
        return _added(cursor, at, element(cursor, is_added=True))
    if_not_exists = mariadb and cursor.accept("IF", "NOT", "EXISTS")
    if cursor.accept_operator("("):
        elements = [element(cursor)]
        while cursor.accept_operator(","):
            elements.append(element(cursor))
        cursor.expect_operator(")")
        return _made(
            cursor,
            at,
            "ADD COLUMN",
            columns=tuple(each for each in elements if isinstance(each, Column)),
            keys=tuple(each for each in elements if isinstance(each, KeyDefinition)),
            checks=tuple(each for each in elements if isinstance(each, Check)),
            if_exists=if_not_exists,
        )
    found = _column(cursor)
    position, after = _place(cursor)
    return _made(
        cursor,
        at,
        "ADD COLUMN",
        columns=(found,),
        position=position,
        after=after,
        if_exists=if_not_exists,
    )


def _no_column(cursor: Cursor, *, has_word: bool) -> None:
    """MariaDB takes PERIOD and SYSTEM for no column unless COLUMN stands before them."""
    if not has_word and cursor.dialect.flavor == "mariadb" and cursor.word in {"PERIOD", "SYSTEM"}:
        raise cursor.stop("a column")


def _added_period(cursor: Cursor, at: int, _: str) -> AlterAction:
    start = cursor.ahead(-1).offset
    name = cursor.identifier()
    cursor.expect_operator("(")
    first = cursor.identifier()
    cursor.expect_operator(",")
    last = cursor.identifier()
    cursor.expect_operator(")")
    found = Period(start, cursor.end, name, first, last)
    return _made(cursor, at, "ADD PERIOD", period=found, if_exists=True)


def _added(cursor: Cursor, at: int, found: object) -> AlterAction:
    if isinstance(found, KeyDefinition):
        return _made(
            cursor, at, "ADD KEY", name=found.name, key=found, if_exists=found.if_not_exists
        )
    assert isinstance(found, Check)
    return _made(cursor, at, "ADD CHECK", name=found.name, check=found)


def _column(cursor: Cursor) -> Column:
    at = cursor.start
    return column_definition(cursor, cursor.identifier(), at)


def _place(cursor: Cursor) -> tuple[str, str]:
    word = cursor.accept_any(_PLACES)
    return word, cursor.identifier() if word == "AFTER" else ""


def _drop(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("DROP")
    dialect = cursor.dialect
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        return _made(cursor, at, "DROP PRIMARY KEY", name="PRIMARY")
    if cursor.accept("FOREIGN"):
        cursor.expect("KEY")
        return _dropped(cursor, at, "DROP FOREIGN KEY")
    if cursor.accept_any(("KEY", "INDEX")):
        return _dropped(cursor, at, "DROP KEY")
    if cursor.accept("CONSTRAINT"):
        return _dropped(cursor, at, "DROP CONSTRAINT")
    if cursor.word == "CHECK" and dialect.has_mysql(8):
        cursor.advance()
        return _dropped(cursor, at, "DROP CHECK")
    if dialect.may_be_mariadb:
        if cursor.accept("SYSTEM", "VERSIONING"):
            return _made(cursor, at, "DROP SYSTEM VERSIONING")
        if cursor.word == "PERIOD" and cursor.word_ahead(1) in {"FOR", "IF"}:
            cursor.advance()
            if_exists = cursor.accept("IF", "EXISTS")
            cursor.expect("FOR")
            name = cursor.identifier()
            return _made(cursor, at, "DROP PERIOD", name=name, if_exists=if_exists)
    _no_column(cursor, has_word=cursor.accept("COLUMN"))
    found = _dropped(cursor, at, "DROP COLUMN")
    cursor.accept_any(("RESTRICT", "CASCADE"))
    return found


def _dropped(cursor: Cursor, at: int, kind: str) -> AlterAction:
    if_exists = _if_exists(cursor)
    return _made(cursor, at, kind, name=cursor.identifier(), if_exists=if_exists)


def _modify(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("MODIFY")
    cursor.accept("COLUMN")
    if_exists = _if_exists(cursor)
    found = _column(cursor)
    return _changed(cursor, at, "MODIFY COLUMN", found.name, found, if_exists=if_exists)


def _change(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("CHANGE")
    cursor.accept("COLUMN")
    if_exists = _if_exists(cursor)
    name = cursor.identifier()
    return _changed(cursor, at, "CHANGE COLUMN", name, _column(cursor), if_exists=if_exists)


def _changed(
    cursor: Cursor, at: int, kind: str, name: str, found: Column, *, if_exists: bool
) -> AlterAction:
    position, after = _place(cursor)
    return _made(
        cursor,
        at,
        kind,
        name=name,
        columns=(found,),
        position=position,
        after=after,
        if_exists=if_exists,
    )


def _rename(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("RENAME")
    word = cursor.word
    if word in {"KEY", "INDEX"} or (word == "COLUMN" and _has_columns_to_rename(cursor)):
        kind = "RENAME COLUMN" if word == "COLUMN" else "RENAME KEY"
        cursor.advance()
        if_exists = _if_exists(cursor)
        name = cursor.identifier()
        cursor.expect("TO")
        new = cursor.identifier()
        return _made(cursor, at, kind, name=name, new_name=new, if_exists=if_exists)
    if not cursor.accept_any(("TO", "AS")):
        cursor.accept_operator("=")
    return _made(cursor, at, "RENAME", table=read_object_name(cursor))


def _has_columns_to_rename(cursor: Cursor) -> bool:
    return cursor.dialect.has_mysql(8) or cursor.dialect.has_mariadb(10, 5, 2)


def _alter(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("ALTER")
    dialect = cursor.dialect
    if cursor.word in {"INDEX", "KEY"}:
        cursor.advance()
        if_exists = _if_exists(cursor)
        name = cursor.identifier()
        return _made(
            cursor, at, "ALTER KEY", name=name, words=(_visibility(cursor),), if_exists=if_exists
        )
    if dialect.has_mysql(8) and cursor.word in {"CHECK", "CONSTRAINT"}:
        cursor.advance()
        name = cursor.identifier()
        words = ("NOT ENFORCED",) if cursor.accept("NOT") else ("ENFORCED",)
        cursor.expect("ENFORCED")
        return _made(cursor, at, "ALTER CONSTRAINT", name=name, words=words)
    cursor.accept("COLUMN")
    if_exists = _if_exists(cursor)
    name = cursor.identifier()
    fields: dict[str, Any] = {"name": name, "if_exists": if_exists}
    if cursor.accept("DROP", "DEFAULT"):
        return _made(cursor, at, "ALTER COLUMN", words=("DROP DEFAULT",), **fields)
    cursor.expect("SET")
    if cursor.accept("DEFAULT"):
        fields["default_at"] = cursor.start
        value = default_value(cursor)
        return _made(cursor, at, "ALTER COLUMN", default=value, words=("SET DEFAULT",), **fields)
    word = cursor.accept_any(("VISIBLE", "INVISIBLE")) if dialect.has_mysql(8, 0, 23) else ""
    if not word:
        raise cursor.stop("DEFAULT")
    return _made(cursor, at, "ALTER COLUMN", words=(word,), **fields)


def _visibility(cursor: Cursor) -> str:
    dialect = cursor.dialect
    if dialect.has_mysql(8) and (word := cursor.accept_any(("VISIBLE", "INVISIBLE"))):
        return word
    if dialect.has_mariadb(10, 6):
        if cursor.accept("IGNORED"):
            return "IGNORED"
        if cursor.accept("NOT", "IGNORED"):
            return "NOT IGNORED"
    raise cursor.stop("VISIBLE or INVISIBLE")


def _charset(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("CONVERT", "TO")
    if not accept_charset(cursor):
        raise cursor.stop("CHARACTER SET")
    start = cursor.ahead(-1).offset
    option = TableOption(start, -1, "CHARACTER SET", charset_name(cursor))
    option.end = cursor.end
    collation = collation_name(cursor) if cursor.accept("COLLATE") else ""
    return _made(cursor, at, "CONVERT", option=option, collation=collation)


def _order(cursor: Cursor, at: int) -> AlterAction:
    cursor.expect("ORDER", "BY")
    found: list[Expression] = []
    while True:
        found.append(read_column(cursor))
        cursor.accept_any(("ASC", "DESC"))
        if not cursor.accept_operator(","):
            break
    return _made(cursor, at, "ORDER BY", expressions=tuple(found))


def _keys(cursor: Cursor, at: int) -> AlterAction:
    word = cursor.advance().word
    cursor.expect("KEYS")
    return _made(cursor, at, f"{word} KEYS")


def _force(cursor: Cursor, at: int) -> AlterAction:
    cursor.advance()
    return _made(cursor, at, "FORCE")


def _how(cursor: Cursor, at: int) -> AlterAction:
    word = cursor.advance().word
    cursor.accept_operator("=")
    return _made(cursor, at, word, words=(algorithm_or_lock(cursor, word),))


def _checked(cursor: Cursor, at: int) -> AlterAction | None:
    if cursor.word_ahead(1) != "VALIDATION" or not cursor.dialect.may_be_mysql:
        return None
    word = cursor.advance().word
    cursor.advance()
    return _made(cursor, at, "VALIDATION", words=(word,))


_READERS: Final[dict[str, Callable[[Cursor, int], AlterAction | None]]] = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _change,
    "RENAME": _rename,
    "ALTER": _alter,
    "CONVERT": _charset,
    "ORDER": _order,
    "ENABLE": _keys,
    "DISABLE": _keys,
    "FORCE": _force,
    "ALGORITHM": _how,
    "LOCK": _how,
    "WITH": _checked,
    "WITHOUT": _checked,
}
