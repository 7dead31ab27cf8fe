"""`binlane.toml` → the settings of all parts. The only place that reads configuration.

Each part owns a frozen `Settings` dataclass that validates itself; here they are composed. An unknown
key is an error that names the nearest known one.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from binlane.capture.settings import SourceSettings, StartAt, parse_start
from binlane.client.settings import ServerUrl
from binlane.errors import ConfigError
from binlane.gateway.settings import GatewaySettings
from binlane.port.settings import Bypass, PortSettings
from binlane.service.access import BinlogAccess
from binlane.service.archive import ArchiveSettings
from binlane.store.settings import StoreSettings
from binlane.web.settings import HttpSettings

_DAY_S: Final = 86_400
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

# Section → key → what it is; everything that may stand in the file.
KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"data_dir": "directory of the store; relative to the file"},
    "source": {
        "url": "mariadb:// or mysql://user@host:port of the server whose log is captured",
        "password_file": "file that holds the account's password",
        "start": '"now", "oldest", a GTID position or set, or "file:position"',
        "server_id": "server id as a replica of the source; by default a number of its own",
        "heartbeat_period_s": "an idle source says that it lives this often",
        "timeout_s": "longest wait for a connection to the source",
    },
    "listen": {
        "address": "where clients and replicas connect",
        "port": "TCP port; 0 takes a free one",
        "max_connections": "clients logged in at a time, replicas included",
        "connect_timeout": "seconds that a client's login may take",
        "binlog_access": '"privileges" or "granted": whether GRANT READ ON BINLOG alone lets read',
    },
    "gateway": {
        "enabled": "whether statements are judged before they run, and binlogs may hold statements",
        "workers": "processes that serve the port; more than 1 changes nothing yet",
        "bypass": '"rows", "mark" or "stop": what binlogs of statements do with other changes',
        "journal_max_size": "the journal of what statements make has no more bytes than this",
    },
    "http": {
        "address": "where /healthz and /metrics are served",
        "port": "TCP port; 0 takes a free one",
    },
    "binlog": {
        "max_binlog_size": "a file is rotated at this size, such as 1G",
        "sync_binlog": "fsync after this many event groups; 0 leaves it to the system",
        "expire_logs_days": "files that ended so many days ago go when another begins; 0 keeps them",
        "binlog_expire_logs_seconds": "the same in seconds",
        "max_binlog_total_size": "the oldest files go until a binlog has this size; 0 keeps them",
        "binlog_with_tables_info": "whether statements are logged with the tables they concern",
    },
    "archive": {
        "uri": "closed files, indexes and watermarks are copied there: s3://bucket/prefix",
        "interval_s": "how often to look for more to copy, and to write watermarks",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that `serve` needs.

    Attributes:
        data_dir: The store's directory.
        source: The captured server.
        listen: The MySQL port.
        http: The HTTP port; None serves none.
        store: Size and durability of binlogs.
        archive: Where copies go; None for none.
        port: What sessions through the port do to binlogs.
        access: What lets accounts read binlogs.
    """

    data_dir: Path
    source: SourceSettings
    listen: GatewaySettings
    http: HttpSettings | None
    store: StoreSettings
    archive: ArchiveSettings | None = None
    port: PortSettings = field(default_factory=PortSettings)
    access: BinlogAccess = BinlogAccess.PRIVILEGES


def load(path: Path) -> Settings:
    """Read and check a configuration file.

    Raises:
        ConfigError: If it cannot be read, or a key is unknown, missing or unusable.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}",
            key="--config",
            hint="name the file with --config; docs/reference/settings.md shows one",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no TOML: {error}", key="--config") from None
    return compose(document, base=path.parent)


def compose(document: Mapping[str, Any], *, base: Path) -> Settings:
    """Settings from a parsed document.

    Args:
        document: Sections and keys as in `KEYS`.
        base: What relative paths count from.

    Raises:
        ConfigError: As `load`.
    """
    _refuse_unknown(document)
    data_dir = _typed(document.get("data_dir", "data"), str, "data_dir")
    try:
        source = _source(document.get("source", {}), base)
        return Settings(
            data_dir=base / data_dir,
            source=source,
            listen=_listen(document.get("listen", {}), source.url),
            port=_port(document.get("gateway", {})),
            http=HttpSettings(**document["http"]) if "http" in document else None,
            store=_store(document.get("binlog", {})),
            archive=ArchiveSettings(**document["archive"]) if "archive" in document else None,
            access=_access(document.get("listen", {})),
        )
    except TypeError as error:
        raise ConfigError(f"a value has the wrong type: {error}", key="--config") from None


def _source(section: Mapping[str, Any], base: Path) -> SourceSettings:
    values = dict(section)
    if "url" not in values:
        raise ConfigError(
            "no source is given",
            key="source.url",
            hint='such as "mariadb://binlane@127.0.0.1:3306"',
        )
    values["url"] = ServerUrl.parse(_typed(values["url"], str, "source.url"))
    if "password_file" in values:
        values["password_file"] = base / _typed(
            values["password_file"], str, "source.password_file"
        )
    if "start" in values:
        values["start"] = parse_start(_typed(values["start"], str, "source.start"))
    return SourceSettings(**values)


def _listen(section: Mapping[str, Any], url: ServerUrl) -> GatewaySettings:
    values = {key: value for key, value in section.items() if key != "binlog_access"}
    if "connect_timeout" in values:
        values["login_timeout_s"] = values.pop("connect_timeout")
    return GatewaySettings(
        **values, source_host=url.host, source_port=url.port, source_socket=url.socket
    )


def _access(section: Mapping[str, Any]) -> BinlogAccess:
    value = section.get("binlog_access", BinlogAccess.PRIVILEGES.value)
    words = [each.value for each in BinlogAccess]
    if value not in words:
        raise ConfigError(
            f"{value!r} is no such choice",
            key="listen.binlog_access",
            hint="one of " + ", ".join(f'"{word}"' for word in words),
        )
    return BinlogAccess(value)


def _port(section: Mapping[str, Any]) -> PortSettings:
    values = dict(section)
    if not isinstance(values.get("enabled", True), bool):
        raise ConfigError(f"{values['enabled']!r} is neither true nor false", key="gateway.enabled")
    if "bypass" in values:
        words = [each.value for each in Bypass]
        if values["bypass"] not in words:
            raise ConfigError(
                f"{values['bypass']!r} is no such choice",
                key="gateway.bypass",
                hint="one of " + ", ".join(f'"{word}"' for word in words),
            )
        values["bypass"] = Bypass(values["bypass"])
    if "journal_max_size" in values:
        size = size_bytes(values.pop("journal_max_size"), "gateway.journal_max_size")
        values["journal_max_bytes"] = size
    return PortSettings(**values)


def _store(section: Mapping[str, Any]) -> StoreSettings:
    values = dict(section)
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
    if "binlog_with_tables_info" in values:
        has_info = values.pop("binlog_with_tables_info")
        if not isinstance(has_info, bool):
            raise ConfigError(
                f"{has_info!r} is neither true nor false", key="binlog.binlog_with_tables_info"
            )
        values["has_tables_info"] = has_info
    return StoreSettings(**values)


def effective(settings: Settings) -> dict[str, dict[str, object]]:
    """The value of every key that may stand in the file, by section; the empty one comes first.

    `load` of these values, written as TOML, gives the same settings.
    """
    source, listen, store = settings.source, settings.listen, settings.store
    start = source.start.value if isinstance(source.start, StartAt) else str(source.start)
    values: dict[str, dict[str, object]] = {
        "": {"data_dir": str(settings.data_dir)},
        "source": {
            "url": source.url.text,
            "start": start,
            "heartbeat_period_s": source.heartbeat_period_s,
            "timeout_s": source.timeout_s,
        },
        "listen": {
            "address": listen.address,
            "port": listen.port,
            "max_connections": listen.max_connections,
            "connect_timeout": listen.login_timeout_s,
            "binlog_access": settings.access.value,
        },
        "gateway": {
            "enabled": settings.port.enabled,
            "workers": settings.port.workers,
            "bypass": settings.port.bypass.value,
            "journal_max_size": settings.port.journal_max_bytes,
        },
        "binlog": {
            "max_binlog_size": store.max_binlog_size_bytes,
            "sync_binlog": store.sync_binlog,
            "binlog_expire_logs_seconds": store.expire_logs_s,
            "max_binlog_total_size": store.max_binlog_total_size_bytes,
            "binlog_with_tables_info": store.has_tables_info,
        },
    }
    if source.password_file is not None:
        values["source"]["password_file"] = str(source.password_file)
    if source.server_id is not None:
        values["source"]["server_id"] = source.server_id
    if settings.http is not None:
        values["http"] = {"address": settings.http.address, "port": settings.http.port}
    if settings.archive is not None:
        archive = settings.archive
        values["archive"] = {"uri": archive.uri, "interval_s": archive.interval_s}
    return values


def size_bytes(value: object, key: str) -> int:
    """A size as the servers write it: a number of bytes, or one with K, M or G.

    Raises:
        ConfigError: If it is neither.
    """
    match = re.fullmatch(r"(\d+)([KMG]?)", str(value).upper())
    if match is None:
        raise ConfigError(f"{value!r} is no size", key=key, hint="such as 1073741824 or 1G")
    return int(match[1]) * _UNITS[match[2]]


def _typed(value: object, kind: type[str], key: str) -> str:
    if not isinstance(value, kind):
        raise ConfigError(f"{value!r} is no {kind.__name__}", key=key)
    return value


def _refuse_unknown(document: Mapping[str, Any]) -> None:
    known = [f"{section}.{key}" if section else key for section in KEYS for key in KEYS[section]]
    for name, value in document.items():
        is_section = isinstance(value, dict)
        given = [f"{name}.{key}" for key in value] if is_section else [name]
        if is_section and name not in KEYS:
            given = [name]
        for key in given:
            if key not in known:
                raise ConfigError("unknown setting", key=key, hint=_nearest(key, known))


def _nearest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
    return f"did you mean {near[0]}?" if near else "known are " + ", ".join(known)
