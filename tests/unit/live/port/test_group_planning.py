"""Plans of groups, made of what the model says and of the contexts of statements."""

from __future__ import annotations

import pytest

from binlane.live.port.group_planning import GroupPlanning
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.types import EventType, Flavor, HeaderFlag
from binlane.log.grouping.sections import RowsPiece
from binlane.names import TableName
from binlane.statements.policy.resolution import Opening, resolve
from binlane.statements.policy.server import Server
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session import log_events
from binlane.statements.session.group_plan import GroupPlan, RowsPart, TextPart, basis_of
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect, LoggingMode
from tests.unit.live.port.test_statement_context import Source, context_of

T = TableName("d", "t")
SECTION = (RowsPiece((T,), (("insert", T),)),)
ALL = Definition(name="all", scope=Scope.everything(), logging_mode=LoggingMode.MIXED, log_id=1)
INSERT = log_events.query("INSERT INTO t VALUES (1)", "d")


def _text(number: int, section: int | None = None) -> TextPart:
    """A text of a statement as the model has it."""
    return TextPart(section=section, number=number, bodies=(INSERT,))


def _planning(*numbers: int) -> GroupPlanning:
    """One that knows the contexts of statements of these numbers."""
    planning = GroupPlanning(Flavor.MARIADB)
    planning.know(numbers, context_of(Source()))
    return planning


def _catalog() -> SchemaCatalog:
    catalog = SchemaCatalog(flavor=Flavor.MARIADB)
    catalog.load(
        "CREATE DATABASE d; USE d; CREATE TABLE t (b INT, a INT PRIMARY KEY AUTO_INCREMENT);",
        database="d",
    )
    return catalog


def test_one_transaction_of_text_and_rows() -> None:
    draft = GroupPlan(
        sections=(SECTION, SECTION),
        numbers=(1, 2),
        binlogs={"all": (_text(1, 0)._replace(uses_temporary=True), RowsPart(1, 2))},
    )
    plan = _planning(1).complete(draft, [ALL], _catalog())
    text, rows = plan.binlogs["all"]
    assert isinstance(text, TextPart)
    assert [event.type_code for event in text.events] == [EventType.QUERY]
    assert (text.section, rows) == (0, RowsPart(1))
    assert text.uses_temporary
    assert text.events[-1].flags & HeaderFlag.THREAD_SPECIFIC
    # Where the server chose a value, rows have it in this column.
    assert text.generated == (T, 1)
    assert plan.sections == (SECTION, SECTION)
    assert plan.bases == {"all": basis_of(ALL)}


def test_a_text_whose_context_is_not_known_makes_rows_of_the_group() -> None:
    draft = GroupPlan(
        sections=(SECTION, SECTION),
        numbers=(1, 2),
        binlogs={"all": (_text(1, 0), _text(2, 1)), "none": ()},
    )
    plan = _planning(1).complete(draft, [ALL], _catalog())
    # Nothing of the group is another thing than to be left to its rows.
    assert plan.binlogs == {"none": ()}
    assert plan.bases == {}


def test_what_a_transaction_knew_is_forgotten_with_it() -> None:
    planning = _planning(1)
    planning.clear()
    assert planning.parts([_text(1)]) is None


def test_ends_that_are_others_than_the_source_s() -> None:
    draft = GroupPlan(
        sections=(SECTION,),
        numbers=(1,),
        binlogs={"all": (_text(1, 0),), "alone": (_text(1, 0),)},
        ends={"all": TextPart(number=1, bodies=(log_events.COMMIT,)), "alone": None},
    )
    plan = _planning(1).complete(draft, [], _catalog())
    end = plan.ends["all"]
    assert end is not None
    (event,) = end.events
    assert event.type_code == EventType.QUERY
    assert isinstance(log_events.COMMIT, QueryEvent)
    assert event.body.endswith(log_events.COMMIT.query)
    assert plan.ends["alone"] is None


_FIRING = """
USE d;
CREATE TABLE log (a INT);
CREATE TABLE fired (a INT);
CREATE VIEW seen AS SELECT * FROM log;
DELIMITER //
CREATE TRIGGER fires BEFORE INSERT ON fired FOR EACH ROW INSERT INTO log VALUES (1)//
CREATE FUNCTION one() RETURNS INT RETURN 1//
DELIMITER ;
"""


@pytest.mark.parametrize(
    ("text", "is_as_sent"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("UPDATE t, log SET t.b = log.a WHERE log.a = 3", True),
        ("INSERT INTO seen VALUES (1)", True),
        # Of these the source may write other statements before the rows.
        ("INSERT INTO fired VALUES (1)", False),
        ("UPDATE t SET b = one()", False),
        ("ALTER TABLE t FORCE", False),
    ],
)
def test_a_statement_in_whose_words_the_source_tells_of_its_rows(
    text: str,
    is_as_sent: bool,  # noqa: FBT001  # a case's
) -> None:
    catalog = _catalog()
    catalog.load(_FIRING, database="d")
    assert not catalog.problems
    facts = read(text, database="d", dialect=Dialect(flavor="mariadb"))
    resolved = resolve(facts, Opening(catalog, Server.of("mariadb", "10.11.0"), "d"))
    planning = _planning(1, 2)
    planning.know_words(1, facts, resolved)
    planning.know_rewritten(2)
    planning.know_words(2, facts, resolved)
    texts = [_text(1), _text(2)]

    def told() -> list[bool]:
        parts = planning.parts(texts) or ()
        return [isinstance(part, TextPart) and part.is_as_sent for part in parts]

    assert told() == [is_as_sent, False]
    planning.clear()
    planning.know([1, 2], context_of(Source()))
    assert told() == [False, False]


def test_a_text_is_compared_with_what_the_source_tells() -> None:
    (found,) = _planning(1).parts([_text(1)]) or ()
    assert isinstance(found, TextPart)
    sent = found._replace(is_as_sent=True)
    texts = (INSERT.query, b"INSERT INTO u VALUES (1)", INSERT.query[1:], None)
    assert [sent.is_another(text) for text in texts] == [False, True, True, False]
    assert not any(found.is_another(text) for text in texts)
