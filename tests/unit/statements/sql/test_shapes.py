"""Facts by shape: what they say is what the statement says that is read alone."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.statements.sql import reading
from binlane.statements.sql.facts import Shift, StatementFacts
from binlane.statements.sql.reading import ends_of, key_of
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError, TokenKind, read_tokens
from binlane.statements.sql.tree.expressions import Operation
from binlane.statements.sql.tree.statements import Update
from tests.reading import read

VECTORS = Path(__file__).parents[3] / "vectors"
STRINGS = ("", "a", "it''s", "long text (with, things)", r"x\'y", "#", "--", "`", "/*", "LIMIT 0")
LITERAL = re.compile(
    r"(?<![\w.`@'\"])(?:\d+(?![\w.])|'[\w ,;:.%-]*'(?!')|\"[\w ,;:.%-]*\"(?!\"))(?!\w)"
)


def _alone(statement: str, *, ansi_quotes: bool = False) -> StatementFacts:
    """The facts of a statement, with no others known."""
    return reading._read(statement, "d", Dialect(ansi_quotes=ansi_quotes))


def _statements() -> Iterator[str]:
    for path in sorted((VECTORS / "statements").glob("*.txt")):
        yield from path.read_text().splitlines()[1:]
    for path in sorted((VECTORS / "effects").glob("*.txt")):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                yield line.split("|", 4)[-1].strip()


def _with_others(statement: str, choice: random.Random) -> str:
    """The statement with other literals; what is none may change too, if it looks like one."""

    def other(found: re.Match[str]) -> str:
        if found[0][0] in "'\"":
            return f"'{choice.choice(STRINGS)}'"
        return "0" if found[0] == "0" else str(choice.randrange(1, 10 ** choice.randrange(1, 7)))

    return LITERAL.sub(other, statement)


def _has_places_of(facts: StatementFacts, other: StatementFacts) -> bool:
    return [[*map(facts.text_of, use.arguments)] for use in facts.functions] == [
        [*map(other.text_of, use.arguments)] for use in other.functions
    ]


def test_facts_by_shape_are_those_of_the_statement() -> None:
    choice = random.Random(5)
    moved = 0
    for statement in _statements():
        for _ in range(3):
            text = _with_others(statement, choice)
            alone, found = _alone(text), read(text, database="d")
            assert found == alone, text
            assert _has_places_of(found, alone), text
            moved += found.shift is not None
    assert moved > 100


def test_literals_are_those_of_the_tokens() -> None:
    choice = random.Random(7)
    pieces = (
        *STRINGS,
        "'",
        '"',
        "`",
        "@",
        "1",
        "0x1",
        ".5",
        "2.",
        "b'1'",
        "e",
        "x",
        "-",
        "*/",
        " ",
    )
    found = 0
    for statement in (
        *_statements(),
        *("".join(choice.choices(pieces, k=choice.randrange(1, 9))) for _ in range(20_000)),
    ):
        dialect = Dialect(ansi_quotes=choice.random() < 0.3)
        try:
            tokens = read_tokens(statement, dialect)
        except SqlSyntaxError:
            continue
        if "$$" in statement:
            continue  # a body in dollars, which no shape has
        literals = {
            place + len(text)
            for kind, place, text in zip(tokens.kinds, tokens.starts, tokens.texts, strict=True)
            if kind in (TokenKind.NUMBER, TokenKind.STRING)
        }
        ends = ends_of(statement, dialect)
        assert literals.issuperset(ends), statement
        found += len(ends)
    assert found > 1000


def test_facts_are_shared_where_nothing_moves() -> None:
    first = read("UPDATE t SET a = 5 WHERE b = 'x'", database="d")
    text = "UPDATE t SET a = 77 WHERE b = 'a longer one'"
    second = read(text, database="d")
    assert second.shift is None
    assert second.tables is first.tables
    assert second.tree is first.tree
    assert isinstance(second.tree, Update)
    assert isinstance(second.tree.where, Operation)
    assert second.text_of(second.tree.where.operands[1]) == "'a longer one'"
    assert second.text_of(second.tree.assignments[0].value) == "77"


def test_places_and_arguments_follow_the_literals() -> None:
    read("INSERT INTO t VALUES (1, f(2, 'a'), @b) ON DUPLICATE KEY UPDATE c = 1", database="d")
    text = "INSERT INTO t VALUES (100, f(2345, 'abc'), @b) ON DUPLICATE KEY UPDATE c = 1"
    facts = read(text, database="d")
    assert facts.shift is not None
    (function,) = facts.functions
    assert [*map(facts.text_of, function.arguments)] == ["2345", "'abc'"]
    assert text[function.offset :][: function.length] == "f(2345, 'abc')"
    assert facts.on_duplicate_offset == text.index("ON DUPLICATE")
    (variable,) = facts.user_variables
    assert text[variable.offset :].startswith("@b")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT * FROM t LIMIT 1", "SELECT * FROM t LIMIT 0"),
        ("SET STATEMENT sort_buffer_size = 1 FOR SELECT 1", "SET STATEMENT sort_buffer_size = 2 FOR SELECT 1"),
        ("SELECT t1.5 FROM t", "SELECT t1.6 FROM t"),
        ("SELECT 1 FROM t1", "SELECT 1 FROM t2"),
        ("SELECT '1' FROM `t 1`", "SELECT '1' FROM `t 2`"),
        ("SELECT 1 /* '5' */ FROM t", "SELECT 1 /* '5 */ FROM t"),
        ("LOAD DATA INFILE 'a' INTO TABLE t", "LOAD DATA INFILE 'b' INTO TABLE t"),
        ("SELECT /*!50000 1 */ FROM t", "SELECT /*!80000 1 */ FROM t"),
        ("XA START 'a'", "XA START 'b'"),
        ("SELECT CAST(a AS CHAR(3)) FROM t", "SELECT CAST(a AS CHAR(4)) FROM t"),
        ("SELECT a 'x' FROM t", "SELECT a 'y' FROM t"),
        ("SELECT x'41'", "SELECT 41"),
        ("SELECT N'a'", "SELECT 'a'"),
    ],
)  # fmt: skip
def test_what_is_no_shape_is_read_alone(first: str, second: str) -> None:
    before = read(first, database="d")
    found = read(second, database="d")
    assert found == _alone(second)
    assert found.tree is not before.tree


def test_the_session_is_part_of_the_shape() -> None:
    statement = 'SELECT "a" FROM t WHERE b = 1'
    read(statement, database="d")
    assert read(statement, database="e").tables[0].name.database == "e"
    other = 'SELECT "a" FROM "u" WHERE b = 2'
    assert read(other, database="d").effects.stopped_at is not None
    assert read(other, database="d", ansi_quotes=True).tables[0].name.table == "u"


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT 'a 1", 'SELECT "a 1', "SELECT `a 1", "SELECT /* a 1", "SELECT /*! 1, 'a'", "# 1"),
        *("SELECT t.1", "SELECT t1", "SELECT @'a'", 'SELECT @"a"', "SELECT @1", "SELECT 1a, _n'a'"),
        *("SELECT x'4'", "SELECT b'2'", "SELECT 0x1G", "SELECT `t`5", "-- 'a' 1", "/* 1 'a' */ /*"),
    ],
)
def test_what_is_no_literal_is_part_of_the_key(statement: str) -> None:
    assert ends_of(statement, Dialect()) == ()
    others = [statement[:at] + "7" + statement[at + 1 :] for at in range(len(statement))]
    keys = {key_of(text, Dialect()) for text in (statement, *others)}
    assert len(keys) == len({statement, *others})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("1", "25"),
            ("1.0", "0.5"),
            ("1.5", "2."),
            ("1e2", "1e5"),
            ("1.", "1.5E-3"),
            ("0x1F", "0xab"),
        ),
        *(("0b1", "0b01"), ("x'41'", "x''"), ("N'a'", "N'b'"), ("b'1'", "b''"), ("''", "'it''s'")),
        *(("'a'", r"'\'--'"), ('"a"', '"it""s"'), ("_latin1'a'", "_latin1'b'"), ("-5", "-6")),
    ],
)
def test_literals_of_one_kind_are_one(one: str, other: str) -> None:
    texts = [f"SELECT {literal}, `a 1`" for literal in (one, other)]
    assert key_of(texts[0], Dialect()) == key_of(texts[1], Dialect())
    assert [ends_of(text, Dialect()) for text in texts] == [
        (len("SELECT ") + len(literal),) for literal in (one, other)
    ]


def test_literals_of_different_kinds_differ() -> None:
    literals = (
        "1",
        "0",
        "1.5",
        "1e5",
        "0x1",
        "0b1",
        "'1'",
        '"1"',
        "x'11'",
        "b'1'",
        "n'1'",
        "`1`",
        "@1",
        "t1",
    )
    assert len({key_of(f"SELECT {literal}", Dialect()) for literal in literals}) == len(literals)


def test_strings_end_as_the_session_says() -> None:
    statement = r"SELECT 'a\', 'b'"
    assert ends_of(statement, Dialect(no_backslash_escapes=True)) == (11, 16)
    assert ends_of(statement, Dialect()) == (14,)
    assert ends_of('SELECT "a", 1', Dialect(ansi_quotes=True)) == (13,)


def test_a_shift_moves_what_stands_behind_literals() -> None:
    shift = Shift((5, 10), (7, 11))
    assert [shift(place) for place in (0, 4, 5, 9, 10, 20)] == [0, 4, 7, 11, 11, 21]
    assert shift.leaves(4)
    assert not shift.leaves(5)
    assert Shift((5, 10), (5, 11)).leaves(9)
