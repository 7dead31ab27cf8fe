"""The options of the `binlog` data source, checked."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from binlane.columnar.batches import ROWS_MAX_DEFAULT
from binlane.columnar.selection import Selection, parse_bound, parse_tables
from binlane.errors import ConfigError
from binlane.names import TableName
from binlane.ranges.scopes import read_scope
from binlane.scope.scope import Scope

PARTITION_BYTES_DEFAULT: Final = 128 << 20


class Layout(Enum):
    """What the rows of the data frame are."""

    CHANGES = "changes"
    """One row a row change, images as JSON."""
    TABLE = "table"
    """One row a row image of one table, with its columns and types."""


class Include(Enum):
    """What of a log the layout `changes` holds."""

    ROWS = "rows"
    DDL = "ddl"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options of one read.

    Attributes:
        paths: Files, directories, or `DATA#name` for a binlog of a store.
        layout: What the rows of the data frame are.
        table: The one table of the layout `table`.
        include: What the layout `changes` holds.
        selection: Which tables and groups.
        rows_per_batch: Rows of the Arrow batches that workers hand over.
        max_partition_bytes: Bytes of log that one task reads, about.
        max_rows_per_trigger: Row changes of a micro-batch, about: event groups stay whole.
        max_bytes_per_trigger: Bytes of log of a micro-batch, likewise.
    """

    paths: tuple[str, ...]
    layout: Layout = Layout.CHANGES
    table: TableName | None = None
    include: frozenset[Include] = frozenset({Include.ROWS})
    selection: Selection = field(default_factory=Selection)
    rows_per_batch: int = ROWS_MAX_DEFAULT
    max_partition_bytes: int = PARTITION_BYTES_DEFAULT
    max_rows_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Read what was given to `.option()`; names in any case.

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
        if "server" in given:
            raise ConfigError(
                "reading from a server is not built yet",
                key="server",
                hint="give a file, a directory or DATA#name of `binlane serve` as path",
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
        if not paths:
            raise ConfigError(
                "no path is given",
                key="path",
                hint='.option("path", …) takes a binlog file, a directory or DATA#name',
            )
        scope: Scope = values.pop("scope", Scope.everything())
        table: TableName | None = values.get("table")
        if table is not None:
            scope = Scope(log_tables=frozenset({table}))
            values["layout"] = Layout.TABLE
        elif values.get("layout") is Layout.TABLE:
            raise ConfigError("the layout table needs the table's name", key="table")
        bounds = {name: values.pop(name, None) for name in ("start", "stop")}
        return cls(paths=tuple(paths), selection=Selection(scope=scope, **bounds), **values)


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    attribute: str
    read: Callable[[str, str], Any]


def _read_path(text: str, _name: str) -> tuple[str, ...]:
    return (text,)


def _read_paths(text: str, name: str) -> tuple[str, ...]:
    """What `load([…])` makes of several paths: a JSON list."""
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


def _read_layout(text: str, name: str) -> Layout:
    try:
        return Layout(text.lower())
    except ValueError:
        known = ", ".join(layout.value for layout in Layout)
        raise ConfigError(
            f"there is no layout {text}", key=name, hint=f"there are: {known}"
        ) from None


def _read_include(text: str, name: str) -> frozenset[Include]:
    known = {include.value: include for include in Include}
    words = [word.strip().lower() for word in text.split(",")]
    for word in words:
        if word not in known:
            raise ConfigError(
                f"{word!r} cannot be included", key=name, hint="write rows or rows,ddl"
            )
    return frozenset(known[word] for word in words)


def _read_table(text: str, name: str) -> TableName:
    scope = parse_tables(text)
    if len(scope.log_tables) != 1:
        raise ConfigError(f"{text!r} names no table", key=name, hint="write DATABASE.TABLE")
    (table,) = scope.log_tables
    return table


def _read_bound(text: str, name: str) -> Any:
    return parse_bound(text, key=name)


_OPTIONS: Final[Mapping[str, _Option]] = MappingProxyType(
    {
        option.name.lower(): option
        for option in (
            _Option("path", "path", _read_path),
            _Option("paths", "paths", _read_paths),
            _Option("server", "server", _read_path),
            _Option("layout", "layout", _read_layout),
            _Option("table", "table", _read_table),
            _Option("tables", "scope", read_scope),
            _Option("include", "include", _read_include),
            _Option("start", "start", _read_bound),
            _Option("stop", "stop", _read_bound),
            _Option("rowsPerBatch", "rows_per_batch", _read_count),
            _Option("maxPartitionBytes", "max_partition_bytes", _read_count),
            _Option("maxRowsPerTrigger", "max_rows_per_trigger", _read_count),
            _Option("maxBytesPerTrigger", "max_bytes_per_trigger", _read_count),
        )
    }
)
