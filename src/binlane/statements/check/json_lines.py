"""The report for programs: one JSON object a line for every statement."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

from binlane.log.codec.load_data import ExecuteLoadQueryEvent
from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.statements.check.binlog_forms import BinlogForm
from binlane.statements.check.findings import (
    CheckedStatement,
    place_of,
    unanalysed_finding,
    what_is_unanalysed,
)
from binlane.statements.check.report import Judged, Report
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.policy.server import Server
from binlane.statements.session.log_events import Body, printed
from binlane.statements.session.report import BinlogResult, Note, StatementResult
from binlane.statements.sql.servers import LoggingFormat, RowImage

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_string: Final = encode_basestring
_NOTHING: Final = {type(None): "null", list: "[]", dict: "{}"}
_FORMATS: Final = {
    LoggingFormat.STATEMENT: '"statement"',
    LoggingFormat.ROW: '"row"',
    None: '"none"',
}
_OF_ONE_STATEMENT: Final = (AnnotateRowsEvent, QueryEvent, ExecuteLoadQueryEvent)
"""Events that hold a text, so that few statements have the same."""
_events: Final[dict[int, tuple[Body, Server, str]]] = {}
"""Other events as they are told, with themselves, by their identity."""
_EVENTS_MAX: Final = 4_096


class JsonReport(Report):
    """Writes every statement.

    Args:
        explain: Write also the steps of the decisions, and the causes of errors and notes.
    """

    def __init__(self, *, explain: bool = False) -> None:
        self._explain = explain

    def statement(
        self, script: str, checked: CheckedStatement, judged: Sequence[Judged]
    ) -> Iterator[str]:
        """Give the JSON object of a statement."""
        del judged
        yield json_line(script, checked, explain=self._explain)


def json_line(script: str, checked: CheckedStatement, *, explain: bool = False) -> str:
    """A statement's line, without its line end.

    Args:
        script: The path as the user gave it.
        checked: The statement and what it does.
        explain: Write also the steps of the decisions, and the causes of errors and notes.
    """
    statement, result = checked.statement, checked.result
    return (
        f'{{"script": {_string(script)}, "statement": {statement.number},'
        f' "line": {statement.line}, "sql": {_string(statement.sql)},'
        f' "error": {_json(_error(result))}, "notes": {_json(_notes(result))},'
        f' "binlogs": {_binlogs(checked, explain=explain)}{_others(checked, explain=explain)}}}'
    )


def _notes(result: StatementResult) -> list[dict[str, Any]]:
    return [
        {
            "errno": note.errno,
            "reason": note.reason,
            "message": note.message,
            **_on_some_ways(note),
        }
        for note in result.notes
    ]


def _others(checked: CheckedStatement, *, explain: bool) -> str:
    """Return the members that only some statements have, behind those that all have."""
    statement, result = checked.statement, checked.result
    told: dict[str, Any] = {}
    if result.error is not None and result.error.others:
        told["more_errors"] = [_refusal(one) for one in result.error.others]
    unanalysed = what_is_unanalysed(result)
    if unanalysed is not None:
        (why,) = unanalysed_finding(unanalysed).whys
        place = place_of(statement, why)
        told["unanalysed"] = {
            "reason": unanalysed.reason,
            "line": place.line,
            "column": place.column,
        }
    if result.depends_on:
        told["ways"] = result.ways
        told["depends_on"] = [
            {"condition": one.text, "program": one.program, "offset": one.offset}
            for one in result.depends_on
        ]
    if explain:
        told["why"] = _whys(result)
    return f", {_json(told)[1:-1]}" if told else ""


def _json(told: object) -> str:
    return _ENCODER.encode(told) if told else _NOTHING[type(told)]


def _error(result: StatementResult) -> dict[str, Any] | None:
    if result.unanalysed is not None:
        finding = unanalysed_finding(result.unanalysed)
        return {
            "errno": finding.errno,
            "sqlstate": finding.sqlstate,
            "message": f"This statement could not be analysed: {finding.message}",
        }
    return None if result.error is None else _refusal(result.error)


def _refusal(error: Refusal) -> dict[str, Any]:
    return {
        "errno": error.errno,
        "sqlstate": error.sqlstate,
        "message": error.message,
        **_on_some_ways(error),
    }


def _on_some_ways(found: Refusal | Note) -> dict[str, bool]:
    return {"on_some_ways": True} if found.on_some_ways else {}


def _binlogs(checked: CheckedStatement, *, explain: bool) -> str:
    """Return the member with each binlog's events; binlogs with equal events share their text."""
    texts: dict[int, str] = {}
    told = []
    for name, binlog in checked.result.binlogs.items():
        text = texts.get(id(binlog))
        if text is None:
            text = texts[id(binlog)] = _binlog(binlog, explain=explain)
        told.append(f"{_string(name)}: {{{text}{_form(checked.forms.get(name))}}}")
    return f"{{{', '.join(told)}}}"


def _form(form: BinlogForm | None) -> str:
    """Return the form of a binlog, as far as it differs from the usual one."""
    if form is None or not form.clauses:
        return ""
    image = form.row_image
    told = "" if image is RowImage.FULL else f', "row_image": {_string(image.value)}'
    return told + (', "compress": "ON"' if form.is_compressed else "")


def _binlog(binlog: BinlogResult, *, explain: bool) -> str:
    server = binlog.server
    events = ", ".join([_event(body, server) for body in binlog.bodies])
    ways = "" if binlog.ways == 1 else f', "ways": {binlog.ways}'
    steps = f', "steps": {_ENCODER.encode(binlog.steps)}' if explain else ""
    return f'"logged_as": {_FORMATS[binlog.logged_as]}, "events": [{events}]{ways}{steps}'


def _event(body: Body, server: Server) -> str:
    known = _events.get(id(body))
    if known is not None and known[0] is body and known[1] is server:
        return known[2]
    event = printed(body, server)
    text = f"[{_string(event.type)}, {_string(event.info)}]"
    if not isinstance(body, _OF_ONE_STATEMENT):
        if len(_events) >= _EVENTS_MAX:
            _events.clear()
        _events[id(body)] = body, server, text
    return text


def _whys(result: StatementResult) -> list[dict[str, Any]]:
    whys: list[tuple[str, Why]] = []
    if result.error is not None:
        for error in (result.error, *result.error.others):
            whys += [(error.symbol, why) for why in error.why]
    whys += [(note.reason, note.why) for note in result.notes]
    return [
        {
            "reason": reason,
            "what": why.what,
            "through": why.through,
            "offset": why.offset,
            "length": why.length,
            "hint": why.hint,
        }
        for reason, why in whys
    ]
