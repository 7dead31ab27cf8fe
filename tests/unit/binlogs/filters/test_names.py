"""What a log's statements do to names: made again, made temporary, made or renamed perhaps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlogs.filters.events import EventFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import FilterTerms, parse_terms
from binlane.log.codec.body import Body
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent
from binlane.log.codec.status_vars import StatusVar, encode_status_vars
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ColumnType, GtidExtraFlag, GtidFlag
from binlane.names import TableName
from tests.build import event, format_description, rows, table_map

ORDERS = TableName("shop", "orders")
ARCH = TableName("shop", "arch")
ONE_ROW = b"\xfe\x01\x00\x00\x00"


def terms(given: dict[str, list[str]], *, rename: str = "follow") -> FilterTerms:
    return parse_terms(given, rename=rename)


class Log:
    """Feeds a filter what a server would have logged, and keeps what it lets through.

    Attributes:
        notes: What it noted.
    """

    def __init__(self, state: FilterState) -> None:
        self.notes: list[str] = []
        self.state = state
        self._filter = EventFilter(state, self.notes.append)

    def passes(self, text: str, *, thread: int = 1, alter: GtidExtraFlag | None = None) -> bool:
        return bool(self.texts(text, thread=thread, alter=alter))

    def texts(self, text: str, *, thread: int = 1, alter: GtidExtraFlag | None = None) -> list[str]:
        told: tuple[StatusVar, ...] = ()
        if alter is not None:
            numbers = (alter,) if alter is GtidExtraFlag.START_ALTER else (alter, 1)
            told = (StatusVar(130, "GTID_FLAGS3", numbers),)
        body = QueryEvent(
            thread_id=thread,
            execution_time=0,
            error_code=0,
            status_vars=encode_status_vars(told),
            database=b"shop",
            query=text.encode(),
        )
        gtid = GtidEvent(sequence=1, domain_id=0, flags=GtidFlag.STANDALONE)
        found = [*self._feed(event(gtid)), *self._feed(event(body))]
        return [each.body.query.decode() for each in found if isinstance(each.body, QueryEvent)]

    def has_rows(self, table: str) -> bool:
        """Whether a row of a table passes."""
        made = replace(rows(1, ONE_ROW, table_id=7), flags=1)
        gtid = GtidEvent(sequence=1, domain_id=0, flags=GtidFlag(0))
        bodies: list[Body] = [gtid, table_map(ColumnType.LONG, table=table, table_id=7), made]
        found = [each for body in bodies for each in self._feed(event(body))]
        found += self._filter.finish()
        return any(isinstance(each.body, RowsEvent) for each in found)

    def restart(self) -> None:
        self._feed(event(replace(format_description(), created=1)))

    def _feed(self, item: Event) -> list[Event]:
        return list(self._filter.feed(item, file="f"))


def log(**given: list[str]) -> Log:
    return Log(FilterState(terms(given)))


def counts(found: Log) -> Counter[TableName]:
    """Changes that were left out: each row of a log stands alone in its event."""
    return found.state.left_out.statements + found.state.left_out.images


def test_an_alter_in_two_phases_passes_in_both_and_renames_once() -> None:
    found = log(do_table=["shop.orders"])
    text = "ALTER TABLE orders RENAME TO bought"
    assert found.passes(text, alter=GtidExtraFlag.START_ALTER)
    assert found.passes(text, alter=GtidExtraFlag.COMMIT_ALTER)
    assert found.has_rows("bought")
    assert not found.has_rows("other")


def test_an_alter_that_was_taken_back_did_nothing() -> None:
    found = log(ignore_table=["shop.orders"])
    text = "ALTER TABLE orders RENAME TO bought"
    for phase in (GtidExtraFlag.START_ALTER, GtidExtraFlag.ROLLBACK_ALTER):
        assert not found.passes(text, alter=phase)
    assert found.has_rows("bought")
    assert not found.has_rows("orders")


@pytest.mark.parametrize("before", ["CREATE TABLE orders (a INT)", "DROP TABLE gone"])
def test_a_rename_that_did_nothing_changes_nothing(before: str) -> None:
    found = log(do_table=["shop.orders"])
    found.passes(before)
    found.passes("RENAME TABLE IF EXISTS gone TO orders")
    assert found.has_rows("orders")
    assert found.notes == []


def test_a_rename_that_was_done_is_told_with_its_loss() -> None:
    found = log(do_table=["shop.orders"])
    for text in ("CREATE TABLE gone (a INT)", "RENAME TABLE IF EXISTS gone TO orders"):
        assert not found.passes(text)
    assert not found.has_rows("orders")
    assert not found.has_rows("orders")
    (note,) = found.notes
    assert note.startswith("f:")
    assert "changes of shop.orders are left out from here on" in note
    assert counts(found) == {ORDERS: 2}


def test_of_a_rename_in_doubt_all_that_is_named_is_taken() -> None:
    found = log(do_table=["shop.orders"])
    assert not found.passes("RENAME TABLE IF EXISTS gone TO orders")
    assert found.passes("RENAME TABLE IF EXISTS orders TO bought")
    assert found.has_rows("orders")
    assert found.has_rows("bought")
    for name, note in zip(("gone", "orders"), found.notes, strict=True):
        assert f"whether shop.{name} was there to be renamed is not known" in note


def test_a_swap_with_if_exists_is_followed() -> None:
    found = log(do_table=["shop.orders"])
    for text in ("CREATE TABLE orders (a INT)", "CREATE TABLE new (a INT)"):
        found.passes(text)
    found.passes("RENAME TABLE IF EXISTS orders TO old, new TO orders")
    assert found.has_rows("old")
    assert not found.has_rows("orders")


def test_a_table_that_was_there_is_not_made_of_others() -> None:
    found = log(ignore_table=["shop.orders"])
    assert found.passes("CREATE TABLE arch (a INT)")
    assert not found.passes("CREATE TABLE IF NOT EXISTS arch LIKE orders")
    assert found.has_rows("arch")


def test_a_table_that_may_have_been_there_is_taken_with_a_note() -> None:
    found = log(ignore_table=["shop.orders"])
    assert not found.passes("CREATE TABLE IF NOT EXISTS arch LIKE orders")
    assert found.has_rows("arch")
    (note,) = found.notes
    assert "whether shop.arch was there before is not known: its changes are taken" in note


@pytest.mark.parametrize(
    "text", ["CREATE TABLE arch LIKE orders", "CREATE TABLE arch SELECT * FROM orders"]
)
def test_a_table_that_was_not_made_is_lost_with_a_note_and_counted(text: str) -> None:
    found = log(ignore_table=["shop.orders"])
    assert not found.passes(text)
    assert not found.has_rows("arch")
    assert not found.passes("INSERT INTO arch VALUES (1)")
    (note,) = found.notes
    assert "shop.arch is not there then, and its changes are left out" in note
    assert counts(found) == {ARCH: 3}


@pytest.mark.parametrize("words", ["CREATE OR REPLACE TABLE", "CREATE TABLE"])
def test_a_table_that_is_made_anew_goes_by_its_name_again(words: str) -> None:
    found = log(ignore_table=["shop.orders"])
    assert not found.passes("CREATE TABLE arch LIKE orders")
    if words == "CREATE TABLE":
        found.passes("DROP TABLE arch")
    assert found.passes(f"{words} arch (a INT)")
    assert found.has_rows("arch")


def test_a_wanted_table_that_is_replaced_by_another_one_is_gone() -> None:
    found = log(do_table=["shop.orders"])
    assert found.passes("RENAME TABLE orders TO bought")
    text = "CREATE OR REPLACE TABLE bought (a INT)"
    assert found.texts(text) == ["DROP TABLE IF EXISTS `shop`.`bought`"]
    assert not found.has_rows("bought")
    assert found.passes("CREATE OR REPLACE TABLE orders (a INT)")
    assert found.texts("CREATE OR REPLACE TABLE orders LIKE bought") == [
        "DROP TABLE IF EXISTS `shop`.`orders`"
    ]
    assert not found.has_rows("orders")
    assert counts(found) == {ORDERS: 2}


def test_a_temporary_table_is_another_one_than_a_real_one_of_its_name() -> None:
    found = log(do_table=["shop.orders"])
    assert not found.passes("CREATE TEMPORARY TABLE orders SELECT * FROM other")
    assert not found.passes("INSERT INTO orders VALUES (1)")
    assert found.passes("INSERT INTO orders VALUES (1)", thread=2)
    assert found.has_rows("orders")
    assert not found.passes("DROP TEMPORARY TABLE IF EXISTS orders")
    assert found.passes("INSERT INTO orders VALUES (1)")


def test_a_name_of_a_temporary_table_can_be_used_again() -> None:
    found = log(ignore_table=["shop.orders"])
    assert not found.passes("CREATE TEMPORARY TABLE tmp LIKE orders")
    assert not found.passes("DROP TEMPORARY TABLE tmp")
    for text in ("CREATE TEMPORARY TABLE tmp (a INT)", "INSERT INTO tmp VALUES (1)"):
        assert found.passes(text)
    assert found.passes("DROP TEMPORARY TABLE tmp")


def test_behind_a_start_of_the_server_no_temporary_table_is_there() -> None:
    found = log(do_table=["shop.orders"])
    assert not found.passes("CREATE TEMPORARY TABLE orders SELECT * FROM other")
    found.restart()
    assert found.passes("INSERT INTO orders VALUES (1)")


def test_a_temporary_table_that_is_renamed_goes_on() -> None:
    found = log(do_table=["shop.orders"])
    assert not found.passes("CREATE TEMPORARY TABLE tmp (a INT)")
    assert not found.passes("ALTER TABLE tmp RENAME TO orders")
    assert not found.passes("INSERT INTO orders VALUES (1)")
    assert found.has_rows("orders")


@pytest.mark.parametrize("words", ["CREATE OR REPLACE VIEW", "ALTER VIEW", "CREATE VIEW"])
def test_a_view_that_could_not_be_made_is_not_written_through(words: str) -> None:
    found = log(ignore_table=["shop.orders"])
    dropped = [] if words == "CREATE VIEW" else ["DROP VIEW IF EXISTS `shop`.`arch`"]
    assert found.texts(f"{words} arch AS SELECT * FROM orders") == dropped
    assert not found.passes("INSERT INTO arch VALUES (1)")
    assert not found.passes("DROP VIEW arch")
    assert found.passes("CREATE VIEW arch AS SELECT * FROM other")
    assert found.passes("INSERT INTO arch VALUES (1)")


def test_a_trigger_goes_as_it_came() -> None:
    found = log(do_table=["shop.orders"])
    made = "CREATE TRIGGER {} BEFORE INSERT ON {} FOR EACH ROW SET @a = 1"
    assert found.passes(made.format("ours", "orders"))
    assert not found.passes(made.format("theirs", "other"))
    assert found.passes("DROP TRIGGER ours")
    assert not found.passes("DROP TRIGGER theirs")
    assert found.texts("DROP TRIGGER elder") == ["DROP TRIGGER IF EXISTS `shop`.`elder`"]
    assert not found.passes("DROP TRIGGER other.elder")


def test_a_trigger_of_whole_databases_goes_by_them() -> None:
    found = log(do_db=["shop"])
    assert found.texts("DROP TRIGGER elder") == ["DROP TRIGGER elder"]
    assert not found.passes("DROP TRIGGER other.elder")


def test_what_was_left_out_and_is_called_is_told() -> None:
    found = log(do_table=["shop.orders"])
    assert not found.passes("CREATE FUNCTION f() RETURNS INT RETURN 1")
    assert found.passes("INSERT INTO orders VALUES (f(), now())")
    (note,) = found.notes
    assert "calls what was left out when it was made (shop.f)" in note


def test_all_that_is_remembered_is_there_behind_a_restart() -> None:
    first = log(ignore_table=["shop.orders"])
    for text in (
        "CREATE TABLE arch LIKE orders",
        "CREATE TEMPORARY TABLE tmp LIKE orders",
        "CREATE TABLE new (a INT)",
        "CREATE TRIGGER theirs BEFORE INSERT ON orders FOR EACH ROW SET @a = 1",
        "RENAME TABLE orders TO bought",
    ):
        first.passes(text)
    again = Log(FilterState.restored(first.state.terms, first.state.saved))
    assert again.state.saved == first.state.saved
    assert not again.has_rows("arch")
    assert not again.has_rows("bought")
    assert not again.passes("INSERT INTO tmp VALUES (1)")
    assert not again.passes("DROP TRIGGER theirs")
    assert not again.passes("CREATE TABLE IF NOT EXISTS new LIKE bought")
    assert again.has_rows("new")


def test_by_names_what_was_renamed_away_is_known_behind_a_restart() -> None:
    first = Log(FilterState(terms({"do_table": ["shop.orders"]}, rename="name")))
    assert first.passes("RENAME TABLE orders TO bought")
    again = Log(FilterState.restored(first.state.terms, first.state.saved))
    assert again.passes("RENAME TABLE bought TO orders")


def test_what_was_saved_before_is_read() -> None:
    state = FilterState.restored(terms({"do_table": ["shop.orders"]}), [["shop", "bought", True]])
    assert state.includes(TableName("shop", "bought"))


_TABLES = ("orders", "arch", "new")
_STATEMENTS = tuple(
    text.format(*names)
    for names in permutations(_TABLES, 2)
    for text in (
        "CREATE TABLE {0} (a INT)",
        "CREATE OR REPLACE TABLE {0} (a INT)",
        "CREATE OR REPLACE TABLE {0} LIKE {1}",
        "CREATE TABLE IF NOT EXISTS {0} LIKE {1}",
        "CREATE TABLE {0} SELECT * FROM {1}",
        "CREATE TEMPORARY TABLE {0} LIKE {1}",
        "DROP TEMPORARY TABLE IF EXISTS {0}",
        "DROP TABLE IF EXISTS {0}, {1}",
        "RENAME TABLE {0} TO {1}",
        "RENAME TABLE IF EXISTS {0} TO {1}",
        "ALTER TABLE {0} RENAME TO {1}",
        "CREATE OR REPLACE VIEW {0} AS SELECT * FROM {1}",
        "DROP VIEW IF EXISTS {0}",
    )
)


@given(
    st.sampled_from(({"do_table": ["shop.orders"]}, {"ignore_table": ["shop.orders"]})),
    st.sampled_from(("follow", "name")),
    st.lists(
        st.tuples(st.sampled_from(_STATEMENTS + _TABLES), st.integers(min_value=1, max_value=2)),
        max_size=30,
    ),
)
def test_no_row_of_a_named_table_is_lost_without_being_counted(
    rules: dict[str, list[str]], rename: str, steps: list[tuple[str, int]]
) -> None:
    found = Log(FilterState(terms(rules, rename=rename)))
    lost: Counter[TableName] = Counter()
    for step, thread in steps:
        table = TableName("shop", step)
        if step not in _TABLES:
            found.passes(step, thread=thread)
        elif not found.has_rows(step) and found.state.terms.rules.includes(table):
            lost[table] += 1
            assert any(table.plain in note for note in found.notes)
    assert lost <= counts(found)
