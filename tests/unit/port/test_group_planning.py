"""Plans of groups, made of what the model says and of the contexts of statements."""

from __future__ import annotations

from binlane.codec.query import QueryEvent
from binlane.codec.types import EventType, Flavor, HeaderFlag
from binlane.grouping.sections import RowsPiece
from binlane.names import TableName
from binlane.port.group_planning import GroupPlanning
from binlane.routing.plan import Rows, Text, basis_of
from binlane.scope.definition import Definition
from binlane.scope.scope import Scope
from binlane.session import log_events
from binlane.session.group_plans import GroupDraft, RowsOf, TextOf
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.servers import LoggingMode
from tests.unit.port.test_statement_context import Source, context_of

T = TableName("d", "t")
SECTION = (RowsPiece((T,), (("insert", T),)),)
ALL = Definition(name="all", scope=Scope.everything(), logging_mode=LoggingMode.MIXED, log_id=1)
INSERT = log_events.query("INSERT INTO t VALUES (1)", "d")


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
    draft = GroupDraft(
        sections=((1, SECTION), (2, SECTION)),
        binlogs={"all": (TextOf(1, (INSERT,), uses_temporary=True), RowsOf(2))},
    )
    plan = _planning(1).plan(draft, [ALL], _catalog())
    text, rows = plan.binlogs["all"]
    assert isinstance(text, Text)
    assert [event.type_code for event in text.events] == [EventType.QUERY]
    assert (text.section, rows) == (0, Rows(1))
    assert text.uses_temporary
    assert text.events[-1].flags & HeaderFlag.THREAD_SPECIFIC
    # Where the server chose a value, rows have it in this column.
    assert text.generated == (T, 1)
    assert plan.sections == (SECTION, SECTION)
    assert plan.bases == {"all": basis_of(ALL)}


def test_a_text_whose_context_is_not_known_makes_rows_of_the_group() -> None:
    draft = GroupDraft(
        sections=((1, SECTION), (2, SECTION)),
        binlogs={"all": (TextOf(1, (INSERT,)), TextOf(2, (INSERT,))), "none": ()},
    )
    plan = _planning(1).plan(draft, [ALL], _catalog())
    # Nothing of the group is another thing than to be left to its rows.
    assert plan.binlogs == {"none": ()}
    assert plan.bases == {}


def test_what_a_transaction_knew_is_forgotten_with_it() -> None:
    planning = _planning(1)
    planning.clear()
    assert planning.parts([TextOf(1, (INSERT,))], {}) is None


def test_ends_that_are_others_than_the_source_s() -> None:
    draft = GroupDraft(
        sections=((1, SECTION),),
        binlogs={"all": (TextOf(1, (INSERT,)),), "alone": (TextOf(1, (INSERT,)),)},
        ends={"all": log_events.COMMIT, "alone": None},
    )
    plan = _planning(1).plan(draft, [], _catalog())
    end = plan.ends["all"]
    assert end is not None
    assert end.type_code == EventType.QUERY
    assert isinstance(log_events.COMMIT, QueryEvent)
    assert end.body.endswith(log_events.COMMIT.query)
    assert plan.ends["alone"] is None
