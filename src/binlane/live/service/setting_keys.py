"""Everything that may stand in `binlane.toml`: sections, keys, their kinds, and what they mean.

The names of environment variables follow from it, as does what a running process takes over. What a
key's values may be is known to the part that owns them; here stands only of which kind they are.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

VARIABLE_PREFIX: Final = "BINLANE_"
AUTO: Final = "auto"
"""The value of a count that binlane chooses."""

_FLAGS: Final = {"true": True, "false": False, "1": True, "0": False, "on": True, "off": False}


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The kind of a value.

    Attributes:
        name: The kind in words, for errors.
        is_one: Tells if a value of TOML is of this kind.
        read: The value of an environment variable's text; raises ValueError.
    """

    name: str
    is_one: Callable[[Any], bool]
    read: Callable[[str], object]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _count(text: str) -> int | str:
    return text if text == AUTO else int(text)


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(text)
    return _FLAGS[text.lower()]


TEXT: Final = ValueKind("a text", _is_text, str)
PATH: Final = ValueKind("a path", _is_path, str)
WHOLE: Final = ValueKind("a whole number", _is_whole, int)
COUNT: Final = ValueKind(
    f'"{AUTO}" or a whole number', lambda value: value == AUTO or _is_whole(value), _count
)
NUMBER: Final = ValueKind("a number", _is_number, _number)
FLAG: Final = ValueKind("true or false", _is_flag, _flag)
SIZE: Final = ValueKind(
    "a size: bytes, or text such as 1G", lambda v: _is_whole(v) or _is_text(v), str
)
TEXTS: Final = ValueKind("a list of texts", _are_texts, shlex.split)


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key of a section.

    Attributes:
        kind: The kind of the key's values.
        means: The key's meaning in a line.
        at_sighup: True if a running process takes a new value over.
    """

    kind: ValueKind
    means: str
    at_sighup: bool = False


# Section → key → what it is; everything that may stand in the file.
KEYS: Final[Mapping[str, Mapping[str, SettingKey]]] = {
    "": {"data_dir": SettingKey(PATH, "directory of the store; relative to the file")},
    "source": {
        "url": SettingKey(
            TEXT, "mariadb:// or mysql://user@host:port of the server that is captured"
        ),
        "password_file": SettingKey(PATH, "file that holds the account's password"),
        "start": SettingKey(TEXT, '"now", "oldest", a GTID position or set, or "file:position"'),
        "server_id": SettingKey(
            WHOLE, "server id as a replica of the source; by default one is made up"
        ),
        "heartbeat_period_s": SettingKey(NUMBER, "an idle source says that it lives this often"),
        "timeout_s": SettingKey(NUMBER, "longest wait for a connection to the source"),
        "proxy_protocol": SettingKey(
            FLAG, "whether the source, a MariaDB, is told each client's address"
        ),
    },
    "embedded": {
        "enabled": SettingKey(
            FLAG, "whether the source is a MariaDB of our own, as with --embedded"
        ),
        "options": SettingKey(TEXTS, "options for its mariadbd, as on a command line"),
    },
    "listen": {
        "address": SettingKey(TEXT, "where clients and replicas connect"),
        "port": SettingKey(WHOLE, "TCP port; 0 takes a free one"),
        "tls": SettingKey(
            TEXT, '"on", "required" or "off": whether clients may, must or cannot use TLS'
        ),
        "tls_cert": SettingKey(
            PATH, "the port's certificate, PEM; by default one is made", at_sighup=True
        ),
        "tls_key": SettingKey(PATH, "its key, PEM", at_sighup=True),
        "tls_names": SettingKey(
            TEXTS, "further names of the port in the certificate that is made", at_sighup=True
        ),
        "max_connections": SettingKey(
            WHOLE, "clients logged in at a time, replicas included", at_sighup=True
        ),
        "connect_timeout": SettingKey(
            NUMBER, "seconds that a client's login may take", at_sighup=True
        ),
        "binlog_access": SettingKey(
            TEXT,
            '"privileges" or "granted": whether GRANT READ ON BINLOG alone lets read',
            at_sighup=True,
        ),
    },
    "gateway": {
        "enabled": SettingKey(
            FLAG, "whether statements are judged, and binlogs may hold statements"
        ),
        "workers": SettingKey(
            COUNT, 'processes that serve the port, "auto" by the cores; with 0 the main one does'
        ),
        "bypass": SettingKey(TEXT, '"rows", "mark" or "stop": what binlogs do with other changes'),
        "journal_max_size": SettingKey(
            SIZE, "the journal of what statements make has no more bytes"
        ),
    },
    "http": {
        "address": SettingKey(
            TEXT, "where the status page, /healthz, /metrics and /api are served"
        ),
        "port": SettingKey(WHOLE, "TCP port; 0 takes a free one"),
        "hosts": SettingKey(
            TEXTS, "further names under which browsers and others ask", at_sighup=True
        ),
        "password_file": SettingKey(
            PATH, "file that holds the password that they give; without it none", at_sighup=True
        ),
    },
    "binlog": {
        "max_binlog_size": SettingKey(
            SIZE, "a file is rotated at this size, such as 1G", at_sighup=True
        ),
        "sync_binlog": SettingKey(
            WHOLE, "fsync after this many event groups; 0 leaves it to the system", at_sighup=True
        ),
        "expire_logs_days": SettingKey(
            NUMBER, "files that ended so many days ago go; 0 keeps them", at_sighup=True
        ),
        "binlog_expire_logs_seconds": SettingKey(NUMBER, "the same in seconds", at_sighup=True),
        "max_binlog_total_size": SettingKey(
            SIZE, "the oldest files go until a binlog has this size; 0 keeps them", at_sighup=True
        ),
        "binlog_with_tables_info": SettingKey(
            FLAG, "whether statements are logged with the tables they concern"
        ),
        "binlog_format": SettingKey(
            TEXT, '"ROW", "STATEMENT" or "MIXED": of sessions and binlogs that say no other'
        ),
    },
    "verify": {
        "every": SettingKey(
            TEXT, 'how often tables are compared with servers, such as "1h"; "0" for never'
        ),
        "rows_per_s": SettingKey(WHOLE, "rows to read of a server a second at most; 0 for any"),
        "replicas": SettingKey(TEXTS, "URLs of replicas to compare, too; #NAME is their binlog"),
        "replica_user": SettingKey(TEXT, "account for replicas that registered with an address"),
        "replica_password_file": SettingKey(PATH, "file that holds that account's password"),
    },
    "rows": {
        "rows_per_s": SettingKey(
            NUMBER,
            "the most rows a second that are read for binlogs; 0 sets no limit",
            at_sighup=True,
        ),
        "gtid_domain_id": SettingKey(
            WHOLE,
            "domain of the GTIDs of rows, which a MariaDB source must not use",
            at_sighup=True,
        ),
        "chunk_size": SettingKey(SIZE, "what one SELECT reads, about, such as 4M", at_sighup=True),
        "max_size": SettingKey(
            SIZE,
            "the most bytes of rows that a binlog is given at once; 0 sets no limit",
            at_sighup=True,
        ),
    },
    "archive": {
        "uri": SettingKey(TEXT, "closed files are copied there: s3://bucket/prefix"),
        "interval_s": SettingKey(
            NUMBER, "how often to look for more to copy, and to write watermarks"
        ),
    },
    "log": {
        "level": SettingKey(
            TEXT, '"debug", "info", "warning" or "error": what is logged', at_sighup=True
        ),
        "format": SettingKey(TEXT, '"text" or "json": one object a line', at_sighup=True),
    },
}


def variable_of(section: str, key: str) -> str:
    """The environment variable that stands above a key of the file."""
    return VARIABLE_PREFIX + "_".join(filter(None, (section, key))).upper()


def setting_of(section: str, key: str) -> str:
    """A key as messages name it, such as `listen.port`."""
    return f"{section}.{key}" if section else key
