"""Planned texts that may stand in scoped binlogs: what a kernel finds by shapes is what each text says by itself."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from binlane.binlogs.routing import scoped_texts
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.routing.scoped_texts import ScopedTexts, may_stand
from binlane.binlogs.routing.texts import SHAPES_MAX
from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import is_compiled
from binlane.statements.scope.scope import Scope
from tests.routed_files import definitions
from tests.unit.live.loop.test_substitution import Source
from tests.unit.live.service.test_runs import items_of

pytestmark = pytest.mark.skipif(
    not is_compiled(("planned_scopes", "text_shapes")), reason="the kernels are not compiled here"
)

_QUERY, _INTVAR = int(EventType.QUERY), int(EventType.INTVAR)
_TURNS = 1000
_TABLES = ("shop.a", "shop.b", "shop.secret", "other.a", "a", "`shop`.`a`", "`other`.`a`", '"a"')
_WORDS = (
    "/*",
    "*/",
    "--",
    "#",
    "'",
    "\\'",
    '"',
    "`",
    "1",
    "shop.a",
    "other.b",
    "()",
    ";",
    "''",
    "\n",
)
_COMMENTS = (
    "",
    "/* ' */ ",
    " /* ' */",
    "/* it's */ ",
    " -- '",
    "/*! ",
    " */",
    "/* other.a */ ",
    " # x",
)


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
@pytest.mark.parametrize(
    "words", ["LOG(shop) IGNORE(shop.secret)", "LOG(shop) IGNORE(shop.b)", "LOG(shop.b)"]
)
def test_a_kernel_finds_what_each_text_says(tmp_path: Path, name: str, words: str) -> None:
    groups = _groups(name, tmp_path)
    scope, other = (
        definitions(f"{one} FORMAT='STATEMENT'")[0].scope for one in (words, "LOG(other)")
    )
    chance, texts = random.Random(98), ScopedTexts()
    are_inside: list[bool] = []
    for _ in range(_TURNS):
        bodies = {
            number: [(_INTVAR, bytes(9))] * chance.randint(0, 1)
            + [(_QUERY, _random_body(chance)) for _ in range(chance.choice((1, 1, 1, 2)))]
            for number in sorted(chance.sample(range(groups.run.count), 4))
        }
        for one in (scope, other):
            expected = [
                number
                for number, each in bodies.items()
                if not _is_inside(groups, number, each, one)
            ]
            assert _outside(texts, groups, bodies, one) == expected, bodies
            are_inside += [number not in expected for number in bodies]
    assert 5 < sum(are_inside) < len(are_inside) - 5


def test_a_text_without_a_key_is_judged_each_time(tmp_path: Path) -> None:
    groups, texts = _groups("md1011_txn", tmp_path), ScopedTexts()
    scope = definitions("LOG(shop) IGNORE(shop.secret) FORMAT='STATEMENT'")[0].scope
    number = next(one for one in range(groups.run.count) if groups.has(one, lay.ENDS_WITH_XID))
    rows = ", ".join(f"({one}, 'x')" for one in range(2000))
    for table, is_inside in (("shop.a", True), ("shop.secret", False), ("shop.b", True)):
        bodies = [
            (_QUERY, _query_body(f"INSERT INTO {one} VALUES {rows}".encode(), b"shop"))
            for one in ("shop.a", table)
        ]
        assert _outside(texts, groups, {number: bodies}, scope) == [number] * (not is_inside)
    for body in (b"", bytes(7), bytes(12), b"\xff" * 40):  # damaged: the reference tells where
        assert _outside(texts, groups, {number: [(_QUERY, body)]}, scope) == [number]


def test_more_shapes_than_are_kept_are_judged_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, texts = _groups("md1011_txn", tmp_path), ScopedTexts()
    scope = definitions("LOG(shop) IGNORE(shop.secret) FORMAT='STATEMENT'")[0].scope
    number = next(one for one in range(groups.run.count) if groups.has(one, lay.ENDS_WITH_XID))
    judged: list[bytes] = []

    def noted(data: bytes, *given: object, is_begin: bool) -> bool:
        judged.append(data)
        return b"secret" not in data

    monkeypatch.setattr(scoped_texts, "may_stand", noted)
    for turn in range(SHAPES_MAX + 20):
        for is_new in (True, False):
            table = "shop.secret" if turn % 7 == 0 else "shop.a"
            bodies = [(_QUERY, _query_body(f"DELETE FROM {table} AS t{turn}".encode(), b"shop"))]
            before = len(judged)
            found = _outside(texts, groups, {number: bodies}, scope)
            assert found == [number] * (turn % 7 == 0)
            assert len(judged) - before == is_new


def _groups(name: str, directory: Path) -> RunGroups:
    source = Source.of(name, directory, sessions=1)
    items = items_of((str(source.path),), 1 << 20, 1 << 26)
    (run,) = [one.kept(0) for one in items if isinstance(one, RawRun)]
    return RunGroups(run)


def _outside(
    texts: ScopedTexts,
    groups: RunGroups,
    bodies: dict[int, list[tuple[int, bytes]]],
    scope: Scope,
) -> list[int]:
    """What the kernel finds for groups with these texts."""
    forms = np.zeros((lay.FORM_SIZE, groups.run.count), np.int32)
    arena = bytearray(b"before")
    index: list[tuple[int, int, int, int]] = []
    for number, each in bodies.items():
        forms[:, number] = len(index), len(each)
        for type_code, body in each:
            index.append((type_code, 0, len(arena), len(body)))
            arena += body
    numbers = np.array(list(bodies), np.int64)
    table = np.ascontiguousarray(np.array(index, np.int64).T)
    data = np.frombuffer(arena + bytes(64), np.uint8).copy()
    return texts.outside(groups, (numbers, forms, table, data), scope)


def _is_inside(
    groups: RunGroups, number: int, bodies: list[tuple[int, bytes]], scope: Scope
) -> bool:
    """True if all of a group may stand in a scope, as its parts say one by one."""
    run = groups.run
    begin = run.groups.item(layout.GROUP_FIRST, number) + 1
    if run.events.item(layout.EVENT_TYPE, begin) == _QUERY:
        start = run.events.item(layout.EVENT_OFFSET, begin) + HEADER_LENGTH
        body = run.data[start : run.events.item(layout.EVENT_END, begin)].tobytes()
        if not may_stand(body, scope, run.format, is_begin=True):
            return False
    inside = [one.body for one in groups.group(number).events]
    mapped = [table_name(body) for body in inside if isinstance(body, TableMapEvent)]
    return (
        groups.has(number, lay.ENDS_WITH_XID)
        and all(map(scope.includes, mapped))
        and all(
            type_code != _QUERY or may_stand(body, scope, run.format, is_begin=False)
            for type_code, body in bodies
        )
    )


def _random_body(chance: random.Random) -> bytes:
    words = chance.choices(_WORDS, k=chance.randint(0, 5))
    table, value = chance.choice(_TABLES), chance.choice(("1", "22", "'a'", "'it''s'", "NULL"))
    text = f"INSERT INTO {table} VALUES ({value})"
    kind = chance.randrange(6)
    if kind == 0:
        text = f"{chance.choice(_COMMENTS)}{text}{chance.choice(_COMMENTS)}"
    elif kind == 1:
        text = " ".join((*words[:3], text, *words[3:]))
    return _query_body(text.encode(), chance.choice((b"shop", b"shop", b"other", b"")))


def _query_body(text: bytes, database: bytes) -> bytes:
    """A QUERY of some thread and time, without status variables."""
    head = bytes((1, 2, 3, 4, 5, 0, 0, 0, len(database), 0, 0, 0, 0))
    return head + database + bytes(1) + text
