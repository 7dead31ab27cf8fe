from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from urllib.parse import unquote

import pytest

from binlane.live.web.binlog_card import READERS_MAX
from binlane.live.web.page import _STYLE, OPEN_MAX, POLICY, SCRIPT, render_page
from binlane.live.web.status_values import (
    IncidentStatus,
    PortStatus,
    ReaderState,
    ShownFailure,
    ShownState,
    Status,
)
from tests.html_reading import Page
from tests.shown import BINLOG, INCIDENT, NOW, READER, STATUS, STOPPED, rates, status

HOSTILE = (
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "</style></title><svg onload=alert(1)>",
    "\u202eevil\u202c \u2066x",
    "x" * 64,
    "\U0001f40d" * 64,
    "\0\x07\x1b[31m\x85\ud800",
    "&lt;b&gt;&amp;",
)


def page(shown: Status) -> Page:
    read = Page.read(render_page(shown))
    levels = [int(each.tag[1]) for each in read.elements if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    for table in read.all("table"):
        assert table.text
    assert len(read.all("caption")) == len(read.all("table"))
    assert all(each.attributes.get("scope") for each in read.all("th"))
    for image in read.all("svg"):
        assert image.attributes["role"] == "img"
        assert image.attributes["aria-label"]
    ids = {each.attributes.get("id") for each in read.elements}
    for each in read.elements:
        assert each.attributes.get("aria-labelledby", None) in ids | {None}
        assert not any(name.startswith("on") or name == "style" for name in each.attributes)
    for link in read.all("a"):
        target = link.attributes["href"]
        assert target.startswith("/") or unquote(target[1:]) in ids
    return read


def test_a_binlog_shows_all_that_is_known_of_it() -> None:
    shown = page(status(replace(BINLOG, rates=rates(), archived_files=2, archive_pending_files=1)))
    (card,) = [each for each in shown.all("details") if "card" in each.attributes["class"]]
    assert "open" in card.attributes
    assert shown.all("h3")[0].text == "orders"
    assert shown.all("span", "state")[0].text == "OPEN"
    assert shown.fact("LOG") == ["baz.bar, test"]
    assert shown.fact("IGNORE") == ["test.foo"]
    assert shown.fact("Format") == ["ROW"]
    assert shown.fact("File and position") == ["orders.000002 at 4,711"]
    assert shown.fact("Complete up to (watermark)") == ["0-1-9"]
    assert shown.fact("Behind the source") == ["0.5 s, 2.05 kB (2,048 bytes)"]
    assert shown.fact("Size") == ["1.00 MB (1,004,711 bytes) in 2 files"]
    assert shown.fact("INCIDENTs written so far") == ["1"]
    assert shown.fact("Archive")[0] == "2 files copied, 1 to go"
    tables = {each.text for each in shown.all("caption")}
    assert tables == {
        "Replicas and readers",
        "Statements that are rows instead",
        "Left out, since it names what is outside of the scope",
    }
    readers = shown.all("table", "readers")[0].text
    for text in (
        *("replica1.example.org:3306 server id 101", "replica from 10.0.0.7:51022", "sending"),
        *("3.5 s, 711 B", "orders.000002 at 4,000; 123 kB in all", "(1 h 6 min)"),
    ):
        assert text in readers


def test_all_of_a_server_is_logged() -> None:
    shown = page(status(replace(BINLOG, log_all=True, log="", ignore="")))
    assert shown.fact("LOG") == ["ALL"]
    assert shown.fact("IGNORE") == ["nothing"]


@pytest.mark.parametrize(
    "state, reason, stopped_by, colour",
    [
        (ShownState.OPEN, "", "", "good"),
        (ShownState.CATCHING_UP, "", "", "warn"),
        (ShownState.STOPPED, "No space left on device", "fault", "bad"),
        (ShownState.STOPPED, "STOP BINLOG", "statement", "bad"),
    ],
)
def test_each_state_is_a_word_and_a_colour(
    state: ShownState, reason: str, stopped_by: str, colour: str
) -> None:
    by_statement = stopped_by == "statement"
    binlog = replace(BINLOG, state=state, reason=reason, is_stopped_by_statement=by_statement)
    shown = page(status(binlog))
    badge = shown.all("span", "state")[0]
    assert badge.text == state.value
    assert colour in badge.attributes["class"].split()
    notes = [each.text for each in shown.all("p", "note")]
    assert (f"Stopped: {reason}" in notes) == bool(reason)
    is_problem = bool(reason) and not by_statement
    assert ("1 problem" in [each.text for each in shown.all("h2")]) == is_problem
    assert shown.all("title")[0].text == (
        "binlane: 1 problem" if is_problem else "binlane: all is well"
    )


def test_what_replicas_stop_at_is_at_the_top_and_in_its_card() -> None:
    shown = page(status(INCIDENT))
    assert shown.all("title")[0].text == "binlane: 1 problem"
    assert shown.all("li")[0].text == f"binlog orders: {INCIDENT.stopping}"
    (told,) = shown.all("div", "note")
    for text in (
        "Replicas stop at 3 INCIDENTs with error 1590",
        "First: 0-1-5, orders.000001 at 4,711, 2026-11-23 09:31:00 UTC: rows from outside",
        "Last: orders.000002 at 400, 2026-11-23 09:31:50 UTC: the source lost events",
        "ACKNOWLEDGE BINLOG INCIDENTS FOR 'orders'",
    ):
        assert text in told.text
    many = [replace(BINLOG, name=f"b{number}") for number in range(OPEN_MAX)]
    shown = page(status(*many, INCIDENT))
    are_open = [each for each in shown.all("details", "card") if "open" in each.attributes]
    assert [each.attributes["id"] for each in are_open] == ["binlog-orders"]


def test_all_is_well_only_where_nothing_is_to_be_known() -> None:
    assert "All is well." in render_page(STATUS)
    for shown in (
        status(replace(BINLOG, format="MIXED"), port=replace(STATUS.port, problem="rows alone")),
        status(replace(STOPPED, is_stopped_by_statement=True)),
        status(source=replace(STATUS.source, gaps=["it leaves out crm"])),
        status(INCIDENT),
    ):
        assert "All is well." not in render_page(shown)


@pytest.mark.parametrize("state", ReaderState)
def test_each_state_of_a_reader(state: ReaderState) -> None:
    reader = replace(READER, state=state, blocked_s=90.0 if state is ReaderState.BLOCKED else None)
    text = page(status(replace(BINLOG, readers=[reader]))).all("table", "readers")[0].text
    assert state.value in text
    assert ("takes nothing for 1 min 30 s" in text) == (state is ReaderState.BLOCKED)


def test_whether_a_reader_is_encrypted_is_told_where_it_is_known() -> None:
    for is_tls, told in ((None, ""), (True, ", TLS"), (False, ", not encrypted")):
        shown = page(status(replace(BINLOG, readers=[replace(READER, is_tls=is_tls)])))
        cells = [each.text for each in shown.all("td")]
        assert f"replica from 10.0.0.7:51022{told}" in cells


def test_what_is_not_known_is_called_so() -> None:
    reader = replace(READER, state=ReaderState.STARTING, file="", lag_bytes=None, lag_s=None)
    binlog = replace(BINLOG, lag_s=None, lag_bytes=None, readers=[reader])
    source = replace(STATUS.source, version="", gtid="", file="", position_bytes=None)
    shown = page(status(binlog, source=source, problem="not connected to the source: connecting"))
    assert shown.fact("Behind the source") == ["not known"]
    assert "not known" in shown.all("table", "readers")[0].text
    assert shown.fact("Version") == ["not known (mariadb)"]
    assert shown.fact("Taken up to (GTID)") == ["not known"]
    assert "lag not known" in shown.all("span", "brief")[0].text


def test_an_empty_installation() -> None:
    source = replace(STATUS.source, is_connected=False, connected_at_s=None, end_bytes=None)
    empty = replace(STATUS.process, resident_bytes=None, open_descriptors=None)
    shown = page(status(source=source, process=empty, port=PortStatus()))
    assert any("There are none yet" in each.text for each in shown.all("p"))
    assert shown.all("strong", "bad")[0].text == "not connected"
    assert shown.fact("Sessions now") == ["0"]


def test_the_source_and_why_the_end_of_its_log_is_not_known() -> None:
    shown = page(STATUS)
    assert shown.fact("Server") == ["mariadb://binlane@db1:3306"]
    assert shown.fact("Taken up to (file)") == ["binlog.000007 at 1,234,567"]
    refused = "Access denied; you need (at least one of) the BINLOG MONITOR privilege(s)"
    failed = ShownFailure(text="the source is gone", at_s=NOW - 5)
    source = replace(STATUS.source, end_bytes=None, end_problem=refused, last_failure=failed)
    shown = page(status(BINLOG, source=source))
    assert shown.fact("Where its log ends is not known") == [refused]
    assert shown.fact("Last failure") == ["2026-11-23 09:32:35 UTC: the source is gone"]


def test_the_port_says_why_statements_are_not_judged() -> None:
    port = replace(STATUS.port, problem="the account lacks TRIGGER")
    assert "the account lacks TRIGGER" in [
        each.text for each in page(status(BINLOG, port=port)).all("p", "warn")
    ]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_names_of_others_are_text_and_nothing_else(text: str) -> None:
    tags = {each.tag for each in page(status(BINLOG, STOPPED)).elements}
    reader = replace(READER, user=text, host=text, peer=text, uuid=text, file=text)
    binlog = replace(
        BINLOG,
        name=text,
        log=text,
        ignore=text,
        file=text,
        gtid_complete=text,
        readers=[reader],
        omissions={text: 1},
        rows_instead={text: 1},
        unacknowledged=2,
        stopping=text,
        unreadable=text,
        first_incident=IncidentStatus(text=text, at_s=NOW, file=text, position_bytes=4, gtid=text),
        last_incident=IncidentStatus(text=text, at_s=NOW, file=text, position_bytes=5),
        archived_files=1,
        archive_failure=text,
    )
    stopped = replace(STOPPED, name=f"{text}2", reason=text)
    source = replace(
        STATUS.source, url=text, version=text, gtid=text, end_bytes=None, end_problem=text
    )
    port = replace(STATUS.port, problem=text, address=text)
    shown = page(
        status(
            binlog,
            stopped,
            source=source,
            port=port,
            problem=text,
            archive_uri=text,
            refused=[text],
        )
    )
    assert {each.tag for each in shown.elements} <= tags | {"ul", "li", "section", "div", "code"}
    assert len(shown.all("script")) == 1
    assert not shown.all("script")[0].text
    whole = render_page(status(binlog))
    controls = "\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    assert not re.search(f"[{controls}\ud800-\udfff]", whole)


def test_a_name_from_right_to_left_does_not_turn_what_stands_around_it() -> None:
    reader = replace(READER, user="שלום", peer="שלום", host="שלום")
    binlog = replace(BINLOG, name="שלום", log="שלום", reason="שלום", readers=[reader])
    whole = render_page(status(binlog, problem="שלום"))
    assert "שלום" not in re.sub("<bdi>[^<]*</bdi>", "", whole)


def test_long_texts_are_folded() -> None:
    gtids = ",".join(f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}" for number in range(100))
    shown = page(status(replace(BINLOG, gtid_complete=gtids)))
    assert shown.fact("Complete up to (watermark)")[0].endswith(gtids)
    assert any(f"({len(gtids):,} characters)" in each.text for each in shown.all("summary"))


def test_of_many_binlogs_those_are_open_that_need_somebody() -> None:
    binlogs = [replace(BINLOG, name=f"b{number}") for number in range(OPEN_MAX)]
    assert all("open" in each.attributes for each in page(status(*binlogs)).all("details", "card"))
    shown = page(status(*binlogs, STOPPED))
    are_open = [each for each in shown.all("details", "card") if "open" in each.attributes]
    assert [each.attributes["id"] for each in are_open] == ["binlog-stopped"]
    assert next(link.text for link in shown.all("a")) == "stopped"


def test_many_readers_are_shown_as_far_as_somebody_reads_them() -> None:
    readers = [replace(READER, server_id=number) for number in range(READERS_MAX + 900)]
    shown = page(status(replace(BINLOG, readers=readers)))
    assert len(shown.all("tr")) == READERS_MAX + 1 + 2 * 2 + 1
    assert any(each.text.startswith("900 more") for each in shown.all("p"))


def test_a_plot_is_told_in_words() -> None:
    shown = page(status(replace(BINLOG, rates=rates())))
    image, other = shown.all("svg")
    label = image.attributes["aria-label"]
    assert label.startswith(
        "Event groups a second over the last hour: 0 now, most 9.80 at 09:31; mean "
    )
    assert "in the last 15 minutes" in label
    assert "45 to 60 minutes ago" in label
    assert other.attributes["aria-label"].startswith("Bytes a second over the last hour: 0 B now")
    assert shown.all("figcaption")[0].text == "Event groups a second: 0 now, most 9.80 at 09:31"


def test_a_plot_says_since_when_it_was_watched() -> None:
    shown = page(status(replace(BINLOG, rates=rates(seconds=600))))
    assert any(each.text == "Watched since 2026-11-23 09:22:40 UTC." for each in shown.all("p"))
    assert len(shown.all("rect", "unwatched")) == 2
    whole = page(status(replace(BINLOG, rates=rates())))
    assert not whole.all("rect", "unwatched")
    assert not any("Watched since" in each.text for each in whole.all("p"))


def test_nothing_is_loaded_from_elsewhere() -> None:
    source = render_page(status(replace(BINLOG, rates=rates()), STOPPED))
    shown = Page.read(source)
    assert [each.attributes.get("src") for each in shown.all("script")] == ["/page.js"]
    (icon,) = shown.all("link")
    assert icon.attributes["href"].startswith("data:image/svg+xml,")
    assert "url(" not in _STYLE
    assert "@import" not in _STYLE
    assert "http" not in _STYLE.replace("http-equiv", "")
    assert "http" not in SCRIPT
    assert "'unsafe" not in POLICY
    (again,) = [each for each in shown.all("meta") if "http-equiv" in each.attributes]
    assert "noscript" in again.parents
    assert "//" not in "".join(re.findall(r'(?:src|href|action)="(/[^"]*)"', source))


def _colours(style: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", style))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough_for_everybody(scheme: str) -> None:
    light, dark = _STYLE.split("@media (prefers-color-scheme: dark)")
    colours = _colours(light) | (_colours(dark) if scheme == "dark" else {})
    for text in ("text", "soft", "link"):
        for ground in ("ground", "card"):
            assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for word in ("good", "warn", "bad"):
        assert _contrast(colours[word], colours[f"{word}-ground"]) >= 4.5, word
    assert _contrast(colours["plot"], colours["card"]) >= 3
