"""The lander alone: items as tasks give them, a target in a folder, no log and no engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.terms import parse_terms
from binlane.errors import StoreError
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.tables.columnar.followed_log import FollowedLog
from binlane.tables.columnar.log_notes import Statement, Trouble, TroubleKind
from binlane.tables.columnar.selection import Selection
from binlane.tables.columnar.table_schema import ReadOptions
from binlane.tables.landing.audit import Audit
from binlane.tables.landing.journal import Journal, objects_as_json
from binlane.tables.landing.landed_log import LandedLog
from binlane.tables.landing.lander import Lander, TargetTables
from binlane.tables.landing.linked_tables import StaleBatchError
from binlane.tables.landing.range_work import Mode, RangeItem, RangeResult, Rows, Skipped, sequence
from binlane.tables.landing.tables.plain import PlainFormat
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore
from binlane.tables.ranges.log_history import FilterAt
from binlane.tables.ranges.planner import Planner
from binlane.tables.ranges.read import read_range
from tests.routed_files import written
from tests.unit.tables.ranges.test_plan import FINE

T = TableName("shop", "t")
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, state VARCHAR(50))"


class Target:
    """A target in a folder; each lander of it is one as a new process makes it.

    Attributes:
        changes_left: Number of changes of tables before the target fails.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes_left = 1 << 30

    def _fence(self) -> None:
        if not self.changes_left:
            raise StoreError("the target is gone", path=str(self.folder), hint="")
        self.changes_left -= 1

    def lander(self, log: FollowedLog | None = None, scope: Scope | None = None) -> Lander:
        into = str(self.folder)
        self.journal = Journal.open(into, None, {})
        state = self.journal.state
        self.store = TableStore(
            into,
            Mode.CURRENT,
            PlainFormat(into, Mode.CURRENT, state.app_id),
            TableStoreSettings(run_id="run", fence=self._fence),
        )
        audit = Audit(state)
        return Lander(
            self.journal,
            kept=TargetTables.of({Mode.CURRENT: self.store}, self.journal, audit),
            log=LandedLog(
                scope or Scope.everything(), log or FollowedLog(self.journal.definitions())
            ),
            audit=audit,
        )


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


def statement(text: str, position: int, *, thread_id: int = 0) -> Statement:
    return Statement(
        text=text,
        database="shop",
        sql_mode=0,
        timestamp=1,
        gtid=f"0-1-{position}",
        file="binlog.000001",
        position=position,
        thread_id=thread_id,
    )


def rows(position: int, *, key: tuple[str, ...] = ("id",)) -> Rows:
    """Rows that were applied before, so that no file of theirs is needed."""
    seq = sequence(1, position)
    return Rows(
        table=T,
        first_seq=seq,
        last_seq=seq,
        last_gtid="0-1-9",
        last_timestamp=1,
        images=1,
        invalid_dates=0,
        key=key,
        is_full=True,
        columns=pa.schema([("id", pa.int32())]),
    )


def apply(lander: Lander, *ranges: tuple[RangeItem, ...]) -> None:
    lander.apply(RangeResult(items=items) for items in ranges)


def test_a_statement_is_done_once_and_its_place_is_kept(target: Target) -> None:
    lander = target.lander()
    lander.begin()
    apply(lander, (statement(CREATE, 100), statement("RENAME TABLE t TO u", 200)))
    assert [table.plain for table in target.store.names()] == ["shop.u"]
    again = target.lander()
    again.begin()
    apply(again, (statement(CREATE, 100), statement("RENAME TABLE t TO u", 200)))
    assert [table.plain for table in target.store.names()] == ["shop.u"]
    assert target.journal.state.done == sequence(1, 200)


@pytest.mark.parametrize("changes", range(1, 5))
def test_a_rename_in_a_circle_goes_on_where_a_failure_ended_it(
    changes: int, target: Target
) -> None:
    circle = "RENAME TABLE t TO x, u TO t, x TO u"
    made = (statement(CREATE, 100), statement("CREATE TABLE u (a INT)", 200))
    lander = target.lander()
    lander.begin()
    apply(lander, made)
    target.journal.reach({}, lander.objects)
    target.changes_left = changes
    broken = target.lander()
    broken.begin()
    try:
        apply(broken, (statement(circle, 300),))
    except StoreError:
        target.changes_left = 1 << 30
        going_on = target.lander()
        going_on.begin()
        apply(going_on, (statement(circle, 300),))
    columns = {table.table: target.store.schema(table).names[0] for table in target.store.names()}
    assert columns == {"t": "a", "u": "id"}


def test_rows_read_without_a_statement_before_them_begin_the_batch_anew(target: Target) -> None:
    lander = target.lander()
    assert len(lander.begin().catalogs) == 1
    with pytest.raises(StaleBatchError):
        apply(lander, (statement(CREATE, 100),), (rows(200, key=()),))
    assert lander.objects.base_table(T) is not None
    terms = lander.begin(is_again=True)
    assert lander.objects.base_table(T) is None
    assert [found.base_table(T) is not None for found in terms.catalogs] == [False, True]


def test_rows_behind_a_statement_that_they_precede_are_refused(target: Target) -> None:
    lander = target.lander()
    lander.begin()
    apply(lander, (statement(CREATE, 100),))
    with pytest.raises(StoreError, match="came behind a statement that they precede"):
        apply(lander, (statement("TRUNCATE TABLE t", 300), rows(200)))


def test_a_trouble_gives_up_its_tables_and_those_that_are_linked(target: Target) -> None:
    lander = target.lander()
    lander.begin()
    child = "CREATE TABLE c (id INT, FOREIGN KEY (id) REFERENCES t (id) ON DELETE CASCADE)"
    trouble = Trouble(
        kind=TroubleKind.ROLLED_BACK,
        what="rolled back",
        hint="",
        tables=(T,),
        gtid="0-1-3",
        file="binlog.000001",
        position=300,
    )
    apply(lander, (statement(CREATE, 100), statement(child, 200), trouble))
    assert sorted(lander.look().given_up) == ["shop.c", "shop.t"]
    assert target.journal.state.abandoned["shop.t"] == "rolled back (binlog.000001:300)"


def test_a_group_that_is_passed_over_is_remembered_and_told_once(target: Target) -> None:
    lander = target.lander()
    lander.begin()
    passed = Skipped(gtid="0-1-1", tables=frozenset({T}), statement=statement(CREATE, 100))
    apply(lander, (passed,))
    assert target.store.names() == []
    assert lander.objects.is_told(T)
    assert target.journal.state.skipped == {"0-1-1": ["shop.t"]}
    (note,) = lander.look().notes
    assert note.startswith("event group 0-1-1 was passed over, as asked, with rows of shop.t")
    lander.progress.notes.clear()
    assert lander.look().notes == []


def test_the_filter_tells_temporary_tables_of_sessions_apart() -> None:
    state = FilterState(parse_terms({"do_table": ["shop.t"]}))
    log = LandedLog(Scope.everything(), FollowedLog(LoggedObjects(), state))
    log = log.after(statement("CREATE TEMPORARY TABLE t LIKE u", 100, thread_id=7))
    assert log.followed["temporary"] == [[7, "shop", "t", False]]
    log = log.after(statement("ALTER TABLE t RENAME TO v", 200, thread_id=7))
    assert log.followed["temporary"] == [[7, "shop", "v", False]]
    assert not log.includes(TableName("shop", "v"))
    assert log.includes(T)


@pytest.mark.parametrize("name", ["md1011_ddl", "my97_ddl"])
def test_planner_and_lander_know_the_same_at_each_place(name: str, tmp_path: Path) -> None:
    """Their objects, and what a filter remembers, are equal wherever a range begins."""
    terms = parse_terms({"do_db": ["shop"], "wild_ignore_table": ["shop.c%"]})
    options = replace(FINE, filter_at=FilterAt(FilterState(terms)))
    planner = Planner(written(name, tmp_path), options)
    want = ReadOptions(selection=Selection(filter_terms=terms), has_statements=True)
    log = LandedLog(Scope.everything(), FollowedLog(LoggedObjects(), FilterState(terms)))
    places = 0
    for piece in planner.ranges(planner.begin(), planner.end(), size_bytes=300):
        assert piece.catalog is not None
        assert piece.filter_state is not None
        for table in piece.catalog.tables:
            assert piece.catalog.base_table(table) == log.objects.base_table(table)
        assert {**piece.filter_state.saved, "told": ()} == {**log.followed, "told": ()}
        places += 1
        for item in read_range(piece, want, by_kernels=False):
            if isinstance(item, Statement):
                log.become(log.after(item))
    assert places > 9
    planned = planner.catalog_at(planner.end())
    assert objects_as_json(planned) == objects_as_json(log.objects)
    assert objects_as_json(planned)["tables"]
