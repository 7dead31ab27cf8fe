"""Logs of statements: what is judged once for all of a shape is what the reference makes of each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.query import QueryEvent, compressed_query
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.placing import place, place_group
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import is_compiled
from tests.fixture_sets import fixture_set
from tests.routed_files import outputs, routed

_SCOPES = ("LOG ALL", "LOG(shop)", "LOG(crm)", "IGNORE(shop.ai)", "LOG(shop.ai, crm.t)")
_TEXTS = (
    *("INSERT INTO ai(v) VALUES({})", "INSERT INTO shop.ai2(v) VALUES({}), ({})"),
    *("insert into crm.t values ({}, {})", "UPDATE ai SET v = {} WHERE id = {} LIMIT 1"),
    *("UPDATE crm.t, ai SET t.a = {}, ai.v = {}", "DELETE FROM ai WHERE id = {} OR v = {}"),
    *(
        "DELETE a FROM shop.ai a JOIN crm.t ON t.id = a.id WHERE a.v = {}",
        "REPLACE INTO `t` SET a={}",
    ),
    *("INSERT INTO ai(v) SELECT a FROM crm.t WHERE a = {}", "INSERT INTO ai(v) VALUES(crm.f({}))"),
    *("INSERT /* it's crm's */ INTO ai(v) VALUES({})", "INSERT INTO ai(v) VALUES({}) -- crm.t"),
    *('INSERT INTO "ai"("v") VALUES({})', "INSERT INTO ai(v) VALUES(RAND()*{})", "UPDATE ai SET"),
    *(
        "INSERT INTO äi(v) VALUES({})",
        "DELETE FROM fresh WHERE a = {}",
        "INSERT INTO fresh VALUES ({})",
    ),
    *(
        "SAVEPOINT `s{}`",
        "SAVEPOINT `S{}`",
        "ROLLBACK TO `s{}`",
        "ROLLBACK TO `{}é`",
        "DROP TABLE IF EXISTS crm.old{}",
        "REVOKE SELECT ON crm.t FROM u",
    ),
    *("CREATE TABLE fresh (a INT, b INT DEFAULT {})", "RENAME TABLE fresh TO crm.fresh"),
    *("CREATE TABLE crm.fresh (a INT)", "RENAME TABLE crm.fresh TO shop.fresh", "DROP TABLE fresh"),
    "ALTER TABLE ai ADD FOREIGN KEY (id) REFERENCES crm.t (id) ON DELETE CASCADE",
)
_DDL = ("DROP", "REVOKE", "CREATE", "RENAME", "ALTER")
_CONTROL = ("SAVEPOINT", "ROLLBACK")
_LITERALS = (
    "1",
    "2.5",
    "'a'",
    "'it''s'",
    "'x -- y'",
    "'\\\\'",
    "'\\''",
    "NULL",
    "x'41'",
    "'é'",
    '"q"',
)
_VARIABLES = (EventType.INTVAR, EventType.RAND, EventType.USER_VAR)

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def _groups(name: str) -> Iterator[EventGroup]:
    for file, data in fixture_set(name).binlogs:
        yield from group_events(walk([data], file=file), file=file)


class _Log:
    """A log whose statements are others than those of a recorded one."""

    def __init__(self, name: str, seed: int) -> None:
        groups = list(_groups(name))
        self._first = groups[0].events[0]
        self._chance = random.Random(seed)
        self._numbers = 0
        complete = [group for group in groups if not group.is_control and group.is_complete]
        events = [event for group in complete for event in group.events]
        self._gtid = next(e for g in complete for e in g.events[:1] if len(g.events) > 2)
        self._lone = next(e for g in complete for e in g.events[:1] if len(g.events) == 2)
        self._queries = [
            e
            for e in events
            if isinstance(e.body, QueryEvent) and e.body.query.startswith(b"INSERT")
        ]
        self._variables = [e for e in events if e.header.type_code in _VARIABLES]
        self._begin = [
            e for e in events if isinstance(e.body, QueryEvent) and e.body.query == b"BEGIN"
        ]
        self._packs = name.startswith("md")
        self._ends = [e for e in events if e.header.type_code == EventType.XID]

    def written(self, count: int) -> bytes:
        body = self._first.body
        assert isinstance(body, FormatDescriptionEvent)
        out = bytearray(MAGIC) + place(self._first, len(MAGIC), body.format)
        for _ in range(count):
            out += place_group(tuple(self._group()), len(out), body.format)
        return bytes(out)

    def _group(self) -> Iterator[Event]:
        texts = [self._text() for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        is_lone = texts[0].startswith(_DDL)
        yield self._numbered(self._lone if is_lone else self._gtid)
        if is_lone:
            yield self._query(texts[0])
            return
        yield from self._begin[:1]
        for text in texts:
            if text.startswith(_DDL):
                continue
            if self._variables and not text.startswith(_CONTROL):
                yield from self._chance.sample(self._variables, self._chance.choice((0, 0, 1, 2)))
            yield self._query(text)
        yield self._chance.choice(self._ends)

    def _text(self) -> str:
        # What is remembered changes with DDL, and verdicts with it.
        is_ddl = self._chance.random() < 0.02
        text = self._chance.choice([one for one in _TEXTS if one.startswith(_DDL) == is_ddl])
        literals = [self._chance.choice(_LITERALS) for _ in range(text.count("{}"))]
        if text.startswith((*_DDL, *_CONTROL)):
            literals = [str(self._chance.randrange(3)) for _ in literals]
        return text.format(*literals)

    def _query(self, text: str) -> Event:
        event = self._chance.choice(self._queries)
        body = event.body
        assert isinstance(body, QueryEvent)
        database = self._chance.choice((b"shop", b"shop", b"shop", b"crm", b""))
        made = replace(body, query=text.encode(), database=database)
        if not self._packs or self._chance.random() < 0.5:
            return replace(event, body=made)
        header = replace(event.header, type_code=EventType.QUERY_COMPRESSED)
        return replace(event, header=header, body=compressed_query(made))

    def _numbered(self, event: Event) -> Event:
        self._numbers += 1
        body = event.body
        if isinstance(body, GtidEvent):
            return replace(event, body=replace(body, sequence=self._numbers))
        return event


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["md1011_format_statement", "my97_format_statement"])
def test_both_paths_make_the_same_of_statements(name: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(_Log(name, seed).written(120))
    fields: tuple[dict[str, Any], ...] = ({"uses_kernels": False}, {}, {"window_bytes": 4096})
    made = []
    for number, each in enumerate(fields):
        out = tmp_path / f"{number}"
        report = routed((str(path),), out, *_SCOPES, max_binlog_size=16384, **each)
        made.append((outputs(out), report.counts))
    assert made[1] == made[0]
    assert made[2] == made[0]
