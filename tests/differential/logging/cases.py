"""Cases: sessions with what a server did, so that they run where that server is not.

`cases/<name>.<flavor>.json` holds the objects, the statements and the recording, and the server
where it was another version than the usual one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.differential.logging.recorder import Recorded
from tests.differential.logging.scripts import Script, Statement
from tests.logged_events import Event

FOLDER: Final = Path(__file__).parent / "cases"


def names() -> list[str]:
    """All cases as `<name>.<flavor>`."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def server_name(name: str) -> str:
    """The server of a case: its flavor, or flavor and version."""
    case = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return str(case.get("server", name.rsplit(".", 1)[1]))


def read(name: str) -> tuple[Script, tuple[Recorded, ...]]:
    """A case by `<name>.<flavor>`."""
    return read_file(FOLDER / f"{name}.json")


def read_file(path: Path) -> tuple[Script, tuple[Recorded, ...]]:
    """A case by its file."""
    case = json.loads(path.read_text(encoding="utf-8"))
    steps = case["statements"]
    script = Script(
        schema=tuple(case["schema"]),
        statements=tuple(
            Statement(sql=step["sql"], rows=step.get("rows")) for step in steps if step["sql"]
        ),
    )
    return script, tuple(_recorded(step) for step in steps)


def text(script: Script, recorded: Sequence[Recorded], server: str = "") -> str:
    """A case as its file holds it; `server` is named where it is not the usual version."""
    statements = [*script.statements, Statement(sql="")]
    steps = [_step(statement, done) for statement, done in zip(statements, recorded, strict=True)]
    lines = ",\n".join(f"  {json.dumps(step, ensure_ascii=False)}" for step in steps)
    schema = ",\n".join(f"  {json.dumps(sql, ensure_ascii=False)}" for sql in script.schema)
    named = f'"server": {json.dumps(server)},\n' if server else ""
    return f'{{\n{named}"schema": [\n{schema}\n],\n"statements": [\n{lines}\n]\n}}\n'


def _step(statement: Statement, done: Recorded) -> dict[str, Any]:
    step: dict[str, Any] = {"sql": statement.sql}
    if statement.rows is not None:
        step["rows"] = statement.rows
    if done.error is not None:
        step["error"] = done.error
    if done.reasons:
        step["notes"] = list(done.reasons)
    if done.affected:
        step["affected"] = done.affected
    if done.has_result:
        step["result"] = True
    step["events"] = [list(event) for event in done.events]
    return step


def _recorded(step: dict[str, Any]) -> Recorded:
    return Recorded(
        sql=step["sql"],
        error=step.get("error"),
        reasons=tuple(step.get("notes", ())),
        affected=step.get("affected", 0),
        has_result=step.get("result", False),
        events=tuple(Event(*event) for event in step["events"]),
    )
