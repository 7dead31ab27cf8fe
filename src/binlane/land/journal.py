"""What a landing remembers beside its tables: who it is, how far statements are done, what it gave up.

One small JSON file in the target, replaced as a whole. It makes statements that concern tables as
such (DROP, RENAME …), which no table's own transactions can record, happen exactly once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from pyarrow import fs

from binlane.errors import ConfigError, StoreError

FOLDER: Final = "_binlane"
_JOURNAL: Final = "journal.json"
_APP_ID: Final = "binlane_app_id"


@dataclass(slots=True, kw_only=True)
class JournalState:
    """The contents.

    Attributes:
        app_id: Names this landing in the tables' transactions and in its checkpoint.
        terms: What it lands; a landing that goes on must land the same.
        done: `_seq` of the last statement whose steps are all done; what lies before it is done.
        doing: `_seq` of the statement whose steps are being done, 0 for none.
        step: The step of it that may have been begun.
        abandoned: Tables that `current` no longer keeps, and why.
    """

    app_id: str
    terms: dict[str, str] = field(default_factory=dict)
    done: int = 0
    doing: int = 0
    step: int = 0
    abandoned: dict[str, str] = field(default_factory=dict)


class Journal:
    """The journal of one target.

    Args:
        filesystem: That holds the target.
        root: The target in it.
        state: What was read, or the beginning.
    """

    def __init__(self, filesystem: fs.FileSystem, root: str, state: JournalState) -> None:
        self._filesystem = filesystem
        self._path = f"{root}/{FOLDER}/{_JOURNAL}"
        self.state = state

    @classmethod
    def open(cls, into: str, checkpoint: str, terms: Mapping[str, str]) -> Journal:
        """Bind a target and a checkpoint to each other, or see that they are.

        Args:
            into: URI or path of the target.
            checkpoint: URI or path of the streaming query's checkpoint.
            terms: What is to be landed, by setting.

        Raises:
            ConfigError: If one of them belongs to another landing or is gone, or if the target was
                landed on other terms: what was left out then would be missing for good.
            StoreError: If they cannot be written.
        """
        filesystem, root = resolve(into)
        at_checkpoint, checkpoint_root = resolve(checkpoint)
        known = _read(filesystem, f"{root}/{FOLDER}/{_JOURNAL}")
        bound = _read(at_checkpoint, f"{checkpoint_root}/{_APP_ID}")
        if known is None and bound is None:
            fresh = JournalState(app_id=f"binlane-{uuid.uuid4()}", terms=dict(terms))
            journal = cls(filesystem, root, fresh)
            journal.save()
            _write(at_checkpoint, f"{checkpoint_root}/{_APP_ID}", journal.state.app_id)
            return journal
        state = None if known is None else JournalState(**json.loads(known))
        if state is None or state.app_id != bound:
            raise ConfigError(
                f"{into} and the checkpoint {checkpoint} do not belong together",
                key="checkpoint",
                hint="name the checkpoint that this target was landed with, or an empty target "
                "and an empty checkpoint",
            )
        for name, value in terms.items():
            if state.terms.get(name) != value:
                raise ConfigError(
                    f"{into} was landed with {name} {state.terms.get(name) or 'not given'}, "
                    f"not with {value or 'none'}",
                    key=name,
                    hint="go on with the same, or land into an empty target",
                )
        return cls(filesystem, root, state)

    def save(self) -> None:
        """Write the state."""
        _write(self._filesystem, self._path, json.dumps(asdict(self.state), ensure_ascii=False))


def resolve(uri: str) -> tuple[fs.FileSystem, str]:
    """File system and path of a URI or local path.

    Raises:
        ConfigError: If nothing can be reached under it.
    """
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except ValueError:
        filesystem, path = fs.LocalFileSystem(), uri
    except OSError as error:
        raise ConfigError(f"{uri} cannot be reached: {error}", key="into") from error
    return filesystem, str(path).rstrip("/")


def _read(filesystem: fs.FileSystem, path: str) -> str | None:
    if filesystem.get_file_info(path).type is not fs.FileType.File:
        return None
    with filesystem.open_input_file(path) as stream:
        return str(stream.read().decode())


def _write(filesystem: fs.FileSystem, path: str, text: str) -> None:
    """Replace a file as a whole: by a rename where that is atomic, else by one upload."""
    try:
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        if not isinstance(filesystem, fs.LocalFileSystem):
            with filesystem.open_output_stream(path) as stream:
                stream.write(text.encode())
            return
        with filesystem.open_output_stream(f"{path}.new") as stream:
            stream.write(text.encode())
        filesystem.move(f"{path}.new", path)
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error}", path=path, hint="check who may write there, and its room"
        ) from error
