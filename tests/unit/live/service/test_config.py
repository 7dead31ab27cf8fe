from __future__ import annotations

from pathlib import Path

import pytest

from binlane.cli import main
from binlane.errors import ConfigError
from binlane.live.capture.settings import StartAt
from binlane.live.loop.port_settings import Bypass, PortSettings
from binlane.live.service.config import (
    ConfigSource,
    Configuration,
    compose,
    effective,
    load,
    size_bytes,
)
from binlane.live.service.operation import changes
from binlane.live.service.setting_keys import KEYS, variable_of
from binlane.positions import GtidPosition

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
    assert settings.port == PortSettings(enabled=True, workers=None, bypass=Bypass.ROWS)
    assert settings.http is None
    assert settings.archive is None


@pytest.mark.parametrize(("word", "workers"), [("auto", None), ("0", 0), ("3", 3)])
def test_workers_by_the_cores_or_as_many_as_are_named(
    tmp_path: Path, word: str, workers: int | None
) -> None:
    value = f'"{word}"' if workers is None else word
    settings = load(written(tmp_path, FULL.replace("workers = 4", f"workers = {value}")))
    assert settings.port.workers == workers
    from_variable = from_environment(tmp_path, FULL, BINLANE_GATEWAY_WORKERS=word).settings
    assert from_variable.port.workers == workers
    assert str(effective(settings)["gateway"]["workers"]) == word


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
        (FULL.replace("workers = 4", "workers = -1"), "gateway.workers", "64"),
        (FULL.replace("workers = 4", 'workers = "all"'), "gateway.workers", '"auto" or'),
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


def from_environment(tmp_path: Path, text: str | None, **environ: str) -> Configuration:
    path = tmp_path / "binlane.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    return ConfigSource(path, may_lack=True, environ=environ).read()


def test_a_variable_stands_above_the_file(tmp_path: Path) -> None:
    configuration = from_environment(
        tmp_path,
        FULL,
        BINLANE_LISTEN_PORT="3308",
        BINLANE_GATEWAY_ENABLED="on",
        BINLANE_GATEWAY_JOURNAL_MAX_SIZE="8M",
        BINLANE_SOURCE_TIMEOUT_S="2.5",
        BINLANE_HTTP_PORT="",
        BINLANE_MYSQL="/somewhere",
    )
    settings = configuration.settings
    assert (settings.listen.port, settings.listen.address) == (3308, "0.0.0.0")
    assert settings.port.enabled
    assert settings.port.journal_max_bytes == 8 << 20
    assert settings.source.timeout_s == 2.5
    assert settings.http is not None
    assert settings.http.port == 8080
    assert configuration.origin("listen", "port") == "BINLANE_LISTEN_PORT"
    assert configuration.origin("listen", "address") == "file"
    assert configuration.origin("listen", "connect_timeout") == "default"
    assert configuration.warnings == ()


@pytest.mark.parametrize("section", KEYS)
def test_every_key_can_be_a_variable(tmp_path: Path, section: str) -> None:
    values = {
        "data_dir": "/d",
        "url": "mysql://a@b",
        "password_file": "/p",
        "start": "oldest",
        "server_id": "7",
        "enabled": "off",
        "options": "--a=1 '--b=2 3'",
        "address": "::1",
        "port": "4000",
        "binlog_access": "granted",
        "proxy_protocol": "off",
        "tls": "required",
        "tls_cert": "/c",
        "tls_key": "/k",
        "bypass": "mark",
        "binlog_with_tables_info": "false",
        "binlog_format": "mixed",
        "expire_logs_days": "1",
        "binlog_expire_logs_seconds": "86400",
        "uri": "s3://c",
        "every": "15m",
        "replicas": "mariadb://a@b#orders",
        "replica_password_file": "/r",
        "level": "error",
        "format": "json",
    }
    environ = {variable_of(section, key): values.get(key, "1048576") for key in KEYS[section]}
    needed = {"BINLANE_SOURCE_URL": "mariadb://a@b", "BINLANE_ARCHIVE_URI": "s3://b"}
    for name, text in (("BINLANE_GATEWAY_WORKERS", "2"), ("BINLANE_LISTEN_PORT", "4000")):
        if name in environ:
            environ[name] = text
    configuration = from_environment(tmp_path, None, **needed | environ)
    told = effective(configuration.settings)
    for key in KEYS[section]:
        assert configuration.origin(section, key) == variable_of(section, key)
    if section == "listen":
        assert told["listen"]["max_connections"] == 1048576


def test_without_a_file_paths_count_from_here(tmp_path: Path) -> None:
    settings = from_environment(
        tmp_path, None, BINLANE_SOURCE_URL="mariadb://a@b", BINLANE_DATA_DIR="here"
    ).settings
    assert settings.data_dir == Path.cwd() / "here"


def test_all_that_is_wrong_is_told(tmp_path: Path) -> None:
    text = (
        "listen = 4\nport = 3307\n[source]\ntimeout_s = '4'\nurl = 'mariadb://a@b'\n"
        "[htp]\n[binlog]\nsync_binlog = -1\n[log]\nlevel = 'loud'\n"
    )
    with pytest.raises(ConfigError) as raised:
        from_environment(tmp_path, text, BINLANE_GATEWAY_WORKERS="-1", BINLANE_LOG_FORMAT="xml")
    told = {error.key: error.hint for error in (raised.value, *raised.value.others)}
    assert set(told) == {
        "listen",
        "port",
        "source.timeout_s",
        "htp",
        "binlog.sync_binlog",
        "log.level",
        "gateway.workers, by BINLANE_GATEWAY_WORKERS",
    }
    assert told["port"] == "did you mean listen.port or http.port?"
    assert told["htp"] == "did you mean http?"


@pytest.mark.parametrize("number", ["nan", "inf", "1e999", "ten", "0x"])
def test_a_number_is_one(tmp_path: Path, number: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_environment(tmp_path, FULL, BINLANE_SOURCE_TIMEOUT_S=number)
    assert raised.value.key == "BINLANE_SOURCE_TIMEOUT_S"


def test_variables_that_set_nothing_are_told(tmp_path: Path) -> None:
    configuration = from_environment(
        tmp_path, FULL, BINLANE_LISTEN_PROT="1", BINLANE_DATADIR="x", BINLANE_SOAK_S="5"
    )
    first, second = configuration.warnings
    assert first.endswith("BINLANE_DATADIR sets nothing: did you mean BINLANE_DATA_DIR?")
    assert second.endswith("BINLANE_LISTEN_PROT sets nothing: did you mean BINLANE_LISTEN_PORT?")


def test_seconds_by_a_variable_stand_above_days_of_the_file(tmp_path: Path) -> None:
    configuration = from_environment(
        tmp_path,
        FULL.replace("days = 0", "days = 3"),
        BINLANE_BINLOG_BINLOG_EXPIRE_LOGS_SECONDS="60",
    )
    assert configuration.settings.store.expire_logs_s == 60
    configuration = from_environment(tmp_path, FULL.replace("days = 0", "days = 3"))
    assert configuration.origin("binlog", "binlog_expire_logs_seconds") == "file"


def test_an_embedded_server_is_the_only_source(tmp_path: Path) -> None:
    assert compose({"embedded": {"enabled": True}}, base=tmp_path).embedded is not None
    with pytest.raises(ConfigError, match="and the embedded one"):
        compose({"embedded": {"enabled": True}, "source": {"url": "mysql://a@b"}}, base=tmp_path)
    with pytest.raises(ConfigError, match="no option"):
        compose({"embedded": {"enabled": True, "options": ["x"]}}, base=tmp_path)


def test_a_password_file_that_cannot_be_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check", "--config", str(written(tmp_path, FULL))]) == 2
    assert "password file" in capsys.readouterr().err


def test_config_check_says_where_values_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("hidden-word")
    monkeypatch.setenv("BINLANE_LISTEN_PORT", "3309")
    assert main(["config", "check", "--config", str(written(tmp_path, FULL))]) == 0
    out = capsys.readouterr().out
    assert "port = 3309  # BINLANE_LISTEN_PORT" in out
    assert 'start = "0-1-27"  # file' in out
    assert 'level = "info"  # default' in out
    assert "hidden-word" not in out


def test_what_sighup_takes_over_is_told_apart(tmp_path: Path) -> None:
    before = load(written(tmp_path, FULL))
    now = load(written(tmp_path, FULL.replace("= 3307", "= 3308\nmax_connections = 5")))
    assert changes(before, now) == ({"listen.max_connections": 5}, {"listen.port": 3308})
    assert changes(now, now) == ({}, {})
