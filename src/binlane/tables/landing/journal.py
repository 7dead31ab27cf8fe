"""The journal of a landing, beside its tables: its identity, its progress, the tables given up.

The journal is one small JSON file, replaced as a whole. By it, statements that concern tables as
such (DROP, RENAME …), which no table's own transactions can record, happen exactly once. Each
holder of the target's lease writes a file of its own, and the latest file counts: nobody reads what
a driver writes that has lost the lease.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from binlane.errors import ConfigError, StoreError
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.schema import ForeignKey, Key, Table
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition
from binlane.tables.landing.target_files import FOLDER, resolve

if TYPE_CHECKING:
    from binlane.binlogs.filters.filter_state import Saved

_LANDING: Final = "landing.json"
_EARLIER: Final = "journal.json"
_PREFIX: Final = "journal-"
_SUFFIX: Final = ".json"
_DEFINITIONS: Final = "definitions-"


@dataclass(slots=True, kw_only=True)
class JournalState:
    """The contents of a journal.

    Attributes:
        app_id: Names this landing in the tables' transactions.
        terms: The settings that say what is landed; a landing that goes on must have the same.
        began: Place in the log at which the landing began, as `position`; None before the first
            batch.
        is_bound: Whether the target may know it already; if it does not, nothing was begun.
        position: Place up to which the log is landed, as the planner writes it; None for the log's
            beginning.
        done: The `_seq` of the last statement whose steps are all done, as are those of all before
            it.
        doing: The `_seq` of the statement whose steps are being done, 0 for none.
        step: The step of that statement that may have been begun.
        abandoned: Tables that `current` no longer keeps, and why.
        ended_histories: Tables whose `history` is not gone on with, and why.
        partial: Current tables that may lack rows, and why.
        gaps: Change tables that lack changes of the log, and why.
        skipped: GTIDs of event groups that were passed over, and the tables of their rows.
        definitions: Name of the file of the tables' definitions at `position`; empty for none.
        snapshots: Tables whose rows were or are taken from the server, by name; each stays until
            the log is landed beyond the place up to which its snapshot saw it (see
            `snapshot.record`).
        run_id: Name of the landing that is under way or died; empty if the last one ended well.
        landed: How many row images of the log each table has at `position`, by mode and table.
        logged: How many row images the log had of each table up to `position`.
        left_out: How many of the images in `logged` are in no table, by table and why.
        seeded: Tables that have rows of a snapshot, by mode.
        followed: The filter's memory of names at `position`.
        cdf: Whether current tables that are made have a change data feed.
    """

    app_id: str
    terms: dict[str, str] = field(default_factory=dict)
    began: dict[str, Any] | None = None
    is_bound: bool = True
    position: dict[str, Any] | None = None
    done: int = 0
    doing: int = 0
    step: int = 0
    abandoned: dict[str, str] = field(default_factory=dict)
    ended_histories: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)
    gaps: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    definitions: str = ""
    snapshots: dict[str, dict[str, Any]] = field(default_factory=dict)
    run_id: str = ""
    landed: dict[str, dict[str, int]] = field(default_factory=dict)
    logged: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)
    seeded: dict[str, list[str]] = field(default_factory=dict)
    followed: Saved | Sequence[Sequence[Any]] = field(default_factory=dict)
    cdf: bool = False

    @property
    def flushed(self) -> int:
        """All rows up to this `_seq` are in all tables: a statement flushes what precedes it."""
        return max(self.done, self.doing)


class Journal:
    """The journal of one target.

    Args:
        target: URI or path of the folder in the target.
        folder: URI or path of the folder that holds it.
        epoch: Epoch of the lease under which it is written.
        state: The state that was read, or the beginning.
    """

    def __init__(self, target: str, folder: str, epoch: int, state: JournalState) -> None:
        self._target = target
        self._folder_uri = folder
        self._filesystem, self._folder = resolve(folder)
        self._name = f"{_PREFIX}{epoch:012}{_SUFFIX}"
        self._is_first = True
        self._known: object = None
        self.state = state

    @classmethod
    def open(
        cls,
        into: str,
        checkpoint: str | None,
        terms: Mapping[str, str],
        *,
        epoch: int = 0,
        kept: Collection[str] = (),
    ) -> Journal:
        """Bind a target and a checkpoint to each other, or see that they are.

        Args:
            into: URI or path of the target.
            checkpoint: URI or path of the folder of the journal; None for one in the target.
            terms: The settings that say what is landed, by name.
            epoch: Epoch of the lease that the caller holds.
            kept: Terms that remain as they are where the target was landed before.

        Raises:
            ConfigError: If one of them belongs to another landing or is gone, or if the target was
                landed on other terms: what was left out then would be missing for good.
            StoreError: If they cannot be written.
        """
        target = f"{into}/{FOLDER}"
        folder = checkpoint or target
        _refuse_earlier(into)
        bound = read_json(target, _LANDING)
        known = _latest(folder)
        if bound is None and (known is None or not known.get("is_bound", True)):
            app_id = f"binlane-{uuid.uuid4()}"
            state = JournalState(app_id=app_id, terms=dict(terms), is_bound=False)
            journal = cls(target, folder, epoch, state)
            journal.save()
            write_json(target, _LANDING, {"app_id": app_id})
            journal.state.is_bound = True
            journal.save()
            return journal
        if known is None or bound is None or known["app_id"] != bound["app_id"]:
            raise ConfigError(
                f"{into} and the checkpoint {folder} do not belong together",
                key="checkpoint",
                hint="name the checkpoint that this target was landed with, or an empty target "
                "and an empty checkpoint",
            )
        state = JournalState(**{**known, "is_bound": True})
        for name, value in terms.items():
            if state.terms.get(name, "") != value and name not in kept:
                raise ConfigError(
                    f"{into} was landed with {name} {state.terms.get(name) or 'not given'}, "
                    f"not with {value or 'none'}",
                    key=name,
                    hint="go on with the same, or land into an empty target",
                )
        return cls(target, folder, epoch, state)

    @staticmethod
    def read(into: str, checkpoint: str | None) -> JournalState:
        """Read the state of a target's landing, also while it runs.

        Raises:
            ConfigError: If nothing was landed there.
            StoreError: If the journal cannot be read.
        """
        _refuse_earlier(into)
        known = _latest(checkpoint or f"{into}/{FOLDER}")
        if known is None:
            raise ConfigError(
                f"no log was landed into {into}",
                key="checkpoint",
                hint="name the target as --into of land did, and its --checkpoint if it had one",
            )
        return JournalState(**known)

    def definitions(self) -> LoggedObjects:
        """The tables' definitions at `position`.

        Raises:
            StoreError: If they cannot be read.
        """
        name = self.state.definitions
        found = read_json(self._folder_uri, name) if name else None
        made = LoggedObjects() if found is None else objects_of_json(found)
        self._known = made.version
        return made

    def reach(self, position: dict[str, Any], definitions: LoggedObjects) -> None:
        """Note the place up to which the log is landed.

        Args:
            position: The place as the planner writes it.
            definitions: Definitions of the tables at that place.

        Raises:
            StoreError: If the journal cannot be written.
        """
        state, before = self.state, self.state.definitions
        if definitions.version != self._known:
            state.definitions = f"{_DEFINITIONS}{uuid.uuid4().hex}{_SUFFIX}"
            write_json(self._folder_uri, state.definitions, objects_as_json(definitions))
            self._known = definitions.version
        state.position = position
        self.save()
        if before and before != state.definitions:
            filesystem, folder = resolve(self._folder_uri)
            with suppress(FileNotFoundError):
                filesystem.delete_file(f"{folder}/{before}")

    def unbind(self) -> None:
        """Forget a landing that landed nothing, so that the target can be that of another one."""
        filesystem, target = resolve(self._target)
        self.state.is_bound = False
        self.save()
        filesystem.delete_file(f"{target}/{_LANDING}")
        for path in _journals(self._filesystem, self._folder):
            self._filesystem.delete_file(path)
        if self.state.definitions:
            self._filesystem.delete_file(f"{self._folder}/{self.state.definitions}")

    def save(self) -> None:
        """Write the state."""
        write_file_whole(
            self._filesystem,
            f"{self._folder}/{self._name}",
            json.dumps(asdict(self.state), ensure_ascii=False),
        )
        if self._is_first:
            self._is_first = False
            for path in _journals(self._filesystem, self._folder):
                if path.rpartition("/")[2] < self._name:
                    self._filesystem.delete_file(path)


def _refuse_earlier(into: str) -> None:
    filesystem, path = resolve(f"{into}/{FOLDER}/{_EARLIER}")
    if filesystem.get_file_info(path).type is fs.FileType.File:
        raise ConfigError(
            f"{into} was landed by an earlier version of binlane, whose place in the log cannot be read",
            key="into",
            hint="land into an empty target",
        )


def _latest(folder: str) -> dict[str, Any] | None:
    filesystem, path = resolve(folder)
    found = _journals(filesystem, path)
    return _load(filesystem, found[-1]) if found else None


def _journals(filesystem: fs.FileSystem, folder: str) -> list[str]:
    selector = fs.FileSelector(folder, allow_not_found=True)
    infos = filesystem.get_file_info(selector)
    return sorted(
        info.path
        for info in infos
        if info.base_name.startswith(_PREFIX) and info.base_name.endswith(_SUFFIX)
    )


def read_json(folder: str, name: str) -> dict[str, Any] | None:
    """The object in a file; None if there is no such file.

    Raises:
        StoreError: If it cannot be read.
    """
    filesystem, path = resolve(folder)
    if filesystem.get_file_info(f"{path}/{name}").type is not fs.FileType.File:
        return None
    return _load(filesystem, f"{path}/{name}")


def _load(filesystem: fs.FileSystem, path: str) -> dict[str, Any]:
    try:
        value = read_file_whole(filesystem, path)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"cannot be read: {error}", path=path, hint="restore it, or land into an empty target"
        ) from error
    if not isinstance(value, dict):
        raise StoreError(
            "is corrupt: it is no object",
            path=path,
            hint="restore it, or land into an empty target",
        )
    return value


def read_file_whole(filesystem: fs.FileSystem, path: str) -> Any:
    """Read the JSON of a file of `write_file_whole`, also while the file is written again.

    A file in an object store is asked for its size, and then for so many bytes: if the file is
    replaced in between, these are too few or too many. Broken JSON is an error only if it reads as
    the same twice.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the file has no JSON.
    """
    before: bytes | None = None
    while True:
        with filesystem.open_input_file(path) as stream:
            data = stream.read()
        try:
            return json.loads(data)
        except ValueError:
            if data == before:
                raise
            before = data


def write_json(folder: str, name: str, value: Mapping[str, Any]) -> None:
    """Replace a file by an object.

    Raises:
        StoreError: If it cannot be written.
    """
    filesystem, path = resolve(folder)
    write_file_whole(filesystem, f"{path}/{name}", json.dumps(value, ensure_ascii=False))


def write_file_whole(filesystem: fs.FileSystem, path: str, text: str) -> None:
    """Replace a file as a whole: by a rename where that is atomic, else by one upload.

    Raises:
        StoreError: If it cannot be written.
    """
    try:
        if not isinstance(filesystem, fs.LocalFileSystem):
            with filesystem.open_output_stream(path) as stream:
                stream.write(text.encode())
            return
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(f"{path}.new") as stream:
            stream.write(text.encode())
        filesystem.move(f"{path}.new", path)
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error}", path=path, hint="check who may write there, and its room"
        ) from error


# The objects of a log as JSON ---------------------------------------------------------------------


def objects_as_json(objects: LoggedObjects) -> dict[str, Any]:
    """Return a log's objects as JSON has them; attributes that are as usual are left out."""
    tables = (objects.base_table(name) for name in objects.tables)
    return {
        "tables": [_fields(table, {"create_statement"}) for table in tables if table],
        "triggered": sorted((name.database, name.table) for name in objects.triggered),
    }


def objects_of_json(found: Mapping[str, Any]) -> LoggedObjects:
    """Return the objects of `objects_as_json`, but for the texts of CREATE TABLE."""
    triggered = (TableName(*name) for name in found["triggered"])
    return LoggedObjects.of_tables(map(_table, found["tables"]), triggered)


def _fields(value: Any, left_out: set[str]) -> dict[str, Any]:
    made = {}
    for each in fields(value):
        content = getattr(value, each.name)
        is_usual = each.default is not MISSING and content == each.default
        if each.name in left_out or not each.init or is_usual:
            continue
        made[each.name] = _json(content)
    return made


def _json(value: Any) -> Any:
    if isinstance(value, TableName):
        return [value.database, value.table]
    if is_dataclass(value):
        return _fields(value, set())
    return [_json(each) for each in value] if isinstance(value, tuple) else value


def _table(found: Mapping[str, Any]) -> Table:
    plain = _plain(found)
    definition = _plain(found["definition"])
    definition["columns"] = tuple(
        TableColumn(**_plain(each)) for each in found["definition"]["columns"]
    )
    return Table(
        **{
            **plain,
            "name": TableName(*found["name"]),
            "definition": TableDefinition(**definition),
            "keys": tuple(Key(**_plain(each)) for each in found.get("keys", ())),
            "foreign_keys": tuple(map(_foreign_key, found.get("foreign_keys", ()))),
            "union": tuple(TableName(*each) for each in found.get("union", ())),
        }
    )


def _foreign_key(found: Mapping[str, Any]) -> ForeignKey:
    names = {"table": TableName(*found["table"]), "parent": TableName(*found["parent"])}
    return ForeignKey(**{**_plain(found), **names})


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as tuples, as the values have them."""
    return {name: _tuple(value) for name, value in found.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
