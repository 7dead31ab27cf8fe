"""The status page of a real `serve`, and as a browser shows it."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.live.web.application import application
from binlane.live.web.port_card import serve_http
from binlane.live.web.status_values import Status
from tests.browser import Tab, browse, browser_program
from tests.fixture_sets import fixture_set
from tests.html_reading import Page
from tests.prometheus_text import read_metrics
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import execute
from tests.shown import BINLOG, READER, STOPPED, rates, status

SETTINGS = '[http]\nport = 0\n[binlog]\nmax_binlog_size = "1M"\n'
MEGABYTES = 16
WIDTHS = (1280, 390, 320)
_LINES_PX = 80
_FONT_PX = 12
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def source(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(server_directory, name="page", options=SOURCE_OPTIONS) as server:
        create_account(server)
        yield server


@pytest.fixture(scope="module")
def serve(
    source: PrivateServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("page")
    with ServeProcess(directory / "serve", source, extra=SETTINGS) as process:
        wait_until(lambda: process.get("/healthz") == (200, "ok\n"))
        execute(source, "CREATE DATABASE shop", "CREATE DATABASE crm")
        process.execute(
            "CREATE BINLOG 'everything'",
            "CREATE BINLOG 'shop' LOG(shop), IGNORE(shop.audit)",
            "CREATE BINLOG 'stopped' LOG(crm)",
            "STOP BINLOG 'stopped'",
        )
        execute(
            source,
            "CREATE TABLE shop.items (id INT AUTO_INCREMENT PRIMARY KEY, note LONGBLOB)",
            *(["INSERT INTO shop.items (note) VALUES (REPEAT('x', 1000000))"] * MEGABYTES),
        )
        process.wait_until_complete("everything")
        yield process


def binlog(serve: ServeProcess, name: str) -> dict[str, Any]:
    found = json.loads(serve.get("/api/binlogs")[1])
    return next(each for each in found if each["name"] == name)


def test_each_path_says_how_it_is_to_be_used(serve: ServeProcess) -> None:
    kinds = {
        "/": "text/html; charset=utf-8",
        "/page.js": "text/javascript; charset=utf-8",
        "/healthz": "text/plain; charset=utf-8",
        "/metrics": "text/plain; version=0.0.4; charset=utf-8",
        "/api/binlogs": "application/json; charset=utf-8",
        "/api/status": "application/json; charset=utf-8",
    }
    for path, kind in kinds.items():
        url = f"http://127.0.0.1:{serve.http_port}{path}"
        for method in ("GET", "HEAD"):
            with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
                assert answer.status == 200
                assert answer.headers["Content-Type"] == kind
                assert answer.headers["Cache-Control"] == "no-store"
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert int(answer.headers["Content-Length"]) > 0
                assert bool(answer.read()) == (method == "GET")
    assert serve.get("/other")[0] == 404


@pytest.mark.rule("000:web-scope")
def test_the_page_shows_each_binlog_with_its_scope(serve: ServeProcess) -> None:
    page = Page.read(serve.get("/")[1])
    assert [each.text for each in page.all("h3")] == ["everything", "shop", "stopped"]
    assert page.fact("LOG") == ["ALL", "shop", "crm"]
    assert page.fact("IGNORE") == ["nothing", "shop.audit", "nothing"]
    assert [each.text for each in page.all("span", "state")] == ["OPEN", "OPEN", "STOPPED"]
    shown = {row[0]: row for row in serve.execute("SHOW BINLOGS")}
    for name, place in zip(shown, page.fact("File and position"), strict=True):
        assert place == f"{shown[name][1]} at {int(shown[name][2]):,}"
    watermarks = [row[3] for row in shown.values()]
    assert page.fact("Complete up to (watermark)") == watermarks
    assert page.fact("Server") == [f"mariadb://{ADMIN}@127.0.0.1:{serve.source.port}"]
    assert PASSWORD not in serve.get("/")[1]


def test_sizes_and_counts_are_those_of_the_files(serve: ServeProcess) -> None:
    for name in ("everything", "shop"):
        found = binlog(serve, name)
        listed = serve.execute(f"SHOW BINARY LOGS FOR '{name}'")
        assert found["files"] == len(listed)
        assert found["size_bytes"] == sum(int(row[1]) for row in listed)
        assert found["size_bytes"] - 1000 < found["written_bytes"] < found["size_bytes"]
        assert found["event_groups"] >= MEGABYTES


def test_how_far_binlogs_are_behind_the_source(serve: ServeProcess) -> None:
    position = execute(serve.source, "SHOW MASTER STATUS")[0][:2]

    def is_known() -> bool:
        # The source is asked from time to time.
        source = json.loads(serve.get("/api/status")[1])["source"]
        return bool((source["end_file"], source["end_bytes"]) == position)

    wait_until(is_known)
    wait_until(lambda: binlog(serve, "everything")["lag_bytes"] == 0)
    assert binlog(serve, "stopped")["lag_bytes"] is None
    source = json.loads(serve.get("/api/status")[1])["source"]
    assert (source["file"], source["position_bytes"]) == position
    names = {sample.name for sample in read_metrics(serve.get("/metrics")[1]).samples}
    assert {"binlane_lag_bytes", "process_open_fds", "binlane_build_info"} <= names


def test_a_reader_that_takes_nothing(serve: ServeProcess) -> None:
    with serve.connect() as session:
        connection: Any = session
        connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        with session.cursor() as cursor:
            cursor.execute("SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'")
        command = struct.pack("<IHI", 4, 2, 4711) + b"everything.000001"
        connection._execute_command(COMMAND.COM_BINLOG_DUMP, command)
        wait_until(
            lambda: (
                [each["state"] for each in binlog(serve, "everything")["readers"]]
                == ["takes nothing"]
            )
        )
        (reader,) = binlog(serve, "everything")["readers"]
        assert (reader["server_id"], reader["user"]) == (4711, ADMIN)
        assert reader["blocked_s"] >= 1
        assert reader["sent_bytes"] > 0
        # What is left is what SHOW BINARY LOGS says.
        listed = serve.execute("SHOW BINARY LOGS FOR 'everything'")
        files = [(str(name), int(size)) for name, size, *_ in listed]
        at = [name for name, _ in files].index(reader["file"])
        left = sum(size for _, size in files[at:]) - reader["position_bytes"]
        assert reader["lag_bytes"] == left > 1 << 20
        assert reader["lag_s"] is not None
        samples = read_metrics(serve.get("/metrics")[1]).samples
        lags = [one for one in samples if one.name == "binlane_replica_lag_bytes"]
        assert [(one.labels, one.value) for one in lags] == [
            ({"binlog": "everything", "replica": "4711"}, left)
        ]
        assert "takes nothing for" in Page.read(serve.get("/")[1]).all("table", "readers")[0].text

        def has_all() -> bool:
            connection._sock.setblocking(False)
            try:
                while connection._sock.recv(1 << 20):
                    pass
            except BlockingIOError:
                pass
            (reader,) = binlog(serve, "everything")["readers"]
            return (reader["state"], reader["lag_bytes"], reader["lag_s"]) == ("caught up", 0, 0)

        wait_until(has_all)
        connection._force_close()
    wait_until(lambda: binlog(serve, "everything")["readers"] == [])
    assert binlog(serve, "everything")["dumps"] == 0


def test_what_the_port_refused_is_counted(serve: ServeProcess) -> None:
    with pytest.raises(pymysql.MySQLError):
        pymysql.connect(host="127.0.0.1", port=serve.port, user="nobody", password="wrong")
    with pytest.raises(pymysql.MySQLError, match="binlog"):
        serve.execute("DROP BINLOG 'none of these'")

    def is_counted() -> bool:
        port = json.loads(serve.get("/api/status")[1])["port"]
        return bool(port["logins"].get("refused") == 1 and sum(port["refused"].values()) >= 1)

    wait_until(is_counted)


def hostile() -> Status:
    wide = "W" * 64
    reader = replace(READER, user="<b>" + wide, host="\u202e" + wide, peer="[2001:db8::8a2e]:51022")
    one = replace(
        BINLOG,
        name="<script>alert(1)</script>" + wide,
        log=f"{wide}.{wide}, {wide}",
        file=f"{wide}.000001",
        readers=[reader],
        rows_instead={wide * 4: 3},
        gtid_complete=",".join(f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{n}" for n in range(99)),
        rates=rates(),
    )
    return status(one, replace(STOPPED, rates=rates(seconds=300)), BINLOG, problem=f"<i>{wide}")


def test_a_summary_can_be_read_on_a_phone(tmp_path: Path) -> None:
    browser_program()
    logs = []
    for name, data in fixture_set("md1011_ddl").binlogs:
        logs.append(tmp_path / name)
        logs[-1].write_bytes(data)
    page = tmp_path / "summary.html"
    command = [
        sys.executable,
        "-m",
        "binlane",
        "cat",
        "--summary",
        "--html",
        str(page),
        *map(str, logs),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    async def visit(tab: Tab) -> None:
        await tab.look(width=390)
        await tab.open(page.as_uri())
        for width in (*WIDTHS, 360):
            for scheme in ("light", "dark"):
                await tab.look(width=width, scheme=scheme)
                assert await tab.value(_OVERFLOW) <= 0, (width, scheme)
                heights = "[...document.querySelectorAll('td')].map((cell) => cell.clientHeight)"
                assert await tab.value(f"Math.max(...{heights})") < _LINES_PX, width
                font = "getComputedStyle(document.querySelector('.ends')).fontSize"
                assert await tab.value(f"parseFloat({font})") >= _FONT_PX, width
        assert tab.complaints == []

    browse(tmp_path / "profile", visit)


def test_a_browser_shows_it_without_a_word(tmp_path: Path) -> None:
    browser_program()
    shown = [hostile()]

    def snapshot(*, with_rates: bool = True) -> Status:
        del with_rates
        return shown[-1]

    async def visit(tab: Tab) -> None:
        port = await serve_http(application(snapshot), address="127.0.0.1", port=0)
        await tab.look(width=390)
        await tab.open(f"http://127.0.0.1:{port.addresses[0][1]}/")
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                await tab.look(width=width, scheme=scheme)
                assert await tab.value(_OVERFLOW) <= 0, (width, scheme)
        assert await tab.value("document.title") == "binlane: 2 problems"
        assert await tab.value("document.querySelectorAll('script').length") == 1
        assert await tab.value("document.getElementById('pause').hidden") is False

        # What was closed stays closed when the page shows something new by itself.
        card = "document.getElementById('binlog-orders')"
        await tab.value(f"{card}.querySelector('summary').click()")
        await tab.wait_for(f"!{card}.open")
        shown.append(replace(hostile(), problem=None))
        soon = "document.dispatchEvent(new Event('visibilitychange'))"
        await tab.value(soon)
        await tab.wait_for("document.title == 'binlane: 1 problem'")
        assert await tab.value(f"{card}.open") is False

        # A service that does not answer is not mistaken for one that is well.
        assert await tab.value("document.getElementById('stale').hidden") is True
        await port.cleanup()
        await tab.value(soon)
        await tab.wait_for("document.getElementById('stale').hidden === false")
        assert "some seconds old" in await tab.value("document.getElementById('stale').textContent")
        assert [each for each in tab.complaints if "ERR_CONNECTION_REFUSED" not in each] == []

    browse(tmp_path / "browser", visit)
