"""Texts of one form are the same but for literals, however a session reads them."""

from __future__ import annotations

import random
from itertools import product

import pytest

from binlane.live.gateway.judge import SeenStatement
from binlane.live.gateway.known_statements import KnownStatements
from binlane.log.kernels.load import is_compiled
from binlane.statements.sql.reading import Key, key_of
from binlane.statements.sql.servers import Dialect

pytestmark = pytest.mark.skipif(not is_compiled(("passing",)), reason="takes long otherwise")

_PIECES = (
    *(
        "a",
        "t1",
        "c",
        "_x",
        "n$",
        "e5",
        "x",
        "b",
        "N",
        "_latin1",
        "LIMIT",
        "FROM",
        "WHERE",
        "BETWEEN",
    ),
    *(
        "1",
        "12",
        "0",
        "007",
        "0x1F",
        "0b01",
        "1.5",
        ".5",
        "5.",
        "1e5",
        "1e+5",
        "18446744073709551616",
    ),
    *("'a'", "''", "'it''s'", "'1'", "'a b'", "'--'", "'#'", "'", '"', '"a"', "`a`", "`", "'\\''"),
    *(
        "(",
        ")",
        ",",
        "=",
        "<",
        ">",
        "!",
        "*",
        "+",
        "-",
        "--",
        "-- ",
        "%",
        ".",
        "@",
        "#",
        "/",
        ";",
        "/*!",
    ),
    *(
        "\n",
        "\t",
        "ä",
        "'ä'",
        "AND",
        "OR",
        "NOT",
        "IN",
        "x'4D'",
        "b'1'",
        "n'a'",
        "DATE'2000-01-01'",
    ),
)
_BEGINNINGS = (
    "SELECT ",
    "SELECT ",
    "INSERT INTO t VALUES ",
    "UPDATE t SET a=",
    "DELETE FROM t ",
    "BEGIN ",
)
_DIALECTS = [
    Dialect(flavor=flavor, ansi_quotes=quotes, no_backslash_escapes=escapes)
    for flavor, quotes, escapes in product(("mariadb", "mysql"), (False, True), (False, True))
]
_OF_SYSBENCH = (
    "SELECT c FROM sbtest{} WHERE id={}",
    "SELECT c FROM sbtest{} WHERE id BETWEEN {} AND {}",
    "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN {} AND {} ORDER BY c",
    "UPDATE sbtest{} SET k=k+{} WHERE id={}",
    "INSERT INTO sbtest{} (id, k, c, pad) VALUES ({}, {}, '1-2', 'a')",
)


def _text(numbers: random.Random) -> str:
    pieces = numbers.choices(_PIECES, k=numbers.randrange(1, 7))
    first = numbers.choice(_BEGINNINGS)
    return first + "".join(piece + numbers.choice(("", " ")) for piece in pieces)


def test_a_form_has_one_key() -> None:
    """Keys say what a statement does: with literals of one text it is that of the text with others."""
    numbers = random.Random(1)
    known = KnownStatements()
    found: dict[int, tuple[str, list[Key]]] = {}
    shared = 0
    for _ in range(60_000):
        text = _text(numbers)
        number = known.number_of(text.encode())
        if number >= 0:
            keys = [key_of(text.strip(), dialect) for dialect in _DIALECTS]
            shared += number in found and found[number][0] != text
            assert found.setdefault(number, (text, keys))[1] == keys, (text, found[number][0])
    assert shared > 1_000


@pytest.mark.parametrize("text", _OF_SYSBENCH)
def test_texts_of_an_application_have_a_form(text: str) -> None:
    known = KnownStatements()
    first, other = (
        known.number_of(text.format(3, *each).encode()) for each in ((1, 2), (35, 4711))
    )
    assert first == other >= 0
    assert known.number_of(text.format(4, 1, 2).encode()) not in {first, -1}
    assert known.sample(first) == text.format(3, 1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT @@version",
        "SELECT 1; SELECT 2",
        "SELECT 1 /* a */",
        "SELECT 1 -- a",
        "SELECT 1 # a",
        "SELECT 'a\\'",
        'SELECT "a"',
        "SELECT `a`",
        "SELECT 'ä'",
        "SELECT N'a'",
        "SELECT 'it''s'",
        "SELECT 'open",
        "CREATE TABLE t (a INT)",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (@a)",
        "SELECT * FROM information_schema.tables",
        f"SELECT {'a' * 300}",
        f"SELECT '{'a' * 5000}'",
    ],
)
def test_what_may_be_read_otherwise_has_no_form(text: str) -> None:
    assert KnownStatements().number_of(text.encode()) == -1


def test_there_is_an_end_of_forms() -> None:
    known = KnownStatements()
    numbers = [known.number_of(f"SELECT a{number} FROM t".encode()) for number in range(9_000)]
    assert len({*numbers}) == len([one for one in numbers if one >= 0]) + 1
    again = [known.number_of(f"SELECT a{number} FROM t".encode()) for number in range(9_000)]
    assert again == numbers


def test_all_is_forgotten_when_there_are_too_many_transitions() -> None:
    """Numbers are never given again, so that sessions which still pass have none of another statement."""
    known = KnownStatements()
    places = [object() for _ in range(3_000)]
    numbers = [known.place_of(place) for place in places]
    prepared = known.number_of_prepared("SELECT ?", b"\3\0", ())
    known.add(SeenStatement(places[-1], "an effect"), prepared, numbers[-1])
    assert len({*numbers}) == 3_000
    assert known.place_of(places[0]) > numbers[-1]
    assert known.leads_from(numbers[-1])
    assert not known.leads_from(numbers[0])
    assert known.number_of_prepared("SELECT ?", b"\3\0", ()) == prepared
    transitions = known.transitions
    assert [one.effect for one in transitions.values()] == ["an effect"]
    for _ in range(3_000):
        known.place_of(object())
    assert not known.transitions
    assert not known.table.any()
    assert transitions, "sessions that pass keep them"
    assert known.number_of_prepared("SELECT ?", b"\3\0", ()) > prepared


def test_a_transition_that_is_known_better_takes_the_place_of_the_one_before() -> None:
    known = KnownStatements()
    begin, first, second = (known.place_of(name) for name in ("begin", "first", "second"))
    known.add(SeenStatement("begin", "old"), 7, first)
    known.add(SeenStatement("begin", "new"), 7, second)
    assert known.transitions == {(begin, 7): (second, "new")}
    assert int((known.table != 0).sum()) == 4
