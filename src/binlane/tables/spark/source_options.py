"""The options of the `binlog` data source, checked."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import quote

from binlane.binlogs.filters.terms import (
    LIST_OPTIONS,
    FilterTerms,
    RenameMode,
    parse_terms,
    read_names,
)
from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.tables.columnar.batches import ROWS_MAX_DEFAULT
from binlane.tables.columnar.selection import Selection, parse_bound, parse_tables
from binlane.tables.ranges.scopes import read_scope
from binlane.tables.ranges.served_logs import server_uri
from binlane.tables.spark.change_columns import CHANGE_COLUMNS, OPS

SERVER_OPTIONS: Final[Mapping[str, str]] = {
    "passwordFile": "password-file",
    "passwordEnv": "password-env",
    "socket": "socket",
    "sslMode": "ssl-mode",
    "sslCa": "ssl-ca",
    "sslCert": "ssl-cert",
    "sslKey": "ssl-key",
}
"""Options of the source, and what they are called in a server's URL."""


def server_place(url: str, user: str | None, options: Mapping[str, str]) -> str:
    """Return a server's URL with the options in it.

    Args:
        url: The URL as the user gave it; `mariadb://host:port` is enough if the others are options.
        user: The account's name, if it does not stand in the URL.
        options: Values by option name, of `SERVER_OPTIONS`.

    Raises:
        ConfigError: If the text is no URL of a server.
    """
    scheme, has_scheme, rest = url.partition("://")
    if not has_scheme:
        raise ConfigError(
            f"{url!r} names no server",
            key="server",
            hint="write mariadb://HOST:PORT or mysql://HOST:PORT",
        )
    if user is not None:
        if "@" in rest.partition("?")[0]:
            raise ConfigError("the server's URL names a user, too", key="user")
        rest = f"{quote(user, safe='')}@{rest}"
    given = {SERVER_OPTIONS[name]: value for name, value in options.items()}
    return server_uri(f"{scheme}://{rest}", given)


PARTITION_BYTES_DEFAULT: Final = 256 << 20
"""A task costs a tenth of a second whatever it reads, and more parts than cores gain nothing."""
_COLUMN: Final = re.compile(r"`(?:[^`]|``)+`|[^`,\s][^`,]*")


class Layout(Enum):
    """Kinds of rows of the data frame."""

    CHANGES = "changes"
    """One row a row change of any table, images as JSON; and one a DDL statement."""
    TABLE = "table"
    """The row changes of one table, with its columns and types."""
    EVENTS = "events"
    """One row an event."""


class RowForm(Enum):
    """Forms of the rows of one table's changes."""

    IMAGES = "images"
    """One row a row image: an update gives two."""
    CHANGES = "changes"
    """One row a change, its images as the structs `before` and `after`."""
    CDF = "cdf"
    """One row an image, with the names of Delta's change data feed."""
    DEBEZIUM = "debezium"
    """One row a change, `before` and `after`, with the names of Debezium's fields."""
    DEBEZIUM_FLAT = "debezium-flat"
    """One row a change: the row behind it, of a delete the one before it."""


class Include(Enum):
    """Parts of a log that the layout `changes` can hold."""

    ROWS = "rows"
    DDL = "ddl"


class OnSchemaChange(Enum):
    """Behaviours of a stream of one table where the table's columns no longer fit its own."""

    FAIL = "fail"
    """The stream ends with an error in front of the statement; started anew it has the new columns."""
    EVOLVE = "evolve"
    """The stream ends so too, by an error of its own class, for a caller that starts it again."""
    IGNORE = "ignore"
    """The stream goes on with the columns that it has."""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options of one read.

    Attributes:
        paths: Files, directories, or `DATA#name` for a binlog of a store.
        layout: The kind of the data frame's rows.
        table: The one table of the layout `table`.
        shape: The form of the rows of the layout `table`.
        include: The parts of the log that the layout `changes` holds.
        selection: The tables and event groups that are wanted.
        columns: Names of the table's own columns to keep, all if None.
        change_columns: The columns that binlane adds, by their names without a prefix; all if None.
        prefix: Prefix of the names of those columns.
        ops: Kinds of rows to keep, as `_op` has them; all if None.
        schema_change: Behaviour of a stream where its columns no longer fit.
        rows_per_batch: Rows of the Arrow batches that workers hand over.
        max_partition_bytes: Bytes of log that one task reads, about.
        max_rows_per_trigger: Row changes of a micro-batch, about: event groups stay whole.
        max_bytes_per_trigger: Bytes of log of a micro-batch, about: event groups stay whole.
        max_groups_per_trigger: Event groups of a micro-batch.
        min_partitions: Least number of tasks that a read is cut into, unless it is small; if there
            are more, their number is a multiple of it.
        keys: Path of a key file, for encrypted files.
        takes_filters: Whether a query's filters are used; the data frame is for one query then.
    """

    paths: tuple[str, ...]
    layout: Layout = Layout.CHANGES
    table: TableName | None = None
    shape: RowForm = RowForm.IMAGES
    include: frozenset[Include] = frozenset(Include)
    selection: Selection = field(default_factory=Selection)
    columns: frozenset[str] | None = None
    change_columns: frozenset[str] | None = None
    prefix: str = "_"
    ops: frozenset[str] | None = None
    schema_change: OnSchemaChange = OnSchemaChange.FAIL
    rows_per_batch: int = ROWS_MAX_DEFAULT
    max_partition_bytes: int = PARTITION_BYTES_DEFAULT
    max_rows_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_groups_per_trigger: int | None = None
    min_partitions: int = field(default_factory=_cores)
    keys: str | None = None
    takes_filters: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Parse the options given to `.option()`; their names in any case.

        Raises:
            ConfigError: If an option is unknown or its value cannot be used.
        """
        given = {name.lower(): value for name, value in options.items()}
        for name in given:
            if name not in _OPTIONS:
                near = difflib.get_close_matches(name, _OPTIONS, n=1)
                known = ", ".join(option.name for option in _OPTIONS.values())
                raise ConfigError(
                    f"the binlog source has no option {name}",
                    key=name,
                    hint=f"did you mean {_OPTIONS[near[0]].name}?" if near else f"it has: {known}",
                )
        values = {
            option.attribute: option.read(given[name], option.name)
            for name, option in _OPTIONS.items()
            if name in given
        }
        return cls._of(values)

    @classmethod
    def _of(cls, values: dict[str, Any]) -> SourceOptions:
        paths = (*values.pop("path", ()), *values.pop("paths", ()))
        paths += _server_of(values)
        if not paths:
            raise ConfigError(
                "no path is given",
                key="path",
                hint='.option("path", …) takes a binlog file, a directory or DATA#name; '
                '.option("server", …) a URL',
            )
        scope: Scope = values.pop("scope", Scope.everything())
        table: TableName | None = values.get("table")
        if table is not None:
            scope = Scope(log_tables=frozenset({table}))
            values["layout"] = Layout.TABLE
        elif values.get("layout") is Layout.TABLE:
            raise ConfigError("the layout table needs the table's name", key="table")
        else:
            for name in ("shape", "columns"):
                if name in values:
                    raise ConfigError(
                        f"{name} is of one table's changes",
                        key=name,
                        hint='name it: .option("table", "shop.orders")',
                    )
        terms = _filter_terms(values)
        bounds = {name: values.pop(name, None) for name in ("start", "stop")}
        return cls(
            paths=tuple(paths),
            selection=Selection(scope=scope, filter_terms=terms, **bounds),
            **values,
        )


def _filter_terms(values: dict[str, Any]) -> FilterTerms | None:
    """Take the options of the filter out of all options; return its terms, or None without any."""
    lists: dict[str, Any] = {name: values.pop(name) for name in LIST_OPTIONS if name in values}
    rename = values.pop("rename", RenameMode.FOLLOW.value)
    return parse_terms(lists, rename=rename) if lists else None


def _server_of(values: dict[str, Any]) -> tuple[str, ...]:
    """The server that options name, taken from them; none or one."""
    url, user = values.pop("server", None), values.pop("user", None)
    given = {name: values.pop(name) for name in SERVER_OPTIONS if name in values}
    if url is not None:
        return (server_place(url, user, given),)
    for name in ("user", *SERVER_OPTIONS):
        if name in given or (name == "user" and user is not None):
            raise ConfigError(f"{name} is of a server, and none is given", key="server")
    return ()


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    attribute: str
    read: Callable[[str, str], Any]


def _read_path(text: str, _name: str) -> tuple[str, ...]:
    return (text,)


def _read_flag(text: str, name: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ConfigError(f"{text!r} is neither true nor false", key=name)
    return text.lower() == "true"


def _read_text(text: str, _name: str) -> str:
    return text


def _read_paths(text: str, name: str) -> tuple[str, ...]:
    """Return the paths of the JSON list that `load([…])` makes of several paths."""
    try:
        paths = json.loads(text)
    except json.JSONDecodeError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ConfigError(f"{text!r} is no JSON list of paths", key=name)
    return tuple(paths)


def _read_count(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{text!r} is no whole number from 1", key=name)
    return int(text)


Word = TypeVar("Word", bound=Enum)


def _word_of(known: type[Word]) -> Callable[[str, str], Word]:
    def read(text: str, name: str) -> Word:
        try:
            return known(text.strip().lower())
        except ValueError:
            words = ", ".join(word.value for word in known)
            raise ConfigError(
                f"there is no {name} {text}", key=name, hint=f"there are: {words}"
            ) from None

    return read


def _read_include(text: str, name: str) -> frozenset[Include]:
    known = {include.value: include for include in Include}
    words = _read_words(text, name)
    for word in words:
        if word not in known:
            raise ConfigError(
                f"{word!r} cannot be included", key=name, hint="write rows, ddl or rows,ddl"
            )
    return frozenset(known[word] for word in words)


def _read_words(text: str, _name: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in text.split(",") if word.strip())


def _read_columns(text: str, name: str) -> frozenset[str]:
    """Read names of columns, which may hold anything; backticks stand around names with commas."""
    found = _COLUMN.findall(text)
    if not found:
        raise ConfigError(f"{text!r} names no column", key=name)
    return frozenset(
        column[1:-1].replace("``", "`") if column.startswith("`") else column.strip()
        for column in found
    )


def _read_change_columns(text: str, name: str) -> frozenset[str]:
    found = frozenset(word.removeprefix("_") for word in _read_words(text, name))
    for column in found - CHANGE_COLUMNS.keys():
        known = ", ".join(f"_{known}" for known in CHANGE_COLUMNS)
        raise ConfigError(
            f"there is no change column _{column}", key=name, hint=f"there are: {known}"
        )
    return found


def _read_ops(text: str, name: str) -> frozenset[str]:
    found = _read_words(text, name)
    for op in found - OPS.keys():
        raise ConfigError(
            f"there is no operation {op}", key=name, hint=f"there are: {', '.join(OPS)}"
        )
    return frozenset(op for word in found for op in OPS[word])


def _read_prefix(text: str, name: str) -> str:
    if not text:
        raise ConfigError("a prefix has at least one character", key=name)
    return text


def _read_table(text: str, name: str) -> TableName:
    scope = parse_tables(text)
    if len(scope.log_tables) != 1:
        raise ConfigError(f"{text!r} names no table", key=name, hint="write DATABASE.TABLE")
    (table,) = scope.log_tables
    return table


def _read_bound(text: str, name: str) -> Any:
    return parse_bound(text, key=name)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_OPTIONS: Final[Mapping[str, _Option]] = MappingProxyType(
    {
        option.name.lower(): option
        for option in (
            _Option("path", "path", _read_path),
            _Option("paths", "paths", _read_paths),
            _Option("server", "server", _read_text),
            _Option("user", "user", _read_text),
            *(_Option(name, name, _read_text) for name in SERVER_OPTIONS),
            _Option("keys", "keys", _read_text),
            _Option("useFilters", "takes_filters", _read_flag),
            _Option("layout", "layout", _word_of(Layout)),
            _Option("table", "table", _read_table),
            _Option("tables", "scope", read_scope),
            *(_Option(_camel(name), name, read_names) for name in LIST_OPTIONS),
            _Option("rename", "rename", _read_text),
            _Option("columns", "columns", _read_columns),
            _Option("changeColumns", "change_columns", _read_change_columns),
            _Option("prefix", "prefix", _read_prefix),
            _Option("shape", "shape", _word_of(RowForm)),
            _Option("include", "include", _read_include),
            _Option("ops", "ops", _read_ops),
            _Option("start", "start", _read_bound),
            _Option("stop", "stop", _read_bound),
            _Option("rowsPerBatch", "rows_per_batch", _read_count),
            _Option("maxPartitionBytes", "max_partition_bytes", _read_count),
            _Option("minPartitions", "min_partitions", _read_count),
            _Option("maxRowsPerTrigger", "max_rows_per_trigger", _read_count),
            _Option("maxBytesPerTrigger", "max_bytes_per_trigger", _read_count),
            _Option("maxGroupsPerTrigger", "max_groups_per_trigger", _read_count),
            _Option("schemaChange", "schema_change", _word_of(OnSchemaChange)),
        )
    }
)
