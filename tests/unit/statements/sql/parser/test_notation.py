"""Grammar as text: what its signs mean, and that all that it names is there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from binlane.statements.sql.parser import Stopped, cursor_over
from binlane.statements.sql.parser.cursor import Cursor
from binlane.statements.sql.parser.forms import GRAMMAR
from binlane.statements.sql.parser.notation import Notation, TokenReader
from binlane.statements.sql.servers import ANY, Dialect
from binlane.statements.sql.tree.expressions import Node

MARIADB = Dialect(flavor="mariadb", version=(10, 11, 14))
MYSQL = Dialect(flavor="mysql", version=(9, 7, 0))


@dataclass(slots=True, eq=False)
class Found(Node):
    """What the rules of these tests become."""

    name: str = ""
    names: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    is_there: bool = False
    begins_at: int = -1
    verb: str = ""


def _read(rule: str, text: str, dialect: Dialect = ANY) -> Found:
    readers = {"name": TokenReader(Cursor.identifier, "a name", lambda cursor: cursor.is_at_name)}
    notation = Notation((f"\nRULE = {rule}",), readers, {"Found": Found})
    cursor = cursor_over(text, dialect)
    found: Found = notation.of(dialect).rule("RULE").node(cursor)
    cursor.expect_end()
    return found


def test_fields_take_the_form_that_they_have() -> None:
    rule = (
        'SET begins_at:^ is_there:[IF EXISTS] names:name, ... [words:{ON | OFF} ...] -> Found "SET"'
    )
    found = _read(rule, "SET IF EXISTS a, b ON OFF")
    assert found.is_there
    assert (found.names, found.words) == (("a", "b"), frozenset(("ON", "OFF")))
    assert (found.at, found.end, found.begins_at, found.verb) == (0, 25, 4, "SET")
    assert not _read(rule, "SET a").is_there


@pytest.mark.parametrize(
    ("rule", "text", "offset", "expected"),
    [
        ("SET {ON | OFF} -> Found", "SET x", 4, "OFF or ON"),
        ('SET {ON | OFF | "a switch"} -> Found', "SET x", 4, "a switch"),
        ("SET [IF EXISTS] name -> Found", "SET IF x", 7, "EXISTS"),
        ("SET [ON+UPDATE name] ON DELETE -> Found", "SET ON x", 7, "DELETE"),
        ("SET {ON UPDATE | ON DELETE name} -> Found", "SET ON DELETE 1", 14, "a name"),
        ("SET name, ... -> Found", "SET a, 1", 7, "a name"),
        ("SET [!{ON} name] ON -> Found", "SET a b", 6, "ON"),
    ],
)
def test_who_finds_something_else_is_told_where(
    rule: str, text: str, offset: int, expected: str
) -> None:
    with pytest.raises(Stopped) as stopped:
        _read(rule, text)
    assert (stopped.value.token.offset, stopped.value.expected) == (offset, expected)


def test_conditions_say_whose_it_is() -> None:
    rule = (
        "SET {name:ON @mariadb>=10.11|mysql>=9.8 | name:OFF @!mariadb | name:ALL @mysql<9} -> Found"
    )
    assert _read(rule, "SET ON", MARIADB).name == "ON"
    assert _read(rule, "SET OFF", MYSQL).name == "OFF"
    assert _read(rule, "SET ALL").name == "ALL"
    for text, dialect in (("SET OFF", MARIADB), ("SET ON", MYSQL), ("SET ALL", MYSQL)):
        with pytest.raises(Stopped):
            _read(rule, text, dialect)


@pytest.mark.parametrize(
    "dialect", [ANY, MARIADB, MYSQL, Dialect(flavor="mysql", version=(5, 7, 40))]
)
def test_all_that_the_grammar_names_is_there(dialect: Dialect) -> None:
    GRAMMAR.of(dialect).translate_all()


def test_two_rules_have_two_names() -> None:
    with pytest.raises(AssertionError, match="two rules are called a"):
        Notation(("a = ON\na = OFF",), {}, {})
