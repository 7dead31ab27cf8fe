from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from binlane.binlogs.cat.summary import Summary
from binlane.binlogs.cat.summary.collect import statement_kind
from binlane.binlogs.cat.summary.counts import GroupSummary, GtidRanges, Timeline, Top
from binlane.binlogs.cat.summary.figures import duration_text, size_text
from binlane.binlogs.cat.summary.html import summary_html
from binlane.binlogs.cat.summary.summary_json import summary_json
from binlane.binlogs.cat.summary.summary_text import sparkline, summary_text
from binlane.errors import CodecError
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent, XidEvent
from binlane.log.codec.types import ColumnType, HeaderFlag
from binlane.log.grouping.walk import walk
from binlane.positions import Gtid, MysqlGtid
from tests import build
from tests.fixture_sets import fixture_set

UUID_TEXT = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def fed(*events: Event) -> Summary:
    summary = Summary()
    for event in events:
        summary.feed(event, file="binlog.000001")
    summary.finish()
    return summary


def fixture_summary(name: str) -> Summary:
    summary = Summary()
    for file, data in fixture_set(name).binlogs:
        for event in walk([data], file=file):
            summary.feed(event, file=file)
    summary.finish()
    return summary


def at(event: Event, seconds: int) -> Event:
    header = replace(event.header, timestamp=build.TIMESTAMP + seconds, length=100)
    return replace(event, header=header)


def transaction(sequence: int, images: bytes, *, seconds: int = 0) -> Iterator[Event]:
    yield at(build.event(GtidEvent(sequence=sequence, domain_id=0, flags=0)), seconds)
    yield at(build.event(build.table_map(ColumnType.LONG)), seconds)
    yield at(build.event(build.rows(1, images)), seconds)
    yield at(build.event(XidEvent(xid=1)), seconds + 7)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (b"insert into t values (1)", "INSERT"),
        (b"/* a ; b */ -- x\n  UPDATE t SET a = 1", "UPDATE"),
        (b"CREATE OR REPLACE TEMPORARY TABLE t (a INT)", "CREATE TABLE"),
        (b"DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", "DROP TABLE"),
        (b"CREATE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON u FOR EACH ROW SET @a = 1", "CREATE TRIGGER"),
        (b"BEGIN", "BEGIN"),
        (b"WHATEVER THIS IS", "OTHER"),
        (b"", "OTHER"),
    ],
)  # fmt: skip
def test_statement_kind(query: bytes, kind: str) -> None:
    assert statement_kind(query) == kind


def test_a_transaction_has_its_size_rows_and_duration() -> None:
    images = b"\xfe\x01\x00\x00\x00" * 3
    summary = fed(*transaction(5, images), *transaction(6, images[:5], seconds=20))
    summary.finish()
    biggest, other = summary.biggest
    assert (biggest.gtid, biggest.rows, biggest.size_bytes, biggest.duration) == (
        "0-1-5",
        3,
        400,
        7,
    )
    assert (other.gtid, other.rows) == ("0-1-6", 1)
    assert summary.gtids.texts() == ["0-1-5 … 0-1-6"]
    assert (summary.transactions, summary.unfinished) == (2, 0)


def test_a_transaction_that_the_log_does_not_end_is_told() -> None:
    summary = fed(*list(transaction(5, b"\xfe\x01\x00\x00\x00"))[:-1])
    assert "1 of the transactions are not ended" in summary_text(summary)


def test_rows_that_end_inside_a_value_are_damage() -> None:
    with pytest.raises(CodecError, match="ends inside") as caught:
        fed(*transaction(5, b"\xfe\x01\x00\x00"))
    assert caught.value.file == "binlog.000001"


def test_formats_are_told_by_what_was_logged() -> None:
    rows = list(transaction(1, b"\xfe\x01\x00\x00\x00"))
    query = QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=b"DELETE FROM t",
    )
    assert fed(*rows).logged_as == "row"
    assert fed(build.event(query)).logged_as == "statement"
    assert fed(*rows, build.event(query)).logged_as == "mixed"
    assert fed().logged_as == ""


def test_a_file_in_use_is_told() -> None:
    head = build.event(build.format_description(), flags=HeaderFlag.BINLOG_IN_USE)
    assert "in use, or its server was killed" in summary_text(fed(head))
    closed = fed(build.event(build.format_description()))
    assert "does not end with STOP or ROTATE" in summary_text(closed)


def test_nothing_has_a_summary_too() -> None:
    summary = Summary()
    assert "0 transactions, 0 rows of 0 tables" in summary_text(summary)
    assert summary_json(summary)["buckets"] == []
    assert summary_html(summary).endswith("</html>\n")


def test_only_the_ten_biggest_are_kept() -> None:
    top = Top("rows")
    for rows in range(1000):
        top.add(GroupSummary(gtid=None, file="f", position=rows, rows=rows % 500))
    assert [one.rows for one in top] == [499, 499, 498, 498, 497, 497, 496, 496, 495, 495]
    assert [one.position for one in top][:2] == [499, 999]


def test_time_merges_into_wider_buckets_and_loses_nothing() -> None:
    timeline = Timeline()
    for second in range(0, 50_000, 3):
        timeline.at(build.TIMESTAMP + second).size_bytes += 1
    width, buckets = timeline.buckets(60)
    assert len(buckets) <= 60
    assert sum(bucket.size_bytes for _, bucket in buckets) == 16_667
    assert all(later - earlier == width for (earlier, _), (later, _) in pairwise(buckets))


def test_time_that_jumps_far_takes_few_buckets() -> None:
    timeline = Timeline()
    for time in (1, 2**32 - 1, build.TIMESTAMP):
        timeline.at(time).rows += 1
    _, buckets = timeline.buckets(60)
    assert sum(bucket.rows for _, bucket in buckets) == 3
    assert len(buckets) <= 140


def test_gtids_of_both_flavors() -> None:
    ranges = GtidRanges()
    for gtid in (Gtid(0, 1, 1), Gtid(4, 2, 7), Gtid(0, 1, 9)):
        ranges.add(gtid)
    for text in ("1", "2", "5", "tag:1"):
        ranges.add(MysqlGtid.parse(f"{UUID_TEXT}:{text}"))
    assert ranges.texts() == ["0-1-1 … 0-1-9", "4-2-7", f"{UUID_TEXT}:1-2:5:tag:1"]


def test_sparkline() -> None:
    assert sparkline([0, 1, 50, 100]) == " ▁▅█"
    assert sparkline([]) == ""


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_960, "1.0 MB"), (5 * 10**15, "5000.0 TB")],
)
def test_size_text(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5 s"), (60, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (273_600, "3 d 4 h")],
)
def test_duration_text(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize("name", ["md1011_identifiers", "md1011_format_mixed", "my97_gtid"])
def test_text_fits_a_terminal(name: str) -> None:
    lines = summary_text(fixture_summary(name)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert "\x1b[" in summary_text(fixture_summary(name), color=True)


class _Page(HTMLParser):
    """Checks that what is opened is closed, and nothing is loaded."""

    VOID = frozenset({"meta", "line", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.plots = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        assert not {"src", "href", "srcset"} & set(names), names
        assert tag not in {"script", "link", "img", "iframe"}
        if tag == "svg":
            assert names["role"] == "img"
            self.plots += 1
        if tag not in self.VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["md1011_identifiers", "md1011_metadata_full", "my97_gtid"])
def test_the_page_is_whole_and_loads_nothing(name: str) -> None:
    page = _Page()
    page.feed(summary_html(fixture_summary(name)))
    page.close()
    assert page.open == []
    assert page.plots >= 3


def test_names_cannot_break_the_page() -> None:
    name = "<script>alert(1)</script>"
    table = replace(build.table_map(ColumnType.LONG), table=name)
    summary = fed(at(build.event(table), 0))
    assert name not in summary_html(summary)
    assert "&lt;script&gt;" in summary_html(summary)


def test_two_files_of_one_name_are_two() -> None:
    summary = Summary()
    for _ in range(2):
        for event in walk([build.log(XidEvent(xid=1))], file="binlog.000001"):
            summary.feed(event, file="binlog.000001")
    assert len(summary.files) == 2


def test_a_page_says_in_each_cell_what_it_is() -> None:
    """A phone shows rows as blocks, without their headings."""
    text = summary_html(fixture_summary("md1011_ddl"))
    assert "<text" not in text
    assert text.count("<td") == text.count("data-label=") > 0
