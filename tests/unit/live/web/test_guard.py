"""Who is answered over HTTP, asked as browsers and monitoring ask."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from pathlib import Path

import pytest
from aiohttp import ClientSession

from binlane.errors import ConfigError
from binlane.live.web.application import application
from binlane.live.web.guard import Guard, is_loopback
from binlane.live.web.port_card import serve_http
from binlane.live.web.settings import HttpSettings
from binlane.live.web.status_values import Status
from tests.shown import BINLOG, STOPPED, status

NAMES = HttpSettings(address="page.internal", hosts=("Monitor.example.com", "grafana"))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8080",
        "127.0.0.1",
        "10.1.2.3:8080",  # reached through a port that was mapped, by whatever address
        "[::1]:8080",
        "[::1]",
        "localhost:9000",
        "LOCALHOST",
        "localhost.",
        "page.internal:8080",
        "monitor.example.com",
        "grafana:8080",
        socket.gethostname(),
    ],
)
def test_names_of_the_port(host: str) -> None:
    assert Guard(NAMES).knows(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8080",
        "evil.example:80:8080",
        "[::1].evil.example",
        "[evil.example]:8080",
        "[]",
        "",
        ":8080",
        "2130706433",
        "user@localhost",
        "localhost, evil.example",
        "monitor.example.com.evil.example",
        "localhost\u0130",
    ],
)
def test_names_of_others(host: str) -> None:
    assert not Guard(NAMES).knows(host)


def problem(*, with_rates: bool = True) -> Status:
    del with_rates
    return status(BINLOG, STOPPED)


async def asked(
    settings: HttpSettings, requests: list[tuple[str, str, dict[str, str]]]
) -> list[str]:
    """The status and the text that each request gets: method, path, headers."""
    port = await serve_http(
        application(problem), address="127.0.0.1", port=0, guard=Guard(settings)
    )
    found = []
    try:
        async with ClientSession(f"http://127.0.0.1:{port.addresses[0][1]}") as session:
            for method, path, headers in requests:
                async with session.request(method, path, headers=headers) as answer:
                    found.append(f"{answer.status} {await answer.text()}")
                    if answer.status != 404:
                        assert answer.headers["Cache-Control"] == "no-store"
                    if answer.status == 401:
                        assert answer.headers["WWW-Authenticate"].startswith(
                            'Basic realm="binlane"'
                        )
    finally:
        await port.cleanup()
    return found


PATHS = ("/", "/page.js", "/metrics", "/api/binlogs", "/api/status", "/healthz", "/nothing")


def test_a_page_that_has_its_name_lead_here_reads_nothing() -> None:
    evil = {"Host": "evil.example:8080"}
    found = asyncio.run(asked(HttpSettings(), [("GET", path, evil) for path in PATHS]))
    assert {one.partition(" ")[0] for one in found} == {"403"}
    assert not any("orders" in one for one in found)
    assert all("[http] hosts" in one for one in found)


def test_what_a_stranger_calls_it_is_told_as_plain_text() -> None:
    host = {"Host": "<script>\u00e4" + "x" * 1000}
    (found,) = asyncio.run(asked(HttpSettings(), [("GET", "/", host)]))
    assert found.startswith("403 ")
    assert len(found) < 300


def test_who_says_no_name_is_a_program_of_old(tmp_path: Path) -> None:
    async def ask() -> bytes:
        port = await serve_http(application(problem), address="127.0.0.1", port=0)
        reader, writer = await asyncio.open_connection(*port.addresses[0][:2])
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        head = await reader.readline()
        writer.close()
        await writer.wait_closed()
        await port.cleanup()
        return head

    assert asyncio.run(ask()).split()[1] == b"200"


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_password_lets_in_who_knows_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s\u00e4cret:x\nnot this\n", "utf-8")
    settings = HttpSettings(password_file=secret)
    right = [basic("anybody", "s\u00e4cret:x"), basic("", "s\u00e4cret:x")]
    wrong = [
        {},
        basic("anybody", "s\u00e4cret"),
        basic("anybody", ""),
        bearer("nothing"),
        bearer(""),
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()},
        {"Authorization": "Digest s\u00e4cret:x"},
        {"Authorization": ""},
    ]
    requests = [("GET", path, each) for each in (*right, *wrong) for path in PATHS]
    found = asyncio.run(asked(settings, requests))
    per = len(PATHS)
    for at in range(len(right)):
        codes = [one[:3] for one in found[at * per : (at + 1) * per]]
        assert codes == ["200", "200", "200", "200", "200", "503", "404"]
    for at in range(len(right), len(right) + len(wrong)):
        told = found[at * per : (at + 1) * per]
        assert [one[:3] for one in told] == ["401", "401", "401", "401", "401", "503", "401"]
        assert not any("stopped" in one or "orders" in one for one in told)
        assert told[5] == "503 not ok\n"


def test_a_token_and_a_password_that_has_changed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token", "ascii")
    guard = Guard(HttpSettings(password_file=secret))

    async def ask() -> list[int]:
        port = await serve_http(application(problem), address="127.0.0.1", port=0, guard=guard)
        found = []
        async with ClientSession(f"http://127.0.0.1:{port.addresses[0][1]}") as session:
            for text in ("token", "another", None):
                if text is None:
                    secret.unlink()
                else:
                    secret.write_text(text, "ascii")
                async with session.get("/metrics", headers=bearer("token")) as answer:
                    found.append(answer.status)
            guard.use(HttpSettings())
            async with session.get("/metrics") as answer:
                found.append(answer.status)
        await port.cleanup()
        return found

    assert asyncio.run(ask()) == [200, 401, 401, 200]


@pytest.mark.parametrize("content", [None, b"", b"\nsecond", b"\xff\xfe"])
def test_a_file_without_a_password(tmp_path: Path, content: bytes | None) -> None:
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(str(secret))) as caught:
        HttpSettings(password_file=secret).secret()
    assert caught.value.key == "http.password_file"


@pytest.mark.parametrize("name", ["http://page", "page:8080", "two names", "", "*"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ConfigError, match="no host name"):
        HttpSettings(hosts=(name,))


def test_addresses_of_this_machine_alone() -> None:
    assert [is_loopback(each) for each in ("127.0.0.1", "::1", "127.1.2.3")] == [True] * 3
    assert [is_loopback(each) for each in ("0.0.0.0", "::", "10.0.0.1", "fe80::1%lo")] == [
        False
    ] * 4
