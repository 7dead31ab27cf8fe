from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.client.settings import ServerUrl
from binlane.errors import ConfigError
from binlane.live.capture.settings import SourceSettings, Start, StartAt, parse_start
from binlane.positions import FilePosition, GtidPosition


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
    settings = SourceSettings(url=ServerUrl(user="u"))
    with pytest.raises(ConfigError) as caught:
        replace(settings, **change)
    assert caught.value.key == key


def test_a_password_is_not_shown() -> None:
    assert "geheim" not in repr(SourceSettings(url=ServerUrl(user="u"), password="geheim"))
