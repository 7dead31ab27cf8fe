from __future__ import annotations

import json
from html.parser import HTMLParser

from binlane.tables.landing.landing_progress import LandingReport, TableReport
from binlane.tables.landing.landing_report import report_as, state_of

REPORT = LandingReport(
    source="data#orders",
    into="/lake",
    terms={"mode": "changes,current", "tables": ""},
    tables={
        "shop.a<b>": TableReport(rows=1200, invalid_dates=3, is_current=True),
        "shop.gone": TableReport(rows=7, why_not="its <columns> changed"),
        "shop.old": TableReport(rows=1, has_absent=True),
    },
    batches=2,
    size_bytes=5_000_000,
    seconds=2.5,
    last_gtid="0-1-9",
    by_reference=4,
    notes=("shop.x: 2 rows were removed that the log had not added",),
)


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_text() -> None:
    assert report_as(REPORT, "report").splitlines() == [
        "1208 row images, 2 batches, 2.5 s, up to GTID 0-1-9",
        "  shop.a<b>: 1200 row images; current, 3 zero dates became NULL",
        "  shop.gone: 7 row images; not current: its <columns> changed",
        "  shop.old: 1 row images; not current: dropped, renamed or not landed so",
        "  note: shop.x: 2 rows were removed that the log had not added",
        "  note: shop.old: row images lack columns, which are NULL in its change table",
        "  note: whole again by --snapshot SERVER --tables 'shop.gone', or emptied at the source",
        "  note: 4 row images were decoded by the reference, not by kernels",
    ]


def test_json() -> None:
    found = json.loads(report_as(REPORT, "x.json"))
    assert found["rows"] == 1208
    assert found["tables"]["shop.gone"]["why_not"] == "its <columns> changed"


def test_html_is_well_formed_and_says_the_same() -> None:
    page = Texts()
    page.feed(report_as(REPORT, "x.html"))
    page.close()
    assert not page.open
    for text in ("shop.a<b>", "1,200", "not current: its <columns> changed", "0-1-9", "5,000,000"):
        assert text in page.texts
    assert any("removed" in text for text in page.texts)


def test_a_history_that_does_not_go_on_is_told_beside_the_table() -> None:
    tables = {
        "shop.a": TableReport(is_current=True, no_history="it has no key"),
        "shop.b": TableReport(why_not="rows went (log.000001:4)", no_history="rows went"),
        "shop.c": TableReport(no_history="it has no key"),
    }
    assert [state_of(each) for each in tables.values()] == [
        "current; no history: it has no key",
        "not current: rows went (log.000001:4); no history: rows went",
        "no history: it has no key",
    ]
    notes = report_as(LandingReport(tables=tables), "report").splitlines()[-2:]
    assert "whole again by --snapshot SERVER --tables 'shop.b'" in notes[0]
    assert "goes on by --snapshot SERVER --tables 'shop.a, shop.b, shop.c'" in notes[1]
