"""Twice as much text is twice as much work, whatever is repeated in it: calls are counted, no time.

`python -m benchmarks.hostile` measures the same texts in seconds, up to megabytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import pytest

from binlane.errors import StatementError
from binlane.log.codec.types import Flavor
from binlane.statements.check.definitions import read_definitions
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.executable_comments import server_text
from binlane.statements.sql.logged_statements import (
    is_about_rows_only,
    is_about_transactions,
    is_beside_tables,
)
from binlane.statements.sql.parser import statement_texts
from binlane.statements.sql.reading import hold, let_go, read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import LONG, names_in
from tests.hostile_texts import SHAPES

SCHEMA: Final = """
CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE s (a INT);
"""
DEFINITIONS: Final = read_definitions(
    "CREATE BINLOG 'one' LOG(`d`.`t`) FORMAT='MIXED'; CREATE BINLOG 'all' FORMAT='STATEMENT'",
    name="hostile",
)
RATIO_MAX: Final = 2.6
SAMPLE: Final = 5
"""Every so many shapes are tried in the usual run."""


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called while some work is done."""
    count = 0

    def noted(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(noted)
    try:
        work()
    except StatementError:
        pass  # that it is wrong, or not supported
    finally:
        sys.setprofile(None)
    return count


def _session(flavor: str) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(SCHEMA)
    server = Server.parse(flavor)
    return Session(
        server=server,
        objects=objects,
        definitions=DEFINITIONS,
        database="d",
        errors=PredictedErrors(),
    )


def _work(flavor: str, text: str) -> dict[str, int]:
    session = _session(flavor)
    dialect = session.dialect
    data = text.encode("utf-8", "surrogateescape")
    found = {
        # In another database, so that the session has to read it, too.
        "reading": _calls(lambda: read(text, database="e", dialect=dialect)),
        "cutting": _calls(lambda: statement_texts(text, dialect)),
        "comments": _calls(lambda: server_text(text, dialect)),
        "names": _calls(lambda: list(names_in(text, dialect))),
        "logged": _calls(
            lambda: (is_beside_tables(data), is_about_rows_only(data), is_about_transactions(data))
        ),
    }
    # As at the port, where a text is read once, be it long or short.
    facts = read(text.strip().rstrip(";").rstrip(), database="d", dialect=dialect)
    hold(facts, "d")
    found["session"] = _calls(lambda: session.execute(text))
    let_go(facts, "d")
    return found


def _look(flavor: str, shape: str, count: int) -> None:
    make = SHAPES[shape]
    few, many = (_work(flavor, make(number)) for number in (count, 2 * count))
    # What little work is does not count.
    steps = [what for what, calls in few.items() if many[what] > RATIO_MAX * max(calls, 2_000)]
    # Long texts are read in another way, so that there is one step: behind it work goes on in line.
    more = _work(flavor, make(4 * count)) if steps else {}
    for what in steps:
        assert more[what] <= RATIO_MAX * many[what], what


@pytest.mark.parametrize("shape", list(SHAPES)[::SAMPLE])
def test_a_longer_text_is_no_more_than_more_work(shape: str) -> None:
    _look("mariadb", shape, 200)


@pytest.mark.slow
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("shape", SHAPES)
def test_any_longer_text_is_no_more_than_more_work(flavor: str, shape: str) -> None:
    _look(flavor, shape, 2_000)


@pytest.mark.parametrize(
    "shape",
    [
        *("common tables", "GRANT to accounts", "CREATE USER", "DROP TABLE", "RENAME TABLE"),
        *("UPDATE of many tables and columns", "DELETE of one table often", "references"),
        *("executable comments that are not run without an end", "ALTER TABLE of keys"),
        "ALTER TABLE of foreign keys",
        *("GRANT of roles to accounts", "CREATE ROLE", "intersections behind a union"),
    ],
)
def test_what_took_the_square_of_its_length_does_so_no_more(shape: str) -> None:
    _look("mariadb", shape, 600)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_conditions_within_each_other_are_looked_at_once(flavor: str) -> None:
    """As deep as they may stand: what asked each from all around it took a power of the depth."""
    _look(flavor, "ORs of ANDs of ORs", 40)


def test_names_of_definers_are_read_in_one_way() -> None:
    """Which took twice as long with each of them."""
    assert not is_beside_tables(b"CREATE " + b"DEFINER=x/**/" * 10_000 + b" x")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_is_too_much_is_not_understood_and_says_why(flavor: str) -> None:
    dialect = Dialect(flavor=flavor)
    deep = "CREATE PROCEDURE p() " + "BEGIN " * 330 + "END; " * 330
    for text, reason in (
        (deep, "it is nested too deep"),
        ("SELECT " + "1+" * 150_000 + "1", "it has more than 300,000 words and signs"),
        (SHAPES["tables"](10_001), "it names more than 10,000 tables"),
        (SHAPES["rows of stored functions"](10_001), "it calls more than 10,000 functions"),
        (SHAPES["UPDATE of many tables"](300), "it joins more than 256 tables"),
        (SHAPES["CREATE TABLE"](6_001), "it has more than 6,000 columns, keys and changes of them"),
    ):
        facts = read(text, database="d", dialect=dialect)
        assert facts.effects.stopped_at is not None
        assert facts.error is None
        assert facts.too_much == reason
        result = _session(flavor).execute(text)
        assert result.unanalysed is not None
        assert result.unanalysed.reason == reason


def test_a_program_whose_values_grow_is_not_followed_for_long() -> None:
    text = (
        "BEGIN NOT ATOMIC DECLARE v LONGTEXT DEFAULT 'a';"
        " WHILE 1 DO SET v = CONCAT(v, v); END WHILE; END"
    )
    session = _session("mariadb")
    session.programs.effort.most = 2_000
    result = session.execute(text)
    assert result.unanalysed is not None
    assert "more than 2,000 statements" in result.unanalysed.reason


def test_hostile_texts_are_many() -> None:
    assert len(SHAPES) > 300
    assert all(len(make(1)) < LONG for make in SHAPES.values())
