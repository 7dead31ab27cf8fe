"""Programs whose way hangs on data, on real servers with such and other data: all is foreseen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.servers import LoggingFormat
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.servers import mariadb, mysql
from tests.differential.logging.sessions import CONFIGURATION, VERSIONS
from tests.logged_events import are_equal, comparable

SCHEMA: Final = (
    "create database d",
    "use d",
    "create table data (a int) engine=InnoDB",
    "create table t (a int primary key, b varchar(50)) engine=InnoDB",
    "create table u (a int, b varchar(50)) engine=InnoDB",
    "create table m (a int, b varchar(50)) engine=MyISAM",
)
NONE: Final = "do 0"
ONE: Final = "insert into data values (1)"
FIVE: Final = "insert into data values (5)"
THREE: Final = "insert into data values (1), (5), (9)"
UNSAFE: Final = "insert into u values (1, uuid())"


class Case(NamedTuple):
    """A program, and what starts it."""

    name: str
    program: str
    call: str = "call p()"


_CURSOR: Final = (
    "create procedure p() begin declare x int; declare done int default 0;"
    " declare c cursor for select a from data order by a;"
    " declare continue handler for not found set done = 1; open c;"
    " l: loop fetch c into x; if done then leave l; end if;"
    " if x > 4 then {big}; else {small}; end if; end loop; close c; end"
)
CASES: Final = (
    Case(
        "guard",
        "create procedure p() q: begin if (select count(*) from data) = 0 then leave q; end if;"
        " update t set b = uuid() limit 1; end",
    ),
    Case(
        "signal",
        "create procedure p() begin if (select count(*) from data) = 1 then"
        f" signal sqlstate '45000'; end if; {UNSAFE}; end",
    ),
    Case(
        "case",
        "create procedure p() case (select count(*) from data) when 0 then insert into u values"
        f" (0, 'x'); when 1 then {UNSAFE}; else insert into m values (connection_id(), 'm'); end case",
    ),
    Case(
        "case not found",
        f"create procedure p() case (select count(*) from data) when 1 then {UNSAFE}; end case",
    ),
    Case(
        "while",
        "create procedure p() begin declare i int default 0; while i < (select count(*) from data)"
        f" do set i = i + 1; if i = 3 then {UNSAFE}; end if; end while; end",
    ),
    Case("cursor", _CURSOR.format(big=UNSAFE, small="insert into u values (x, 'small')")),
    Case("cursor of engines", _CURSOR.format(big="insert into m values (x, 'm')", small=UNSAFE)),
    Case(
        "select into",
        "create procedure p() begin declare x int; declare exit handler for not found"
        f" begin {UNSAFE}; end; select a into x from data where a = 5; insert into m values (x, 'm'); end",
    ),
    Case(
        "transaction",
        "create procedure p() begin start transaction; insert into t values (77, 'x');"
        " if (select count(*) from data) = 1 then rollback; else commit; end if;"
        " insert into u values (2, user()); end",
    ),
    Case(
        "trigger",
        "create trigger g before insert on t for each row if (select count(*) from data) > new.a"
        " then insert into u values (new.a, 'x'); else insert into m values (new.a, uuid()); end if",
        "insert into t values (2, 'x')",
    ),
    Case(
        "trigger of rows",
        "create trigger g before insert on t for each row if new.a > 4"
        " then insert into u values (new.a, 'x'); end if",
        "insert into t select a, 'x' from data",
    ),
    Case(
        "function",
        "create function f(x int) returns int begin if x > 4 then insert into u values (x, 'x');"
        " end if; return x; end",
        "select f(a) from data",
    ),
    Case(
        "prepared",
        "create procedure p() begin set @s = if((select count(*) from data) = 1,"
        " 'update t set b = uuid() limit 1', 'insert into m values (1, user())');"
        " prepare q from @s; execute q; deallocate prepare q; end",
    ),
    Case(
        "prepared from a query",
        "create procedure p() begin select if(count(*) > 1, 'do 0', 'insert into u values (1, uuid())')"
        " into @s from data; prepare q from @s; execute q; deallocate prepare q; end",
    ),
    Case(
        "rows of a query",
        "create trigger g before insert on t for each row if new.a > 4"
        " then insert into u values (new.a, uuid()); else set new.b = 'small'; end if",
        "insert into t select a, 'x' from data order by a",
    ),
    Case(
        "function's value",
        "create procedure p() begin if (select max(a) from data) > 4 then"
        f" {UNSAFE}; end if; insert into u values (3, 'x'); end",
    ),
)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def recorder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    with ExitStack() as stack:
        start = {"mariadb": mariadb, "mysql": mysql}[request.param]
        made = Recorder(stack.enter_context(start(tmp_path_factory.mktemp("ways"))))
        stack.callback(made.close)
        yield made


@pytest.mark.parametrize("mode", ["statement", "mixed", "row"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_whatever_the_data_is_it_was_foreseen(recorder: Recorder, case: Case, mode: str) -> None:
    flavor = recorder.server.flavor
    catalog = SchemaCatalog(Flavor(flavor))
    schema = ";\n".join(SCHEMA)
    catalog.load(f"{CONFIGURATION[flavor]}{schema};\ndelimiter //\n{case.program}//\n")
    session = Session(
        server=Server.parse(VERSIONS[flavor]),
        objects=catalog,
        database="d",
        errors=PredictedErrors(),
    )
    session.execute(f"set session binlog_format = {mode}")
    foreseen = session.execute(case.call)
    binlog = foreseen.binlogs["binlog"]
    seen = []
    for data in (NONE, ONE, FIVE, THREE):
        recorder.reset((*SCHEMA, "insert into t values (100, 'x')", data, case.program))
        *_, done, _ = recorder.run([f"set session binlog_format = {mode}", case.call])
        seen.append(comparable(done.events))
        assert set(done.reasons) <= {note.reason for note in foreseen.notes}, data
        if done.error is None:
            assert foreseen.error is None or foreseen.error.on_some_ways, data
            certain = {note.reason for note in foreseen.notes if not note.on_some_ways}
            assert certain <= set(done.reasons), data
        else:
            assert foreseen.error is not None, data
            assert foreseen.error.errno == done.error, data
        if any("rows" in event.type for event in done.events):
            assert binlog.logged_as is LoggingFormat.ROW, data
        elif any("; insert" in event.info or "; update" in event.info for event in done.events):
            assert binlog.logged_as is not None, data
    assert any(are_equal(events, comparable(binlog.events)) for events in seen)
