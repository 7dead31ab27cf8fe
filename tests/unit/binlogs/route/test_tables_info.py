"""Routed files whose statements say which tables they concern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteReport
from binlane.binlogs.routing.query_events import statement_of
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.verify import verify
from binlane.errors import CodecError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent, GtidListEvent
from binlane.log.codec.types import EventType, GtidFlag
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from binlane.positions import GtidPosition
from binlane.statements.sql.tables_info import told_tables
from tests.build import event, format_description, log
from tests.routed_files import outputs, request, written

_SCOPES = ("LOG ALL", "LOG(shop)", "IGNORE(shop.t)")
_EXTENDED = format_description(lengths={EventType.QUERY: 17})
compiled = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def _route(
    paths: tuple[str, ...],
    out: Path,
    *clauses: str,
    tables_info: bool = True,
    file_bytes: int = 1 << 30,
    **fields: object,
) -> RouteReport:
    settings = StoreSettings(max_binlog_size_bytes=file_bytes, has_tables_info=tables_info)
    report = route_files(request(paths, out, *clauses, settings=settings, **fields))
    assert report.fault is None
    return report


def _events(folder: Path) -> Iterator[Event]:
    for path in sorted(folder.glob("b?.0*")):
        yield from walk([path.read_bytes()], file=path.name)


def _statements(folder: Path) -> list[QueryEvent]:
    found = [statement_of(event.body) for event in _events(folder)]
    return [one for one in found if one is not None]


@compiled
@pytest.mark.parametrize("file_bytes", [8192, 1 << 30])
@pytest.mark.parametrize(
    "name", ["md1011_format_mixed", "md1011_engines_row", "my97_txn", "my97_xa", "my97_compressed"]
)
def test_all_paths_make_the_same_files_and_plain_ones_of_them(
    name: str, file_bytes: int, tmp_path: Path
) -> None:
    paths = written(name, tmp_path / "in")
    fields: tuple[dict[str, Any], ...] = (
        {"uses_kernels": False},
        {},
        {"window_bytes": 64, "held_bytes_max": 200},
    )
    for number, each in enumerate(fields):
        _route(paths, tmp_path / f"{number}", *_SCOPES, file_bytes=file_bytes, **each)
    expected = outputs(tmp_path / "0")
    assert outputs(tmp_path / "1") == expected
    assert outputs(tmp_path / "2") == expected
    for binlog in ("b1", "b2", "b3"):
        statements = _statements(tmp_path / "1" / binlog)
        assert all(one.tables_info is not None for one in statements)
        assert [*verify(tuple(map(str, sorted((tmp_path / "1" / binlog).glob("b?.0*")))))] == []
    # And without them they are those that were never there.
    extended = tuple(map(str, sorted((tmp_path / "1/b1").glob("b1.0*"))))
    for number, each in enumerate(fields):
        _route(extended, tmp_path / f"p{number}", "LOG ALL", tables_info=False, **each)
    assert outputs(tmp_path / "p0") == outputs(tmp_path / "p1") == outputs(tmp_path / "p2")
    _route(paths, tmp_path / "plain", "LOG ALL", tables_info=False)
    if name != "my97_compressed":  # whose transactions are one event each
        assert _statements(tmp_path / "p1/b1") == _statements(tmp_path / "plain/b1")


def _group(sequence: int, *statements: QueryEvent) -> list[Event]:
    gtid = GtidEvent(sequence=sequence, domain_id=0, flags=GtidFlag.STANDALONE | GtidFlag.DDL)
    return [event(gtid), *map(event, statements)]


def _query(text: str, **fields: object) -> QueryEvent:
    made = QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=b"shop",
        query=text.encode(),
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # the dataclass checks them


def _written(path: Path, *events: Event, head: FormatDescriptionEvent | None = None) -> str:
    path.write_bytes(log(event(GtidListEvent.of(GtidPosition())), *events, head=head))
    return str(path)


def _forms(folder: Path) -> list[tuple[bool, list[bytes]]]:
    """Of each file whether it is extended, and its statements, which are all of that form."""
    found = []
    for path in sorted(folder.glob("b?.0*")):
        first, *events = walk([path.read_bytes()], file=path.name)
        assert isinstance(first.body, FormatDescriptionEvent)
        is_extended = first.body.format.has_tables_info
        bodies = [event.body for event in events if isinstance(event.body, QueryEvent)]
        assert all((body.tables_info is not None) is is_extended for body in bodies)
        found.append((is_extended, [body.query[:30] for body in bodies]))
    return found


@pytest.mark.rule("003:one-form-per-file")
@pytest.mark.parametrize("uses_kernels", [True, False])
@pytest.mark.parametrize(
    "long",
    [
        "CREATE TABLE c (a INT) COMMENT '" + "x" * 65_536 + "'",
        "CREATE TABLE " + "c" * 256 + " (a INT)",
        "DROP TABLE " + ", ".join(f"t{number:060}" for number in range(1050)),
    ],
)
def test_what_has_no_room_is_in_a_plain_file(
    long: str, *, uses_kernels: bool, tmp_path: Path
) -> None:
    path = _written(
        tmp_path / "m.000001",
        *_group(1, _query("CREATE TABLE a (a INT)")),
        *_group(2, _query(long)),
        *_group(3, _query("DROP TABLE a")),
    )
    _route((path,), tmp_path / "out", "LOG ALL", uses_kernels=uses_kernels)
    assert _forms(tmp_path / "out/b1") == [
        (True, [b"CREATE TABLE a (a INT)"]),
        (False, [long.encode()[:30], b"DROP TABLE a"]),
    ]
    _route((path,), tmp_path / "small", "LOG ALL", uses_kernels=uses_kernels, file_bytes=4096)
    if len(long) > 4096:
        forms = [is_extended for is_extended, _ in _forms(tmp_path / "small/b1")]
        assert forms == [True, False, True]


@compiled
@pytest.mark.parametrize(
    "name", ["md1011_format_mixed", "my97_format_mixed", "my97_engines_statement", "my97_xa"]
)
def test_all_paths_change_forms_alike(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlane.binlogs.routing.query_tables.INFO_MAX", 48)
    paths = written(name, tmp_path / "in")
    fields: tuple[dict[str, Any], ...] = (
        {"uses_kernels": False},
        {},
        {"window_bytes": 64, "held_bytes_max": 200},
    )
    for number, each in enumerate(fields):
        _route(paths, tmp_path / f"{number}", *_SCOPES, file_bytes=4096, **each)
    expected = outputs(tmp_path / "0")
    assert outputs(tmp_path / "1") == expected
    assert outputs(tmp_path / "2") == expected
    forms = [is_extended for is_extended, _ in _forms(tmp_path / "1/b1")]
    assert len(forms) > 3
    assert {*forms} == {True, False}


def test_another_choice_begins_a_file(tmp_path: Path) -> None:
    first = _written(tmp_path / "m.000001", *_group(1, _query("CREATE TABLE a (a INT)")))
    path = tmp_path / "m.000002"
    begin = event(GtidListEvent.of(GtidPosition.parse("0-1-1")))
    path.write_bytes(log(begin, *_group(2, _query("DROP TABLE a"))))
    _route((first,), tmp_path / "out", "LOG ALL", tables_info=False)
    _route((first, str(path)), tmp_path / "out", "LOG ALL")
    assert _forms(tmp_path / "out/b1") == [
        (False, [b"CREATE TABLE a (a INT)"]),
        (True, [b"DROP TABLE a"]),
    ]


def test_tables_that_the_text_does_not_tell_are_kept_within_the_scope(tmp_path: Path) -> None:
    told = b"\0\1t" + b"\3crm\6secret"
    path = _written(
        tmp_path / "m.000001",
        *_group(1, _query("INSERT INTO v VALUES (1)", tables_info=told)),
        *_group(2, _query("DROP TABLE t", tables_info=b"")),
        head=_EXTENDED,
    )
    _route((path,), tmp_path / "out", "LOG ALL", "LOG(shop)")
    whole, scoped = (_statements(tmp_path / "out" / name) for name in ("b1", "b2"))
    assert [str(table) for table in told_tables(whole[0])] == ["`shop`.`t`", "`crm`.`secret`"]
    assert [str(table) for table in told_tables(whole[1])] == ["`shop`.`t`"]
    assert [one.tables_info for one in scoped] == [b"\0\1t", b"\0\1t"]
    assert b"secret" not in b"".join(outputs(tmp_path / "out" / "b2").values())


@pytest.mark.parametrize("info", [b"\0", b"\5shop", b"\0\1t\0", b"\0\0"])
def test_damaged_tables_info_is_told_with_its_place(info: bytes, tmp_path: Path) -> None:
    bad = _group(2, _query("DROP TABLE t", tables_info=info))
    path = _written(
        tmp_path / "m.000001",
        *_group(1, _query("DROP TABLE s", tables_info=b"\0\1s")),
        *bad,
        head=_EXTENDED,
    )
    data = Path(path).read_bytes()
    settings = StoreSettings(has_tables_info=True)
    report = route_files(request((path,), tmp_path / "out", "LOG ALL", settings=settings))
    assert isinstance(report.fault, CodecError)
    assert "tables info" in report.fault.message
    assert (report.fault.file, report.fault.position) == (path, data.index(b"DROP TABLE t") - 40)
    assert [one.query for one in _statements(tmp_path / "out/b1")] == [b"DROP TABLE s"]
