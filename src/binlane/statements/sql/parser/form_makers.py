"""Nodes made of the fields that forms of the notation have read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from binlane.statements.sql.parser.cursor import Cursor, NotAnalysed
from binlane.statements.sql.parser.notation_readers import Fields, Maker, maker
from binlane.statements.sql.parser.reserved_words import words_of
from binlane.statements.sql.parser.types import (
    may_be_compressed,
)
from binlane.statements.sql.tree import definitions, statements
from binlane.statements.sql.tree.definitions import (
    AlterAction,
    Check,
    Column,
    CreateIndex,
    KeyDefinition,
)
from binlane.statements.sql.tree.expressions import (
    Node,
    TableUse,
)
from binlane.statements.sql.tree.statements import (
    Administration,
    Block,
    Diagnostics,
    Transaction,
    VariableDeclaration,
)

# Nodes that are made otherwise -------------------------------------------------------------------


_Made = TypeVar("_Made", bound=Node)
VERB_LENGTH: Final = 3
"""Words that name a command, at most; none of the following is one of them."""
NO_VERB_WORDS: Final = words_of("FROM IN LIKE WHERE FOR LIMIT TO WITH BEFORE")


def _column(cursor: Cursor, at: int, found: Fields) -> Column:
    """A column of its type and attributes; SERIAL stands for several."""
    (kind,) = found["type"]
    collations = found.pop("collation", [])
    if len(collations) > 1 and cursor.dialect.flavor == "mysql":
        raise cursor.stop("one COLLATE")
    if collations:
        kind.collation = collations[-1]
    words, keys = set(found.pop("words", ())), found.pop("key", [])
    if "COMPRESSED" in words and not may_be_compressed(cursor, kind.name):
        raise cursor.stop("a type that has COMPRESSED")
    nullity = found.pop("nullity", [])
    if kind.name == "SERIAL":
        words.add("SERIAL")
        found["is_auto_increment"] = [True]
        nullity, keys = nullity or ["NOT NULL"], [*keys, "UNIQUE"]
    if "NULL" in nullity:
        words.add("NULL")
    if nullity:
        found["is_nullable"] = [nullity[-1] == "NULL"]
    if keys:
        found["key"] = [min(keys)]
    if "UNIQUE" in keys:
        words.add("UNIQUE")
    if words:
        found["words"] = list(words)
    return _of(Column, cursor, at, found)


def _check(cursor: Cursor, at: int, found: Fields) -> Check:
    if "constraint" in found:
        found["name"] = found.pop("constraint")
    return _of(Check, cursor, at, found)


def _key(cursor: Cursor, at: int, found: Fields) -> KeyDefinition:
    return _of(KeyDefinition, cursor, at, {"name": [""], "constraint": [""], **found})


def _index(cursor: Cursor, at: int, found: Fields) -> CreateIndex:
    """CREATE INDEX, whose table stands inside of what the key is."""
    words = ["=".join(text.replace("=", "").split()) for text in found.pop("locks", ())]
    if found.pop("is_or_replace", None):
        words.append("OR REPLACE")
    (table,), (key_at,), (key_end,) = (found.pop(each) for each in ("table", "key_at", "key_end"))
    key = _key(cursor, key_at, {"kind": ["KEY"], **found})
    key.end = key_end
    return CreateIndex(at, cursor.end, table, key, frozenset(words))


def _setting(_: Cursor, __: int, found: Fields) -> Any:
    """A setting of a sequence and its number; None where it has none."""
    (name,), (value,) = found["name"], found.get("value", [None])
    return name, value


def _pair(_: Cursor, __: int, found: Fields) -> Any:
    return found["old"][0], found["new"][0]


def _changed(cursor: Cursor, at: int, found: Fields) -> AlterAction:
    return _of(AlterAction, cursor, at, {"name": [found["columns"][0].name], **found})


def _added(cursor: Cursor, at: int, found: Fields) -> AlterAction:
    """ADD of one key or check."""
    (item,) = found["item"]
    if isinstance(item, Check):
        return AlterAction(
            at, cursor.end, "ADD CHECK", name=item.name, check=item, if_exists=item.if_not_exists
        )
    return AlterAction(
        at, cursor.end, "ADD KEY", name=item.name, key=item, if_exists=item.if_not_exists
    )


def _added_columns(cursor: Cursor, at: int, found: Fields) -> AlterAction:
    """ADD of columns, with keys and checks among them."""
    elements = found.pop("elements")
    fields = {"columns": Column, "keys": KeyDefinition, "checks": Check}
    for name, kind in fields.items():
        found[name] = [each for each in elements if isinstance(each, kind)]
    return _of(AlterAction, cursor, at, {"kind": ["ADD COLUMN"], **found})


def _begun(cursor: Cursor, at: int, found: Fields) -> Transaction:
    if {"READ ONLY", "READ WRITE"} <= set(found.get("options", ())):
        raise cursor.stop("one access mode")
    return _of(Transaction, cursor, at, {"verb": ["START TRANSACTION"], **found})


def _command(cursor: Cursor, at: int, found: Fields) -> Administration:
    """A command, by the first words that name it."""
    words = found.pop("verb", [])
    for word in found.pop("words")[0].split():
        if len(words) == VERB_LENGTH or not word[0].isalpha() or word in NO_VERB_WORDS:
            break
        words.append(word)
    return _of(Administration, cursor, at, {"verb": [" ".join(words)], **found})


def _variables(cursor: Cursor, at: int, found: Fields) -> VariableDeclaration:
    """Variables, of which the first name was read like that of a condition or cursor."""
    return _of(VariableDeclaration, cursor, at, {"names": found.pop("name"), **found})


def _locked(cursor: Cursor, at: int, found: Fields) -> Any:
    """A table with the words of its lock."""
    alias = found["alias"][0] if "alias" in found else None
    return TableUse(at, cursor.end, found["name"][0], alias), found["words"][0]


def _diagnostics(cursor: Cursor, at: int, found: Fields) -> Diagnostics:
    found["items"] = list(zip(found.pop("names"), found["targets"], strict=True))
    return _of(Diagnostics, cursor, at, {"verb": ["GET DIAGNOSTICS"], **found})


def _of(kind: type[_Made], cursor: Cursor, at: int, found: Fields) -> _Made:
    make: Any = maker
    node: _Made = make(kind)(cursor, at, found)
    return node


def defined_body(cursor: Cursor) -> Node:
    """The body of a program that is made: to the end where that is sql_mode ORACLE's and not read."""
    index, start = cursor.index, cursor.start
    try:
        return cursor.grammar.body(cursor)
    except NotAnalysed:
        if not cursor.dialect.is_oracle:
            raise
    cursor.index = index
    while not cursor.is_at_end:
        cursor.advance()
    return Block(start, cursor.end, (), ())


MAKERS: Final[Mapping[str, Maker | type[Node]]] = {
    **{
        name: kind
        for module in (definitions, statements)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Node)
    },
    "begun": _begun,
    "command": _command,
    "diagnostics": _diagnostics,
    "locked": _locked,
    "KeyDefinition": _key,
    "added": _added,
    "added_columns": _added_columns,
    "changed": _changed,
    "check": _check,
    "column": _column,
    "index": _index,
    "pair": _pair,
    "setting": _setting,
    "variables": _variables,
}
