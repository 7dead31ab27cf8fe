"""Decisions recorded on a MariaDB 10.11.19 and a MySQL 9.7.4: settings, statements, what was logged.

`tests/fixtures/yardsticks/<flavor>.jsonl.xz` holds one record a line, `<flavor>.sql` the objects.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.logged_events import Event

FLAVORS: Final = ("mariadb", "mysql")
_FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "yardsticks"
_CONFIGURATION: Final = {
    "mariadb": "set global log_bin_trust_function_creators=1;\n",
    "mysql": (
        "set global log_bin_trust_function_creators=1;\n"
        "set global gtid_mode=OFF;\n"
        "set global enforce_gtid_consistency=OFF;\n"
    ),
}
# What the recorded MySQL refused when the objects were made: engines and statements of MariaDB.
_REFUSED: Final = {"mariadb": (), "mysql": ("engine=aria", "engine=example", "create sequence")}


class Warned(NamedTuple):
    """A row of SHOW WARNINGS."""

    level: str
    errno: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One statement in its circumstances, and what the server did.

    Attributes:
        flavor: `mariadb` or `mysql`.
        number: Its place in the recording, from 0.
        name: What it is a case of; the same for all settings and contexts.
        settings: Session variables, as the recording names them.
        context: What went before, in a word.
        before: Statements before it.
        sql: The statement.
        error: Error number; None if it succeeded.
        reasons: Symbols of its notes 1592, in order.
        warnings: What SHOW WARNINGS told then: level, number and text, cut at 200 characters; of a
            note 1592 the symbol stands for the text.
        events: What it appended.
        logged_as: `stmt`, `row` or `none`: the kind of `events`.
        end: Statements after it.
        errors_at_end: The error number of each of those; None if it succeeded.
        events_at_end: What those appended.
        logged_as_end: The kind of `events_at_end`.
    """

    flavor: str
    number: int
    name: str
    settings: Mapping[str, Any]
    context: str
    before: tuple[str, ...]
    sql: str
    error: int | None
    reasons: tuple[str, ...]
    warnings: tuple[Warned, ...]
    events: tuple[Event, ...]
    logged_as: str
    end: tuple[str, ...]
    errors_at_end: tuple[int | None, ...]
    events_at_end: tuple[Event, ...]
    logged_as_end: str

    @property
    def profile(self) -> str:
        """The settings in a few words, such as `STATEMENT, direct`."""
        return ", ".join(
            filter(
                None,
                (
                    str(self.settings["binlog_format"]),
                    "direct" if self.settings["binlog_direct"] else "",
                    ""
                    if self.settings["tx_isolation"] == "REPEATABLE-READ"
                    else str(self.settings["tx_isolation"]),
                ),
            )
        )


def records(flavor: str) -> Iterator[Record]:
    """All records of a flavor, in the order in which they were recorded."""
    with lzma.open(_FOLDER / f"{flavor}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            yield _record(flavor, number, json.loads(line))


@cache
def objects_script(flavor: str) -> str:
    """SQL that makes the objects, and says how the server was configured."""
    lines = (_FOLDER / f"{flavor}.sql").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = (line for line in lines if not any(word in line for word in _REFUSED[flavor]))
    return _CONFIGURATION[flavor] + "".join(kept)


def _record(flavor: str, number: int, line: Mapping[str, Any]) -> Record:
    return Record(
        flavor=flavor,
        number=number,
        name=line["id"],
        settings=line["settings"],
        context=line["context"],
        before=tuple(line["before"]),
        sql=line["sql"],
        error=line["error"][0] if line["error"] else None,
        reasons=tuple(text for _, errno, text in line["warnings"] if errno == 1592),
        warnings=tuple(Warned(*warned) for warned in line["warnings"]),
        events=tuple(Event(*event) for event in line["events"]),
        logged_as=line["logged_as"],
        end=tuple(sql for sql, *_ in line.get("end", ())),
        errors_at_end=tuple(error[0] if error else None for _, error, _ in line.get("end", ())),
        events_at_end=tuple(Event(*event) for event in line.get("events_at_end", ())),
        logged_as_end=line.get("logged_as_end", "none"),
    )
