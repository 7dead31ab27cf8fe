"""`binlane.toml` and the environment → the settings of all parts. Nothing else reads configuration.

Each part owns a frozen `ServeSettings` dataclass that validates itself; here they are composed. What
stands above what: an option of the command line, an environment variable, the file, the default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from binlane.binlogs.store.settings import StoreSettings
from binlane.client.settings import ServerUrl
from binlane.errors import ConfigError
from binlane.live.answers.access import BinlogAccess
from binlane.live.capture.settings import SourceSettings, StartAt, parse_start
from binlane.live.gateway.settings import GatewaySettings, TlsMode
from binlane.live.loop.port_settings import Bypass, PortSettings
from binlane.live.loop.rows_settings import RowsSettings
from binlane.live.provision.certificates import check_given
from binlane.live.service.binlog_archive import ArchiveSettings
from binlane.live.service.embedded_settings import EmbeddedSettings, embedded_source
from binlane.live.service.logs import LogFormat, LogLevel, LogSettings
from binlane.live.service.setting_keys import AUTO, setting_of
from binlane.live.service.setting_sources import (
    FROM_FILE,
    FROM_OPTION,
    SettingValues,
    read_document,
    take_document,
    take_environment,
)
from binlane.live.service.verify_settings import VerifySettings, duration_s
from binlane.live.web.settings import HttpSettings
from binlane.statements.sql.servers import LoggingMode

DEFAULT: Final = "default"
"""The origin of a value that nobody set."""

_DAY_S: Final = 86_400
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_EMBEDDED_USES: Final = ("url", "password_file")

_T = TypeVar("_T")
_Word = TypeVar("_Word", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """All settings that `serve` needs.

    Attributes:
        source: The server whose log is captured.
        embedded: The server of our own that is the source; None where it is another one.
        listen: The MySQL port and its limits.
        http: The HTTP port; None serves none.
        store: Size and durability of binlogs.
        archive: The place of the copies; None for no copies.
        port: The services of the port, and their effects on binlogs.
        access: The rule by which accounts may read binlogs.
        log: The log's level and form.
        verify: Comparisons of tables with servers.
        rows: The reading of tables for binlogs that hold their rows.
    """

    data_dir: Path
    source: SourceSettings
    listen: GatewaySettings
    http: HttpSettings | None
    store: StoreSettings
    archive: ArchiveSettings | None = None
    port: PortSettings = field(default_factory=PortSettings)
    access: BinlogAccess = BinlogAccess.PRIVILEGES
    embedded: EmbeddedSettings | None = None
    log: LogSettings = field(default_factory=LogSettings)
    verify: VerifySettings = field(default_factory=VerifySettings)
    rows: RowsSettings = field(default_factory=RowsSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Settings and their origins.

    Attributes:
        settings: The settings of all parts.
        origins: Setting, such as `listen.port` → `file`, `command line` or the environment
            variable; what is not there is a default.
        warnings: Likely slips, a sentence each.
    """

    settings: ServeSettings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]

    def origin(self, section: str, key: str) -> str:
        """Return the origin of a key's value."""
        return self.origins.get(setting_of(section, key), DEFAULT)


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """The file, variables and option that give a process its settings; it can be read again.

    Attributes:
        path: The path of the configuration file.
        may_lack: True if there need not be such a file.
        environ: The environment variables of the process.
        is_embedded: True if the option `--embedded` was given.
    """

    path: Path
    may_lack: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    is_embedded: bool = False

    def read(self) -> Configuration:
        """Return the configuration as it is now.

        Raises:
            ConfigError: If something cannot be read, or is unknown, missing or unusable; all of it
                is in `others`.
        """
        given = SettingValues()
        if not self.may_lack or self.path.exists():
            take_document(given, read_document(self.path), self.path.parent)
        take_environment(given, self.environ, Path.cwd())
        if self.is_embedded:
            given.set("embedded", "enabled", True, FROM_OPTION)
        settings = _composed(given, self.path.parent)
        return Configuration(
            settings=settings, origins=given.origins, warnings=tuple(given.warnings)
        )


def load(path: Path) -> ServeSettings:
    """Read and check a configuration file, and nothing else.

    Raises:
        ConfigError: As `ConfigSource.read`.
    """
    return ConfigSource(path).read().settings


def compose(document: Mapping[str, Any], *, base: Path) -> ServeSettings:
    """Settings from a parsed document.

    Args:
        document: Sections and keys as in `KEYS`.
        base: The directory that relative paths count from.

    Raises:
        ConfigError: As `ConfigSource.read`.
    """
    given = SettingValues()
    take_document(given, document, base)
    return _composed(given, base)


def check_files(settings: ServeSettings) -> None:
    """See that the files that settings name can be used.

    Raises:
        ConfigError: If one cannot.
    """
    if settings.embedded is None:
        settings.source.secret()
    if settings.http is not None:
        settings.http.secret()
    check_given(settings.listen)


def _composed(given: SettingValues, base: Path) -> ServeSettings:
    """The settings; what is wrong with several sections is told at once.

    Raises:
        ConfigError: As `ConfigSource.read`.
    """
    problems, values = given.problems, given.values
    _settle_expiry(given)
    # A setting that is missing in a section with another error is likely to be a result of that
    # error.
    spoilt = {problem.key.partition(".")[0] for problem in problems}

    def of(section: str, make: Callable[[dict[str, Any]], _T]) -> _T | None:
        try:
            return make(dict(values.get(section, {})))
        except ConfigError as error:
            by = given.origins.get(error.key)
            if by is not None or section not in spoilt:
                key = f"{error.key}, by {by}" if by not in (None, FROM_FILE) else error.key
                problems.append(ConfigError(error.message, key=key, hint=error.hint))
            return None

    data_dir = Path(values.get("", {}).get("data_dir", base / "data"))
    embedded = of("embedded", _embedded)
    proxy_protocol = bool(values.get("source", {}).pop("proxy_protocol", False))
    source = of(
        "source", _source if embedded is None else lambda given: _own_source(given, data_dir)
    )
    listen = of("listen", _listen)
    http = of("http", _http) if "http" in values else None
    store, port, log = of("binlog", _store), of("gateway", _port), of("log", _log)
    archive = of("archive", _archive) if "archive" in values else None
    verify = of("verify", _verify)
    rows = of("rows", _rows)
    if problems:
        first, *others = problems
        raise ConfigError(first.message, key=first.key, hint=first.hint, others=others)
    assert source is not None, "what could not be made is a problem"
    assert listen is not None, "as above"
    assert store is not None, "as above"
    assert port is not None, "as above"
    assert log is not None, "as above"
    assert verify is not None, "as above"
    assert rows is not None, "as above"
    return ServeSettings(
        data_dir=data_dir,
        source=source,
        listen=replace(
            listen[0],
            source_host=source.url.host,
            source_port=source.url.port,
            source_socket=source.url.socket,
            source_ssl_mode=source.url.ssl_mode,
            source_ssl_ca=source.url.ssl_ca,
            source_proxy_protocol=proxy_protocol,
        ),
        http=http,
        store=store,
        archive=archive,
        port=port,
        access=listen[1],
        embedded=embedded,
        log=log,
        verify=verify,
        rows=rows,
    )


def _settle_expiry(given: SettingValues) -> None:
    """Let one of the two names of one setting stand above the other, where it does."""
    days, seconds = "binlog.expire_logs_days", "binlog.binlog_expire_logs_seconds"
    by_days, by_seconds = given.origins.get(days), given.origins.get(seconds)
    if by_days is None:
        return
    if by_seconds is not None and (by_days == FROM_FILE) != (by_seconds == FROM_FILE):
        lower = days if by_days == FROM_FILE else seconds
        del given.values["binlog"][lower.partition(".")[2]], given.origins[lower]
    # The effective value is told in seconds.
    given.origins.setdefault(seconds, given.origins.get(days, by_days))


def _embedded(values: dict[str, Any]) -> EmbeddedSettings | None:
    is_enabled = values.pop("enabled", False)
    if "options" in values:
        values["options"] = tuple(values["options"])
    settings = EmbeddedSettings(**values)
    return settings if is_enabled else None


def _own_source(values: dict[str, Any], data_dir: Path) -> SourceSettings:
    for key in _EMBEDDED_USES:
        if key in values:
            raise ConfigError(
                "both another server and the embedded one are named as the source",
                key=f"source.{key}",
                hint="leave it out, or leave out --embedded and [embedded] enabled",
            )
    return embedded_source(data_dir, _start(values))


def _source(values: dict[str, Any]) -> SourceSettings:
    if "url" not in values:
        raise ConfigError(
            "no source is given",
            key="source.url",
            hint='such as "mariadb://binlane@127.0.0.1:3306", in binlane.toml or the environment'
            " variable BINLANE_SOURCE_URL; or serve --embedded",
        )
    values["url"] = ServerUrl.parse(values["url"])
    if "password_file" in values:
        values["password_file"] = Path(values["password_file"])
    return SourceSettings(**_start(values))


def _start(values: dict[str, Any]) -> dict[str, Any]:
    return values | ({"start": parse_start(values["start"])} if "start" in values else {})


def _http(values: dict[str, Any]) -> HttpSettings:
    if "hosts" in values:
        values["hosts"] = tuple(values["hosts"])
    if "password_file" in values:
        values["password_file"] = Path(values["password_file"])
    return HttpSettings(**values)


def _listen(values: dict[str, Any]) -> tuple[GatewaySettings, BinlogAccess]:
    word = values.pop("binlog_access", BinlogAccess.PRIVILEGES.value)
    access = _word(word, BinlogAccess, "listen.binlog_access")
    if "connect_timeout" in values:
        values["login_timeout_s"] = values.pop("connect_timeout")
    if "tls" in values:
        values["tls"] = _word(values["tls"], TlsMode, "listen.tls")
    for key in ("tls_cert", "tls_key"):
        if key in values:
            values[key] = Path(values[key])
    if "tls_names" in values:
        values["tls_names"] = tuple(values["tls_names"])
    return GatewaySettings(**values), access


def _port(values: dict[str, Any]) -> PortSettings:
    if values.get("workers") == AUTO:
        del values["workers"]
    if "bypass" in values:
        values["bypass"] = _word(values["bypass"], Bypass, "gateway.bypass")
    if "journal_max_size" in values:
        size = size_bytes(values.pop("journal_max_size"), "gateway.journal_max_size")
        values["journal_max_bytes"] = size
    return PortSettings(**values)


def _log(values: dict[str, Any]) -> LogSettings:
    if "level" in values:
        values["level"] = _word(values["level"].lower(), LogLevel, "log.level")
    if "format" in values:
        values["format"] = _word(values["format"].lower(), LogFormat, "log.format")
    return LogSettings(**values)


def _rows(values: dict[str, Any]) -> RowsSettings:
    if "chunk_size" in values:
        values["chunk_bytes"] = size_bytes(values.pop("chunk_size"), "rows.chunk_size")
    if "max_size" in values:
        values["size_max_bytes"] = size_bytes(values.pop("max_size"), "rows.max_size")
    return RowsSettings(**values)


def _archive(values: dict[str, Any]) -> ArchiveSettings:
    if "uri" not in values:
        raise ConfigError(
            "no URI for the copies is given", key="archive.uri", hint="such as s3://bucket/prefix"
        )
    return ArchiveSettings(**values)


def _verify(values: dict[str, Any]) -> VerifySettings:
    if "every" in values:
        values["every_s"] = duration_s(values.pop("every"), "verify.every")
    if "replicas" in values:
        values["replicas"] = tuple(values["replicas"])
    if "replica_password_file" in values:
        values["replica_password_file"] = Path(values["replica_password_file"])
    return VerifySettings(**values)


def _store(values: dict[str, Any]) -> StoreSettings:
    if "binlog_with_tables_info" in values:
        values["has_tables_info"] = values.pop("binlog_with_tables_info")
    if "binlog_format" in values:
        word = values["binlog_format"].upper()
        values["binlog_format"] = _word(word, LoggingMode, "binlog.binlog_format")
    days = values.pop("expire_logs_days", None)
    seconds = values.pop("binlog_expire_logs_seconds", None)
    if days is not None:
        if seconds is not None and seconds != days * _DAY_S:
            raise ConfigError(
                f"{days} days are not {seconds} seconds",
                key="binlog.expire_logs_days",
                hint="give one of expire_logs_days and binlog_expire_logs_seconds",
            )
        seconds = days * _DAY_S
    if seconds is not None:
        values["expire_logs_s"] = seconds
    if "max_binlog_total_size" in values:
        total = size_bytes(values.pop("max_binlog_total_size"), "binlog.max_binlog_total_size")
        values["max_binlog_total_size_bytes"] = total
    if "max_binlog_size" in values:
        size = size_bytes(values.pop("max_binlog_size"), "binlog.max_binlog_size")
        values["max_binlog_size_bytes"] = size
    return StoreSettings(**values)


def effective(settings: ServeSettings) -> dict[str, dict[str, object]]:
    """The value of every key that may stand in the file, by section; the empty one comes first.

    `load` of these values, written as TOML, gives the same settings. What has no value is not there.
    """
    source, listen, store = settings.source, settings.listen, settings.store
    start = source.start.value if isinstance(source.start, StartAt) else str(source.start)
    is_embedded = settings.embedded is not None
    archive, http = settings.archive, settings.http
    values: dict[str, dict[str, object]] = {
        "": {"data_dir": str(settings.data_dir)},
        "source": {
            "url": None if is_embedded else source.url.text,
            "password_file": None
            if is_embedded or source.password_file is None
            else str(source.password_file),
            "start": start,
            "server_id": source.server_id,
            "heartbeat_period_s": source.heartbeat_period_s,
            "timeout_s": source.timeout_s,
            "proxy_protocol": listen.source_proxy_protocol,
        },
        "embedded": {
            "enabled": is_embedded,
            "options": list(settings.embedded.options) if settings.embedded else None,
        },
        "listen": {
            "address": listen.address,
            "port": listen.port,
            "tls": listen.tls.value,
            "tls_cert": None if listen.tls_cert is None else str(listen.tls_cert),
            "tls_key": None if listen.tls_key is None else str(listen.tls_key),
            "tls_names": list(listen.tls_names),
            "max_connections": listen.max_connections,
            "connect_timeout": listen.login_timeout_s,
            "binlog_access": settings.access.value,
        },
        "gateway": {
            "enabled": settings.port.enabled,
            "workers": AUTO if settings.port.workers is None else settings.port.workers,
            "bypass": settings.port.bypass.value,
            "journal_max_size": settings.port.journal_max_bytes,
        },
        "http": {}
        if http is None
        else {
            "address": http.address,
            "port": http.port,
            "hosts": list(http.hosts),
            "password_file": None if http.password_file is None else str(http.password_file),
        },
        "binlog": {
            "max_binlog_size": store.max_binlog_size_bytes,
            "sync_binlog": store.sync_binlog,
            "binlog_expire_logs_seconds": store.expire_logs_s,
            "max_binlog_total_size": store.max_binlog_total_size_bytes,
            "binlog_with_tables_info": store.has_tables_info,
            "binlog_format": None if store.binlog_format is None else store.binlog_format.value,
        },
        "rows": {
            "rows_per_s": settings.rows.rows_per_s,
            "gtid_domain_id": settings.rows.gtid_domain_id,
            "chunk_size": settings.rows.chunk_bytes,
            "max_size": settings.rows.size_max_bytes,
        },
        "archive": {}
        if archive is None
        else {"uri": archive.uri, "interval_s": archive.interval_s},
        "verify": _shown_verify(settings.verify),
        "log": {"level": settings.log.level.value, "format": settings.log.format.value},
    }
    known = {
        section: {key: value for key, value in keys.items() if value is not None}
        for section, keys in values.items()
    }
    return {section: keys for section, keys in known.items() if keys}


def _shown_verify(verify: VerifySettings) -> dict[str, object]:
    path = verify.replica_password_file
    return {
        "every": f"{verify.every_s:g}s",
        "rows_per_s": verify.rows_per_s,
        "replicas": list(verify.replicas),
        "replica_user": verify.replica_user or None,
        "replica_password_file": None if path is None else str(path),
    }


def size_bytes(value: object, key: str) -> int:
    """A size as the servers write it: a number of bytes, or one with K, M or G.

    Raises:
        ConfigError: If it is neither.
    """
    match = re.fullmatch(r"(\d+)([KMG]?)", str(value).upper(), re.ASCII)
    if match is None:
        raise ConfigError(f"{value!r} is no size", key=key, hint="such as 1073741824 or 1G")
    return int(match[1]) * _UNITS[match[2]]


def _word(word: str, words: type[_Word], key: str) -> _Word:
    known = [each.value for each in words]
    if word not in known:
        raise ConfigError(
            f"{word!r} is not a known value",
            key=key,
            hint="one of " + ", ".join(f'"{each}"' for each in known),
        )
    return words(word)
