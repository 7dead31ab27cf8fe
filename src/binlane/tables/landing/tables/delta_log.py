"""Entries of a Delta table's log that are written here, not by delta-rs.

delta-rs has no words for files of changes, and where it sets a property of a table it asks readers
for features that the table does not have. An entry is written as delta-rs does it: as a whole, and
never over one that is there, so that of two writers one fails.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable
from pyarrow import fs

from binlane.errors import ConfigError, StoreError
from binlane.tables.landing.target_files import resolve

LOG: Final = "_delta_log"
FEED_FEATURE: Final = "changeDataFeed"
FEED_PROPERTY: Final = "delta.enableChangeDataFeed"
_NUMBERED: Final = 7
"""The version of writers from which on features are named one by one."""
_IMPLIED: Final[Mapping[int, frozenset[str]]] = {
    2: frozenset({"appendOnly", "invariants"}),
    3: frozenset({"checkConstraints"}),
    4: frozenset({FEED_FEATURE, "generatedColumns"}),
}
_KNOWN: Final = frozenset().union(*_IMPLIED.values()) | {"timestampNtz"}
"""Features that ask nothing of a writer of rows that came from a server, or what is done here."""


def has_feed(table: DeltaTable) -> bool:
    """True if commits to a table are to tell which rows they change."""
    return table.metadata().configuration.get(FEED_PROPERTY, "").lower() == "true"


def write_entry(table: DeltaTable, actions: Sequence[Mapping[str, Any]]) -> None:
    """Write the next entry of a table's log.

    Args:
        table: The table as it is now; brought to the version that the entry makes.
        actions: Actions as Delta's protocol has them.

    Raises:
        StoreError: If somebody else wrote it, or if writers must do for the table what we do not.
        ConfigError: If an object store is to be written without the package that can.
    """
    protocol = table.protocol()
    features = set(protocol.writer_features or ())
    if protocol.min_writer_version < _NUMBERED:
        features = (
            {f"version {protocol.min_writer_version}"} if protocol.min_writer_version > 4 else set()
        )
    if features - _KNOWN:
        raise StoreError(
            f"its protocol asks writers for {', '.join(sorted(features - _KNOWN))}, which binlane "
            "does not do where it tells the rows that change",
            path=table.table_uri,
            hint=f"set {FEED_PROPERTY} to false, or land the table anew",
        )
    write_first(table.table_uri, table.version() + 1, actions)
    table.update_incremental()


def write_first(uri: str, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
    """Write an entry of the log of a table, of which nobody asks what its protocol is.

    Raises:
        StoreError: If it is there.
        ConfigError: As `write_entry`.
    """
    text = "".join(
        json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions
    )
    name = f"{version:020}.json"
    filesystem, path = resolve(uri)
    is_new = (
        _linked(Path(path) / LOG / name, text)
        if isinstance(filesystem, fs.LocalFileSystem)
        else _put(uri, f"{LOG}/{name}", text)
    )
    if not is_new:
        raise StoreError(
            f"somebody else wrote {name} of its log",
            path=uri,
            hint="let nobody else write there, and run the landing again",
        )


def enable_feed(table: DeltaTable, *, is_on: bool) -> None:
    """Have the commits of a table tell which rows they change, from now on, or no longer.

    Raises:
        StoreError: As `write_entry`.
    """
    now, protocol = table.metadata(), table.protocol()
    configuration = {**now.configuration, FEED_PROPERTY: "true" if is_on else "false"}
    metadata = {
        "id": now.id,
        "name": now.name,
        "description": now.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": now.partition_columns,
        "createdTime": now.created_time,
        "configuration": configuration,
    }
    told = {
        "operation": "SET TBLPROPERTIES",
        "operationParameters": {
            "properties": json.dumps({FEED_PROPERTY: configuration[FEED_PROPERTY]})
        },
    }
    actions: list[dict[str, Any]] = [{"commitInfo": told}, {"metaData": metadata}]
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    features = set(protocol.writer_features or ())
    if is_on and writer >= _NUMBERED and FEED_FEATURE not in features:
        needed = {"minReaderVersion": reader, "minWriterVersion": writer}
        named = {"writerFeatures": sorted({*features, FEED_FEATURE})}
        if protocol.reader_features is not None:
            named["readerFeatures"] = sorted(protocol.reader_features)
        actions.append({"protocol": {**needed, **named}})
    elif is_on and writer < 4:
        actions.append({"protocol": {"minReaderVersion": reader, "minWriterVersion": 4}})
    write_entry(table, actions)


def _linked(path: Path, text: str) -> bool:
    """Write a file unless it is there; whether that was so."""
    beside = path.with_name(f"_commit_{uuid.uuid4().hex}.json.tmp")
    beside.write_text(text, encoding="utf-8")
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        with suppress(OSError):
            beside.unlink()
    return True


def check_place(uri: str) -> None:
    """See that entries can be written to a log there.

    Raises:
        ConfigError: If it is an object store, and there is nothing here that can.
    """
    if not isinstance(resolve(uri)[0], fs.LocalFileSystem):
        _object_store(uri)


def _object_store(uri: str) -> Any:
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - only where it is needed
        from obstore.store import from_url  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ConfigError(
            f"a change data feed in an object store needs obstore: {error}",
            key="cdf",
            hint="pip install 'binlane[delta]'",
        ) from error
    try:
        return from_url(uri)
    except (BaseError, ValueError) as error:
        raise ConfigError(
            f"no change data feed can be written to {uri}: {error}",
            key="cdf",
            hint="land without --cdf, or into another place",
        ) from error


def _put(uri: str, name: str, text: str) -> bool:
    """Write an entry in an object store by `obstore`; other packages would write over one that is there."""
    store = _object_store(uri)
    from obstore import put  # noqa: PLC0415 - only where it is needed
    from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 - as above

    try:
        put(store, name, text.encode(), mode="create")
    except AlreadyExistsError:
        return False
    except BaseError as error:
        raise StoreError(
            f"cannot be written: {error}",
            path=f"{uri}/{name}",
            hint="check who may write there",
        ) from error
    return True
