"""The record of a run of `route`, kept beside its binlogs, so that the next run can go on.

A record says: up to this place of this file everything is in the binlogs, and each of them is on
disk up to its mark. Bytes behind a mark are cut off when a run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from binlane.binlogs.filters.filter_state import Saved
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.store.catalog import Mark
from binlane.binlogs.store.disk import Disk, write_whole
from binlane.errors import CorruptStoreError
from binlane.positions import FilePosition, Position, parse_position
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import ScopeList
from binlane.statements.sql.servers import RowImage

RECORD_FILE: Final = "binlane-route.json"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The place up to which files were routed.

    Attributes:
        file: Base name of the last file.
        fingerprint: Fingerprint of the last file's FORMAT_DESCRIPTION.
        position: Position of the next event group in it, in bytes.
        done: Position of the source that was done there.
        filter_terms: The filter of the run as a text; empty for everything.
        followed: The filter's memory of names there.
    """

    file: str
    fingerprint: str
    position: int
    done: Position
    filter_terms: str = ""
    followed: Saved = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The work that the runs have done.

    Attributes:
        reached: Place up to which files were routed.
        definitions: A text for each binlog, by name.
        marks: Mark of each binlog, by name.
    """

    reached: Reached
    definitions: Mapping[str, str]
    marks: Mapping[str, Mark]

    def write(self, directory: Path, disk: Disk) -> None:
        """Keep it, at once or not at all."""
        reached = self.reached
        fields = {
            "version": _VERSION,
            "flavor": reached.done.flavor,
            "file": reached.file,
            "fingerprint": reached.fingerprint,
            "position": reached.position,
            "gtids": str(reached.done),
            "filter": reached.filter_terms,
            "followed": dict(reached.followed),
            "binlogs": {
                name: {
                    "definition": self.definitions[name],
                    "file": mark.end.file,
                    "position": mark.end.position,
                    "gtids": str(mark.position),
                    "clock": mark.clock,
                    "clock_base": mark.clock_base,
                    "prepared": sorted(mark.prepared),
                    "memory": mark.memory,
                }
                for name, mark in self.marks.items()
            },
        }
        text = json.dumps(fields, indent=2) + "\n"
        write_whole(disk, directory / RECORD_FILE, text.encode())

    @classmethod
    def read(cls, directory: Path) -> Record | None:
        """The record of a directory, None if there is none.

        Raises:
            CorruptStoreError: If it cannot be understood.
        """
        path = directory / RECORD_FILE
        try:
            fields = json.loads(path.read_bytes())
            return _record(fields)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise CorruptStoreError(
                f"the record of what was routed cannot be read: {error}",
                path=str(path),
                hint="route into another directory",
            ) from error


def _record(fields: dict[str, Any]) -> Record:
    if fields["version"] != _VERSION:
        raise ValueError(f"version {fields['version']} is unknown")
    flavor = fields["flavor"]
    for each in fields["binlogs"].values():
        Memory.decode(each["memory"])  # whoever needs it reads it again
    return Record(
        reached=Reached(
            file=fields["file"],
            fingerprint=fields["fingerprint"],
            position=int(fields["position"]),
            done=parse_position(fields["gtids"], flavor),
            filter_terms=fields.get("filter", ""),
            followed=fields.get("followed", {}),
        ),
        definitions={name: each["definition"] for name, each in fields["binlogs"].items()},
        marks={
            name: Mark(
                end=FilePosition(each["file"], int(each["position"])),
                position=parse_position(each["gtids"], flavor),
                clock=int(each["clock"]),
                clock_base=each["clock_base"],
                prepared=frozenset(each["prepared"]),
                memory=each["memory"],
            )
            for name, each in fields["binlogs"].items()
        },
    )


def text_of(definition: Definition) -> str:
    """A definition as a text that is equal for equal ones."""
    scope = definition.scope
    parts = ["LOG ALL" if scope.log_all else "IGNORE ALL"]
    parts += [f"{which.value}({listed})" for which in ScopeList if (listed := scope.render(which))]
    parts.append(f"FORMAT={definition.logging_mode.value}")
    if definition.row_image is not RowImage.FULL:
        parts.append(f"ROW_IMAGE={definition.row_image.value}")
    if definition.is_compressed:
        parts.append("COMPRESS=ON")
    return ", ".join(parts)
