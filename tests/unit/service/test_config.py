from __future__ import annotations

from pathlib import Path

import pytest

from binlane.capture.settings import StartAt
from binlane.cli import main
from binlane.errors import ConfigError
from binlane.port.settings import Bypass, PortSettings
from binlane.positions import GtidPosition
from binlane.service.config import load, size_bytes

FULL = """
data_dir = "data"
[source]                      # the server whose log is captured
url = "mariadb://binlane@db.example:3316"
password_file = "secret"
start = "0-1-27"
[listen]
address = "0.0.0.0"
port = 3307
[gateway]
enabled = false
workers = 4
bypass = "stop"
journal_max_size = "64M"
[http]
address = "127.0.0.1"
port = 8080
[binlog]
max_binlog_size = "1G"
sync_binlog = 1
expire_logs_days = 0
[archive]
uri = "s3://bucket/prefix"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "binlane.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_of_the_contract(tmp_path: Path) -> None:
    settings = load(written(tmp_path, FULL))
    assert settings.data_dir == tmp_path / "data"
    assert settings.source.password_file == tmp_path / "secret"
    assert settings.source.start == GtidPosition.parse("0-1-27")
    assert (settings.listen.address, settings.listen.port) == ("0.0.0.0", 3307)
    assert (settings.listen.source_host, settings.listen.source_port) == ("db.example", 3316)
    assert settings.port == PortSettings(
        enabled=False, workers=4, bypass=Bypass.STOP, journal_max_bytes=64 << 20
    )
    assert settings.http is not None
    assert settings.http.port == 8080
    assert settings.store.max_binlog_size_bytes == 1 << 30
    assert settings.archive is not None
    assert (settings.archive.uri, settings.archive.interval_s) == ("s3://bucket/prefix", 10.0)


def test_defaults(tmp_path: Path) -> None:
    settings = load(written(tmp_path, '[source]\nurl = "mariadb://binlane@127.0.0.1"'))
    assert settings.source.start is StartAt.NOW
    assert settings.listen.port == 3307
    assert settings.port == PortSettings(enabled=True, workers=1, bypass=Bypass.ROWS)
    assert settings.http is None
    assert settings.archive is None


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("", "source.url", "mariadb://"),
        ("[sorce]\nurl = 'x'", "sorce", "source"),
        ("[source]\nurll = 'x'", "source.urll", "did you mean source.url?"),
        (
            FULL.replace("sync_binlog = 1", "sync_binlogs = 1"),
            "binlog.sync_binlogs",
            "sync_binlog?",
        ),
        (FULL.replace("= 3307", "= 70000"), "listen.port", "65535"),
        (FULL.replace("= 8080", "= -1"), "http.port", "65535"),
        (FULL.replace("s3://bucket", "/mnt/bucket"), "archive.uri", "file:///mnt"),
        (FULL.replace("workers = 4", "workers = 0"), "gateway.workers", "64"),
        (FULL.replace("enabled = false", 'enabled = "no"'), "gateway.enabled", ""),
        (FULL.replace('"stop"', '"halt"'), "gateway.bypass", '"rows", "mark", "stop"'),
        (FULL.replace('"64M"', '"1K"'), "gateway.journal_max_size", "1048576"),
        (FULL.replace('"64M"', '"much"'), "gateway.journal_max_size", ""),
        (FULL + "interval_s = 0", "archive.interval_s", ""),
        (FULL.replace('"1G"', '"1T"'), "binlog.max_binlog_size", "1G"),
        (FULL.replace('"1G"', '"1K"'), "binlog.max_binlog_size", "4096"),
        (FULL.replace("days = 0", "days = -1"), "binlog.binlog_expire_logs_seconds", "keep all"),
        (
            FULL.replace("days = 0", "days = 2\nbinlog_expire_logs_seconds = 3"),
            "binlog.expire_logs_days",
            "give one of",
        ),
        (
            FULL.replace("days = 0", "days = 0\nmax_binlog_total_size = '5X'"),
            "binlog.max_binlog_total_size",
            "1G",
        ),
        (FULL.replace('"0-1-27"', '"0-1"'), "source.start", "oldest"),
        (FULL.replace('"data"', "5"), "data_dir", ""),
        (FULL.replace("binlane@", "binlane:secret@"), "source.url", "password_file"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(written(tmp_path, text))
    assert raised.value.key == key
    assert hint in raised.value.hint


def test_files_may_expire_and_have_a_total_size(tmp_path: Path) -> None:
    kept = "days = 1.5\nbinlog_expire_logs_seconds = 129600\nmax_binlog_total_size = '5G'"
    store = load(written(tmp_path, FULL.replace("days = 0", kept))).store
    assert (store.expire_logs_s, store.max_binlog_total_size_bytes) == (129_600, 5 << 30)


def test_no_toml_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no TOML"):
        load(written(tmp_path, "[source"))
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "nope.toml")
    with pytest.raises(ConfigError, match=r"wrong type \(listen\.port\)"):
        load(written(tmp_path, FULL.replace("= 3307", '= "3307"')))


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        '[source]\nurl = "mariadb://a%40b@[::1]:3307?socket=/run/x.sock&ssl-mode=REQUIRED"',
        '[source]\nurl = "mariadb://a@h"\nstart = "binlog.000007:4711"\nserver_id = 9',
    ],
)
def test_what_config_check_prints_means_the_same(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, text)
    (tmp_path / "secret").write_text("of the account")
    settings = load(path)
    assert main(["config", "check", "--config", str(path)]) == 0
    assert load(written(tmp_path, capsys.readouterr().out)) == settings


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), (8192, 8192), ("256K", 262144), ("1g", 1 << 30)]
)
def test_sizes(text: object, size: int) -> None:
    assert size_bytes(text, "key") == size
