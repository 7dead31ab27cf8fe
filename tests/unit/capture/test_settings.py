from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.capture.settings import (
    SourceSettings,
    SourceUrl,
    SslMode,
    Start,
    StartAt,
    parse_start,
)
from binlane.errors import ConfigError
from binlane.positions import FilePosition, GtidPosition


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("mariadb://binlane@10.0.0.1:3307", SourceUrl(user="binlane", host="10.0.0.1", port=3307)),
        ("mysql://u@db/", SourceUrl(user="u", host="db", scheme="mysql")),
        ("mariadb://a%40b@[::1]:1", SourceUrl(user="a@b", host="::1", port=1)),
        (
            "mariadb://u@localhost?socket=/run/my%20+sql.sock",
            SourceUrl(user="u", host="localhost", socket="/run/my +sql.sock"),
        ),
        (
            "mariadb://u@db?ssl-mode=verify_ca&ssl-ca=/ca.pem&ssl-cert=/c.pem&ssl-key=/k.pem",
            SourceUrl(
                user="u",
                host="db",
                ssl_mode=SslMode.VERIFY_CA,
                ssl_ca="/ca.pem",
                ssl_cert="/c.pem",
                ssl_key="/k.pem",
            ),
        ),
    ],
)
def test_urls(text: str, url: SourceUrl) -> None:
    assert SourceUrl.parse(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("127.0.0.1:3306", "names no server"),
        ("postgres://u@h", "names no server"),
        ("mariadb://127.0.0.1", "names no user"),
        ("mariadb://u@h:port", "is no URL"),
        ("mariadb://u@h/shop", "names a database"),
        ("mariadb://u@h?ssl-mode=MAYBE", "ssl-mode 'MAYBE' is unknown"),
        ("mariadb://u@h?ssl-mod=REQUIRED", "option 'ssl-mod' is unknown"),
    ],
)
def test_what_is_no_url(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        SourceUrl.parse(text)
    assert caught.value.key == "source.url"
    assert caught.value.hint


def test_an_unknown_option_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        SourceUrl.parse("mariadb://u@h?sokcet=/x")
    assert caught.value.hint == "did you mean socket?"


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        SourceUrl.parse("mariadb://u:geheim@h")
    assert "geheim" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    "text", ["mariadb://u@10.0.0.1:3307", "mysql://u@[::1]:1", "mariadb://u@h?socket=/s"]
)
def test_messages_name_a_server_as_its_url(text: str) -> None:
    assert str(SourceUrl.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("now", StartAt.NOW),
        (" Oldest ", StartAt.OLDEST),
        ("0-1-27,2-7-9", GtidPosition.parse("0-1-27,2-7-9")),
        ("binlog.000007:1234", FilePosition("binlog.000007", 1234)),
        ("binlog.000007:0", FilePosition("binlog.000007", 4)),
    ],
)
def test_starts(text: str, start: Start) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "yesterday", "0-1", "binlog.000007:", ":4", "0-1-1,0-2-2"])
def test_what_is_no_start(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_start(text)
    assert caught.value.key == "source.start"
    assert "oldest" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"server_id": 0}, "source.server_id"),
        ({"server_id": 1 << 32}, "source.server_id"),
        ({"heartbeat_period_s": 0.0}, "source.heartbeat_period_s"),
        ({"heartbeat_period_s": 5e6}, "source.heartbeat_period_s"),
        ({"timeout_s": 0.0}, "source.timeout_s"),
        ({"password": "a", "password_file": Path("b")}, "source.password_file"),
    ],
)
def test_settings_that_cannot_be_used(change: dict[str, Any], key: str) -> None:
    settings = SourceSettings(url=SourceUrl(user="u"))
    with pytest.raises(ConfigError) as caught:
        replace(settings, **change)
    assert caught.value.key == key


def test_a_password_is_not_shown() -> None:
    assert "geheim" not in repr(SourceSettings(url=SourceUrl(user="u"), password="geheim"))
