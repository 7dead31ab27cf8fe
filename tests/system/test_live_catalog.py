"""The live catalog over real servers: what it reads, when it forgets, and that it is what they have."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pymysql
import pytest

from binlane.client.needed_objects import Question, Topic
from binlane.client.questions import NotUnderstoodError
from binlane.client.settings import ServerUrl
from binlane.errors import SourceDownError, StatementError
from binlane.live.capture.settings import SourceSettings
from binlane.live.port import live_catalog
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.policy.used_objects import body_use
from binlane.statements.session.session import Session
from binlane.statements.sql.logged_statements import LoggedStatement
from binlane.statements.sql.object_store import OBJECT_KINDS
from tests.judged_statements import judging
from tests.live_catalog import (
    WAIT_S,
    all_of,
    caught_up,
    everything,
    facts_of,
    fetch,
    following,
    live,
    settings_of,
)
from tests.servers import ServerFactory, connect, execute

DDL_RUNS: Final = 60
SESSIONS: Final = 20


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server of either flavor, without the databases that are used here."""
    found: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    drop(found)
    yield found
    drop(found)


def drop(server: PrivateServer) -> None:
    execute(
        server,
        "SET foreign_key_checks = 0",
        *(f"DROP DATABASE IF EXISTS {name}" for name in ("cat_a", "cat_b", "`c'a``t.\"ü-é`")),
    )


def is_mysql(server: PrivateServer) -> bool:
    return server.url.startswith("mysql:")


def name(text: str, database: str = "cat_a") -> TableName:
    return TableName(database, text)


# What is read -------------------------------------------------------------------------------------


def test_all_that_a_statement_leads_to_is_read(server: PrivateServer) -> None:
    execute(
        server,
        "CREATE DATABASE cat_a CHARACTER SET latin1",
        "USE cat_a",
        "CREATE TABLE grand (a INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE parent (a INT PRIMARY KEY, g INT, FOREIGN KEY (g) REFERENCES grand (a))"
        " ENGINE=InnoDB",
        "CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (a) ON DELETE CASCADE)"
        " ENGINE=InnoDB",
        "CREATE TABLE noted (a INT) ENGINE=MyISAM",
        "CREATE TABLE asked (a INT) ENGINE=InnoDB",
        "CREATE TABLE aside (a INT) ENGINE=InnoDB",
        "CREATE TRIGGER two AFTER DELETE ON child FOR EACH ROW INSERT INTO noted VALUES (f())",
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE FUNCTION f() RETURNS INT RETURN (SELECT COUNT(*) FROM asked)",
        "CREATE VIEW inner_view AS SELECT a FROM parent",
        "CREATE VIEW outer_view AS SELECT a FROM inner_view",
        "CREATE PROCEDURE p() UPDATE outer_view SET a = 1",
    )

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            before = facts_of(catalog, "CALL p()", "cat_a")
            assert not catalog.covers(before, "cat_a")
            version = catalog.version
            await fetch(catalog, "CALL p()", "cat_a")
            assert catalog.covers(before, "cat_a")
            assert catalog.version is version, "what is added changes nothing that was known"
            found = catalog.catalog()
            tables = {one.table for one in found.tables}
            assert tables == {"grand", "parent", "child", "noted", "asked"}
            assert found.view(name("inner_view")) is not None
            assert found.view(name("outer_view")) is not None
            assert found.procedure(name("P")) is not None
            assert found.function(name("f")) is not None
            (trigger,) = found.triggers(name("child"))
            assert trigger.name == name("two")
            assert [key.table for key in found.children(name("parent"))] == [name("child")]
            assert found.charset_of_database("cat_a") == "latin1"
            assert found.store.tables[name("noted")].engine == "MYISAM"
            assert found.store.tables[name("child")].is_complete

    asyncio.run(run())


def test_sequences_and_merge_tables_are_followed(mariadb_server: PrivateServer) -> None:
    drop(mariadb_server)
    execute(
        mariadb_server,
        "CREATE DATABASE cat_a",
        "USE cat_a",
        "CREATE SEQUENCE s",
        "CREATE TABLE numbered (a INT DEFAULT (NEXT VALUE FOR s), b INT)",
        "CREATE TABLE m1 (a INT) ENGINE=MyISAM",
        "CREATE TABLE m2 (a INT) ENGINE=MyISAM",
        "CREATE TABLE merged (a INT) ENGINE=MERGE UNION=(m1, m2)",
    )

    async def run() -> None:
        async with live(settings_of(mariadb_server)) as catalog:
            await fetch(catalog, "INSERT INTO numbered (b) SELECT a FROM merged", "cat_a")
            found = catalog.catalog()
            assert {one.table for one in found.tables} == {"s", "numbered", "m1", "m2", "merged"}
            assert found.store.tables[name("s")].is_sequence

    asyncio.run(run())
    drop(mariadb_server)


def test_programs_are_read_in_the_sql_mode_of_their_creation(server: PrivateServer) -> None:
    modes = {
        "ANSI_QUOTES": """INSERT INTO "noted" VALUES ('x')""",
        "NO_BACKSLASH_ESCAPES": r"""INSERT INTO noted VALUES ('\')""",
        "PIPES_AS_CONCAT": """INSERT INTO noted VALUES ('a' || "'")""",
        "ANSI,NO_BACKSLASH_ESCAPES": r"""INSERT INTO "noted" VALUES ('\' || '"')""",
        "ORACLE": """INSERT INTO "noted" VALUES ('x')""",
    }
    if is_mysql(server):
        del modes["ORACLE"]
    execute(server, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.noted (a TEXT) ENGINE=InnoDB")
    for number, (mode, body) in enumerate(modes.items()):
        is_oracle = mode == "ORACLE"
        execute(
            server,
            "USE cat_a",
            "SET GLOBAL log_bin_trust_function_creators = 1",
            f"SET sql_mode = '{mode}', NAMES latin1 COLLATE latin1_german1_ci",
            f"CREATE TABLE t{number} (a INT) ENGINE=InnoDB",
            f"CREATE TRIGGER g{number} BEFORE INSERT ON t{number} FOR EACH ROW BEGIN {body}; END",
            f"CREATE PROCEDURE p{number}() {'AS' if is_oracle else ''} BEGIN {body}; END",
            f"CREATE FUNCTION f{number}() {'RETURN INT AS' if is_oracle else 'RETURNS INT'}"
            f" BEGIN {body}; RETURN 1; END",
            f"CREATE VIEW v{number} AS SELECT a, 'x' || a, SUBSTR(a, 0, 1) FROM t{number}",
        )

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            for number, mode in enumerate(modes):
                filled = f"INSERT INTO t{number} SELECT f{number}() FROM v{number}"
                await fetch(catalog, filled, "cat_a")
                await fetch(catalog, f"CALL p{number}()", "cat_a")
                found = catalog.catalog()
                (trigger,) = found.triggers(name(f"t{number}"))
                routines = found.procedure(name(f"p{number}")), found.function(name(f"f{number}"))
                for one in (trigger, *routines):
                    assert one is not None
                    assert one.context is not None
                    assert one.context.collation == "latin1_german1_ci"
                    assert set(mode.split(",")) <= set(one.context.sql_mode.split(","))
                    use = body_use(one.body, "cat_a", one.dialect)
                    assert use.is_understood
                    assert {table.name for table in use.tables} == {name("noted")}

    asyncio.run(run())


def test_a_table_whose_trigger_is_not_understood_may_be_dropped(
    mariadb_server: PrivateServer,
) -> None:
    drop(mariadb_server)
    execute(
        mariadb_server,
        "CREATE DATABASE cat_a",
        "USE cat_a",
        "CREATE TABLE t (a INT) ENGINE=InnoDB",
        "SET sql_mode = 'ORACLE'",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW"
        " BEGIN GOTO done; <<done>> :NEW.a := 1; END",
    )

    async def run() -> None:
        async with live(settings_of(mariadb_server)) as catalog:
            await fetch(catalog, "DROP TABLE t", "cat_a")
            (trigger,) = catalog.catalog().triggers(name("t"))
            assert not body_use(trigger.body, "cat_a", trigger.dialect).is_understood

    asyncio.run(run())
    drop(mariadb_server)


def test_views_that_lead_to_themselves_are_what_they_were(server: PrivateServer) -> None:
    execute(
        server,
        "CREATE DATABASE cat_a",
        "USE cat_a",
        "CREATE TABLE x (a INT) ENGINE=InnoDB",
        "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW v AS SELECT a FROM x WHERE a <> 'it''s'"
        " WITH CASCADED CHECK OPTION",
        "CREATE DEFINER=`o'd``d`@`h%` VIEW w AS SELECT a FROM v",
    )

    async def run() -> None:
        async with live(settings_of(server)) as before, live(settings_of(server)) as after:
            await fetch(before, "SELECT * FROM cat_a.w")
            known = dict(before.catalog().store.views)
            # The servers let it happen, and from then on show neither of them.
            execute(server, "RENAME TABLE cat_a.x TO cat_a.y", "RENAME TABLE cat_a.w TO cat_a.x")
            with pytest.raises(pymysql.err.OperationalError, match="view recursion"):
                execute(server, "SHOW CREATE TABLE cat_a.v")
            await fetch(after, "DROP VIEW cat_a.v, cat_a.x")
            found = after.catalog().store.views
            # MySQL's information_schema, the one that still shows it, has no ALGORITHM.
            algorithm = "MERGE" if server.program.scheme == "mariadb" else "UNDEFINED"
            assert found[name("v")] == replace(known[name("v")], algorithm=algorithm)
            assert found[name("x")].facts.tree == known[name("w")].facts.tree

    asyncio.run(run())


def test_what_is_not_there_is_known_not_to_be_until_a_ddl(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE cat_a")

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            facts = await fetch(catalog, "SELECT g(a) FROM nothing", "cat_a")
            session = Session(server=_server(catalog), objects=catalog.catalog(), database="cat_a")
            error = session.execute("INSERT INTO nothing VALUES (1)").error
            assert error is not None
            assert error.errno == 1146
            execute(server, "CREATE TABLE cat_a.nothing (a INT)")
            assert catalog.covers(facts, "cat_a"), "nobody has said that there is one"
            catalog.changed(facts_of(catalog, "CREATE TABLE nothing (a INT)", "cat_a"), "cat_a")
            assert not catalog.covers(facts, "cat_a")
            await fetch(catalog, "SELECT g(a) FROM nothing", "cat_a")
            catalog.fit(session.objects)
            assert session.execute("INSERT INTO nothing VALUES (1)").error is None

    asyncio.run(run())


def _server(catalog: LiveCatalog) -> Server:
    assert catalog.server is not None
    return catalog.server


def test_what_only_a_program_names_is_missed_and_read(server: PrivateServer) -> None:
    execute(
        server,
        "CREATE DATABASE cat_a",
        "USE cat_a",
        "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE PROCEDURE p(name VARCHAR(64)) BEGIN"
        " DECLARE CONTINUE HANDLER FOR 1146 SET @missing = 1;"
        " SET @text = CONCAT('INSERT INTO ', name, ' VALUES (1)');"
        " PREPARE s FROM @text; EXECUTE s; END",
    )

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            await fetch(catalog, "CALL p('t')", "cat_a")
            session = Session(server=_server(catalog), objects=catalog.catalog(), database="cat_a")
            session.execute("CALL p('t')")
            missed = catalog.missed(session.objects)
            assert Question(Topic.TABLE, name("t")) in missed
            assert await catalog.fetch_objects(missed)
            assert session.objects.table(name("t")) is not None, "what is added is shared"
            result = session.execute("CALL p('t')")
            assert result.binlogs["binlog"].bodies
            assert not catalog.missed(session.objects)
            session.execute("CALL p('mysql.nothing')")
            session.execute("CALL p('nothing')")
            missed = catalog.missed(session.objects)
            await catalog.fetch_objects(missed)
            session.execute("CALL p('nothing')")
            assert not catalog.missed(session.objects), "it is known not to be there"

    asyncio.run(run())


def test_ddl_of_temporary_tables_and_of_what_is_as_it_was_changes_nothing(
    server: PrivateServer,
) -> None:
    execute(server, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.t (a INT)")

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            await fetch(catalog, "INSERT INTO t SELECT * FROM mine", "cat_a")
            version = catalog.version
            for text in (
                "CREATE TEMPORARY TABLE mine (a INT)",
                "ALTER TABLE mine ADD b INT",
                "CREATE INDEX i ON mine (b)",
                "DROP TABLE mine",
                "DROP TEMPORARY TABLE IF EXISTS t",
                "CREATE TABLE IF NOT EXISTS t (b INT)",
                "TRUNCATE TABLE t",
                "ANALYZE TABLE t",
                "FLUSH TABLES",
                "SET SESSION sql_mode = ''",
            ):
                catalog.changed(facts_of(catalog, text, "cat_a"), "cat_a")
                assert catalog.version is version, text
            for text, errno in (
                ("DROP TABLE t", 1142),
                ("CREATE TABLE (", 1064),
                ("DROP DATABASE cat_a", 1044),
            ):
                catalog.changed(facts_of(catalog, text, "cat_a"), "cat_a", errno=errno)
                assert catalog.version is version, text
            for text in (
                "RENAME TABLE t TO mine, mine TO his",
                "RENAME TABLE mine TO his",
                "ALTER TABLE mine RENAME TO his",
                "CREATE TABLE mine (a INT)",
                "SET GLOBAL sql_mode = ''",
            ):
                await fetch(catalog, "INSERT INTO t SELECT * FROM mine", "cat_a")
                version = catalog.version
                catalog.changed(facts_of(catalog, text, "cat_a"), "cat_a")
                assert catalog.version is not version, text

    asyncio.run(run())


def test_a_change_that_is_heard_of_behind_its_own_session_has_made_objects_unknown(
    server: PrivateServer,
) -> None:
    execute(server, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.t (a INT)")
    text = "ALTER TABLE cat_a.t ADD b INT"
    logged = [(LoggedStatement(text=text, database="", sql_mode=0), None)]

    async def run() -> None:
        heard: asyncio.Queue[bool] = asyncio.Queue()
        async with live(settings_of(server)) as catalog:
            catalog.on_heard = lambda _, *, has_lost: heard.put_nowait(has_lost)

            async def hears(number: int) -> bool:
                catalog.logged(logged, (number,))
                return await asyncio.wait_for(heard.get(), WAIT_S)

            await hears(1)
            assert not await hears(2)
            await fetch(catalog, "INSERT INTO cat_a.t VALUES (1)")
            assert await hears(3)
            await fetch(catalog, "INSERT INTO cat_a.t VALUES (1)")
            catalog.changed(facts_of(catalog, text), "")
            assert await hears(4)
            assert not await hears(5)

    asyncio.run(run())


def test_settings_that_no_log_tells_of_are_looked_at_from_time_to_time(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_catalog, "WATCH_S", 0.05)
    execute(server, "SET GLOBAL log_bin_trust_function_creators = 0")

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            version = catalog.version
            await asyncio.sleep(0.3)
            assert catalog.version is version
            execute(server, "SET GLOBAL log_bin_trust_function_creators = 1")
            async with asyncio.timeout(30):
                while catalog.version is version:  # noqa: ASYNC110  # nobody tells
                    await asyncio.sleep(0.02)
            await fetch(catalog, "SELECT 1")
            assert catalog.catalog().settings()["log_bin_trust_function_creators"] == "ON"

    asyncio.run(run())


def test_many_sessions_ask_once(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.t (a INT)")

    def asked() -> int:
        return int(execute(server, "SHOW GLOBAL STATUS LIKE 'Com_show_create_table'")[0][1])

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            before = asked()
            facts = facts_of(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            await asyncio.gather(*(catalog.fetch(facts, "cat_a") for _ in range(SESSIONS)))
            assert catalog.covers(facts, "cat_a")
            assert asked() == before + 1

    asyncio.run(run())


def test_hostile_names(server: PrivateServer) -> None:
    database, table = "c'a`t.\"ü-é", "p/q.r ß`'\"\\漢"
    child, trigger, routine = "c#x@y.%_", "t'r`i.g", "f`u'n.c"

    def q(text: str) -> str:
        return "`" + text.replace("`", "``") + "`"

    execute(
        server,
        f"CREATE DATABASE {q(database)}",
        f"USE {q(database)}",
        "SET GLOBAL log_bin_trust_function_creators = 1",
        f"CREATE TABLE {q(table)} (a INT PRIMARY KEY) ENGINE=InnoDB",
        f"CREATE TABLE {q(child)} (`x``'` INT, FOREIGN KEY (`x``'`) REFERENCES {q(table)} (a)"
        " ON DELETE CASCADE) ENGINE=InnoDB",
        f"CREATE FUNCTION {q(routine)}() RETURNS INT RETURN 1",
        f"CREATE TRIGGER {q(trigger)} BEFORE INSERT ON {q(table)} FOR EACH ROW"
        f" SET NEW.a = {q(routine)}()",
    )

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            await fetch(catalog, f"DELETE FROM {TableName(database, table)}")
            found = catalog.catalog()
            assert {one.table for one in found.tables} == {table, child}
            assert [one.name.table for one in found.triggers(TableName(database, table))] == [
                trigger
            ]
            assert found.function(TableName(database, routine)) is not None
            assert found.children(TableName(database, table))

    asyncio.run(run())


# Sessions -----------------------------------------------------------------------------------------


def test_sessions_share_what_is_known_and_keep_what_is_theirs(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.t (a INT)")

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            await fetch(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            one, two = catalog.catalog(), catalog.catalog()
            assert one.version is two.version is catalog.version
            one.apply("CREATE TEMPORARY TABLE mine (a INT)", database="cat_a")
            assert two.table(name("mine")) is None
            assert one.version is not two.version
            catalog.fit(one)
            kept = one.version
            assert one.table(name("mine")) is not None
            catalog.fit(one)
            assert one.version is kept, "nothing changed"
            # What one does in the model alone nobody else sees, and `fit` takes it back.
            one.apply("DROP TABLE t", database="cat_a")
            assert two.table(name("t")) is not None
            assert catalog.catalog().table(name("t")) is not None
            catalog.fit(one)
            assert one.table(name("t")) is not None
            # What others have stays as it is until they fit.
            catalog.changed(facts_of(catalog, "DROP TABLE t", "cat_a"), "cat_a")
            assert two.table(name("t")) is not None
            assert two.version is not catalog.version
            one.apply("DROP TEMPORARY TABLE mine", database="cat_a")
            for each in (one, two):
                catalog.fit(each)
                assert each.version is catalog.version
                assert each.table(name("t")) is None

    asyncio.run(run())


def test_ddl_that_only_the_model_did_stays_with_what_is_read_for_its_packet(
    server: PrivateServer,
) -> None:
    execute(
        server,
        "CREATE DATABASE cat_a",
        "CREATE TABLE cat_a.old (a INT)",
        "CREATE TABLE cat_a.later (a INT)",
    )

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            await fetch(catalog, "INSERT INTO old SELECT * FROM made", "cat_a")
            session = Session(server=_server(catalog), objects=catalog.catalog(), database="cat_a")
            before = session.snapshot()
            assert session.execute("CREATE TABLE made (a INT)").error is None
            assert session.execute("DROP TABLE old").error is None
            facts = facts_of(catalog, "INSERT INTO made SELECT * FROM later", "cat_a")
            asked = await catalog.fetch(facts, "cat_a")
            assert Question(Topic.TABLE, name("later")) in asked
            catalog.extend(session.objects, asked)
            assert session.execute("INSERT INTO made SELECT * FROM later").error is None
            assert session.objects.table(name("old")) is None
            session.restore(before)
            assert {one.table for one in session.objects.tables} == {"old", "later"}
            assert {one.table for one in catalog.catalog().tables} == {"old", "later"}

    asyncio.run(run())


# What goes wrong ----------------------------------------------------------------------------------


def test_a_table_that_is_locked_is_not_waited_for_long(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE cat_a")

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            facts = facts_of(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            with connect(server) as making:
                thread = threading.Thread(target=make_slowly, args=(making,))
                thread.start()
                await asyncio.sleep(0.5)
                begun_s = time.monotonic()
                with pytest.raises(StatementError, match="does not tell") as raised:
                    await catalog.fetch(facts, "cat_a")
                assert raised.value.errno == 1205
                assert time.monotonic() - begun_s < 5
                assert not catalog.covers(facts, "cat_a")
                await asyncio.to_thread(thread.join)
            await fetch(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            assert catalog.catalog().table(name("t")) is not None

    asyncio.run(run())


def make_slowly(session: pymysql.connections.Connection[pymysql.cursors.Cursor]) -> None:
    with session.cursor() as cursor:
        cursor.execute("CREATE TABLE cat_a.t AS SELECT SLEEP(6) AS a")


def test_nobody_waits_for_an_answer_when_it_ends(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE cat_a")

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            facts = facts_of(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            with connect(server) as making:
                thread = threading.Thread(target=make_slowly, args=(making,))
                thread.start()
                await asyncio.sleep(0.5)
                asking = asyncio.create_task(catalog.fetch(facts, "cat_a"))
                await asyncio.sleep(0.3)
                begun_s = time.monotonic()
                await catalog.stop()
                with pytest.raises((StatementError, asyncio.CancelledError)):
                    await asking
                # Behind it nobody asks.
                await asyncio.to_thread(catalog._threads.shutdown)
                assert time.monotonic() - begun_s < 1
                await asyncio.to_thread(thread.join)

    asyncio.run(run())


def test_what_is_not_understood_is_asked_once(server: PrivateServer) -> None:
    execute(
        server,
        "CREATE DATABASE cat_a",
        "CREATE EVENT cat_a.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "CREATE TABLE cat_a.u (a INT)",
    )

    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            question = Question(Topic.EVENT, name("e"))
            await catalog.fetch_objects([Question(Topic.TABLE, name("u"))])
            facts = facts_of(catalog, "ALTER EVENT e ENABLE", "cat_a")
            known = catalog.known
            assert known is not None
            known.fail(question, NotUnderstoodError("the source says strange things"))
            for _ in range(2):
                with pytest.raises(StatementError, match="strange things"):
                    await catalog.fetch(facts, "cat_a")
                assert not catalog.covers(facts, "cat_a")
            catalog.changed(facts, "cat_a")
            await fetch(catalog, "ALTER EVENT e ENABLE", "cat_a")

    asyncio.run(run())


def test_an_account_that_sees_not_all_is_told_what_it_lacks(server: PrivateServer) -> None:
    execute(
        server,
        "CREATE DATABASE cat_a",
        "CREATE TABLE cat_a.t (a INT)",
        "CREATE EVENT cat_a.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "DROP USER IF EXISTS seer@'%'",
        "CREATE USER seer@'%' IDENTIFIED BY 'secret'",
        "GRANT SELECT, SHOW VIEW ON *.* TO seer@'%'",
        "GRANT TRIGGER ON cat_a.* TO seer@'%'",
    )

    async def run() -> None:
        async with live(settings_of(server, user="seer", password="secret")) as catalog:
            facts = facts_of(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            with pytest.raises(StatementError, match="may not see all objects") as raised:
                await catalog.fetch(facts, "cat_a")
            assert raised.value.hint == "GRANT TRIGGER ON *.* TO 'seer'@'%'"
            assert not catalog.covers(facts, "cat_a")
            execute(server, "GRANT TRIGGER ON *.* TO seer@'%'")
            await fetch(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            await fetch(catalog, "DROP EVENT e", "cat_a")
            assert catalog.catalog().event(name("e")) is not is_mysql(server)

    asyncio.run(run())
    execute(server, "DROP USER seer@'%'")


def test_a_source_that_is_down_is_told_and_found_again(servers: ServerFactory) -> None:
    source = servers.start("down")
    execute(source, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.t (a INT)")

    async def run() -> None:
        async with live(settings_of(source)) as catalog:
            facts = await fetch(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            other = facts_of(catalog, "INSERT INTO u VALUES (1)", "cat_a")
            source.kill()
            begun_s = time.monotonic()
            for _ in range(3):
                with pytest.raises(StatementError, match="source"):
                    await catalog.fetch(other, "cat_a")
            assert time.monotonic() - begun_s < 10
            source.restart()
            deadline_s = time.monotonic() + 60
            while not catalog.covers(other, "cat_a"):
                assert time.monotonic() < deadline_s
                with suppress(StatementError):
                    await catalog.fetch(other, "cat_a")
                await asyncio.sleep(0.05)
            # Which server it is now, and what happened to it meanwhile, nobody knew.
            assert not catalog.covers(facts, "cat_a")
            await fetch(catalog, "INSERT INTO t VALUES (1)", "cat_a")

    asyncio.run(run())


def test_a_source_that_was_lost_is_reached_again_by_who_begins(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE cat_a", "CREATE TABLE cat_a.t (a INT)")

    async def lose(catalog: LiveCatalog) -> None:
        catalog.source_changed()
        await asyncio.sleep(0)
        assert not catalog.is_reached

    with judging(server) as (port, parts):
        for _ in range(2):
            with port.connect(database="cat_a") as client, client.cursor() as cursor:
                cursor.execute("INSERT INTO t VALUES (1)")
                port.run(lose(parts.catalog))
                cursor.execute("INSERT INTO t VALUES (1)")
                port.run(lose(parts.catalog))


def test_a_catalog_of_a_source_that_was_never_reached_knows_nothing() -> None:
    settings = SourceSettings(url=ServerUrl.parse("mariadb://root@127.0.0.1:1"))

    async def run() -> None:
        async with live(settings) as catalog:
            facts = facts_of(catalog, "INSERT INTO t VALUES (1)", "cat_a")
            assert not catalog.covers(facts, "cat_a")
            with pytest.raises(StatementError, match="cannot be reached") as raised:
                await catalog.fetch(facts, "cat_a")
            assert raised.value.hint
            with pytest.raises(StatementError):
                catalog.catalog()
            # As a server that goes down: replicas come again.
            with pytest.raises(SourceDownError):
                await catalog.begun()

    asyncio.run(run())


# It is what the servers have ----------------------------------------------------------------------

DATABASES: Final = ("cat_a", "cat_b")
NAMES: Final = tuple("tuvwxy")


def ddl(chance: random.Random, *, mysql: bool) -> str:
    """Any DDL over a few names, which may fail."""
    one, two = (f"{chance.choice(DATABASES)}.{chance.choice(NAMES)}" for _ in range(2))
    third = f"{chance.choice(DATABASES)}.{chance.choice(NAMES)}"
    database = chance.choice(DATABASES)
    column = chance.choice("abcd")
    engine = chance.choice(("InnoDB", "InnoDB", "MyISAM"))
    texts = [
        f"CREATE TABLE {one} (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE={engine}",
        f"CREATE TABLE {one} (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=InnoDB",
        f"CREATE TABLE IF NOT EXISTS {one} (a INT PRIMARY KEY, z INT) ENGINE={engine}",
        f"CREATE TABLE {one} LIKE {two}",
        f"CREATE TABLE {one} (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES {two} (a))",
        f"ALTER TABLE {one} ADD COLUMN {column} INT",
        f"ALTER TABLE {one} DROP COLUMN {column}",
        f"ALTER TABLE {one} CHANGE COLUMN a {column} BIGINT",
        f"ALTER TABLE {one} ENGINE={engine}",
        f"ALTER TABLE {one} RENAME TO {two}",
        f"RENAME TABLE {one} TO {two}",
        f"RENAME TABLE {one} TO cat_a.tmp, {two} TO {one}, cat_a.tmp TO {two}",
        f"DROP TABLE {one}, {two}",
        f"DROP TABLE IF EXISTS {one}",
        f"TRUNCATE TABLE {one}",
        f"CREATE INDEX i ON {one} (b)",
        f"DROP INDEX i ON {one}",
        f"CREATE VIEW {one} AS SELECT a FROM {two}",
        f"CREATE OR REPLACE VIEW {one} AS SELECT 1 AS a FROM {two}",
        f"DROP VIEW {one}",
        f"DROP VIEW IF EXISTS {one}, {two}",
        f"CREATE TRIGGER {one} BEFORE INSERT ON {two} FOR EACH ROW SET @x = 1",
        f"CREATE TRIGGER {one} AFTER DELETE ON {two} FOR EACH ROW DELETE FROM {third}",
        f"DROP TRIGGER {one}",
        f"CREATE FUNCTION {one}() RETURNS INT RETURN (SELECT COUNT(*) FROM {two})",
        f"CREATE PROCEDURE {one}() INSERT INTO {two} (a) VALUES (1)",
        f"CREATE PROCEDURE {one}() DROP TABLE {two}",
        f"CALL {one}()",
        f"DROP FUNCTION {one}",
        f"DROP PROCEDURE IF EXISTS {one}",
        f"ALTER PROCEDURE {one} SQL SECURITY INVOKER",
        f"ALTER DATABASE {database} CHARACTER SET {chance.choice(('latin1', 'utf8mb4'))}",
        f"CREATE USER IF NOT EXISTS {one.replace('.', '_')}@'%'",
        f"GRANT SELECT ON {one} TO {two.replace('.', '_')}@'%'",
        f"REVOKE SELECT ON {one} FROM {two.replace('.', '_')}@'%'",
        f"GRANT EXECUTE ON PROCEDURE {one} TO {two.replace('.', '_')}@'%'",
        f"CREATE DEFINER={two.replace('.', '_')}@'%' PROCEDURE {one}() DELETE FROM {third}",
        f"CREATE ROLE IF NOT EXISTS {column}_role",
        f"GRANT {column}_role TO {two.replace('.', '_')}@'%'",
        f"GRANT SELECT ON {one} TO {column}_role",
        f"DROP ROLE {column}_role",
        f"RENAME USER {one.replace('.', '_')}@'%' TO {two.replace('.', '_')}@'%'",
        f"DROP USER {one.replace('.', '_')}@'%'",
        f"CREATE EVENT {one} ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        f"DROP EVENT {one}",
    ]
    if chance.random() < 0.04:
        texts = [f"DROP DATABASE {database}"]
    elif chance.random() < 0.1:
        texts = [f"CREATE DATABASE {database}"]
    if mysql:
        # MariaDB 10.11 ends with signal 11 where others rename or drop the table at the same time.
        texts.append(
            f"ALTER TABLE {one} ADD FOREIGN KEY (b) REFERENCES {two} (a) ON DELETE SET NULL"
        )
    else:
        texts += [
            f"CREATE OR REPLACE TABLE {one} (a INT PRIMARY KEY, q INT) ENGINE={engine}",
            f"CREATE SEQUENCE {one}",
            f"DROP SEQUENCE IF EXISTS {one}",
            f"CREATE OR REPLACE TRIGGER {one} AFTER UPDATE ON {two} FOR EACH ROW SET @y = 1",
            f"CREATE TABLE {one} SELECT a FROM {two}",
            f"BEGIN NOT ATOMIC CREATE TABLE {one} (z INT); DROP TABLE {two}; END",
        ]
    return chance.choice(texts)


@pytest.mark.parametrize("by", ["port", "log"])
def test_it_follows_random_ddl(server: PrivateServer, tmp_path: Path, by: str) -> None:
    execute(
        server,
        "SET GLOBAL log_bin_trust_function_creators = 1",
        *(f"CREATE DATABASE {database}" for database in DATABASES),
    )
    seed = random.randrange(1 << 30)
    questions = everything(DATABASES, NAMES)

    async def run() -> None:
        async with live(settings_of(server), connections=3) as catalog:
            loop = asyncio.get_running_loop()
            tells = partial(tell, loop, catalog) if by == "port" else None
            follow = following(server, catalog, tmp_path) if by == "log" else nullcontext()
            with follow as capture:
                for round_ in range(3):
                    workers = [
                        asyncio.to_thread(change, server, tells, f"{seed}{round_}{number}")
                        for number in range(3)
                    ]
                    readers = [
                        read_all_the_time(catalog, f"{seed}{round_}r{number}")
                        for number in range(SESSIONS)
                    ]
                    reading = asyncio.gather(*readers)
                    await asyncio.gather(*workers)
                    reading.cancel()
                    with suppress(asyncio.CancelledError):
                        await reading
                    if capture is not None:
                        await caught_up(server, capture)
                    await compare(server, catalog, questions)

    try:
        asyncio.run(run())
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    finally:
        for user in {f"{database}_{one}" for database in DATABASES for one in NAMES}:
            execute(server, f"DROP USER IF EXISTS {user}@'%'")
        for role in "abcd":
            execute(server, f"DROP ROLE IF EXISTS {role}_role")


def change(server: PrivateServer, tells: Callable[[str], None] | None, seed: str) -> None:
    """Run DDL, and tell of it as the port does, whether it failed or not."""
    chance = random.Random(seed)
    with connect(server) as session, session.cursor() as cursor:
        if chance.random() < 0.3:
            cursor.execute("SET foreign_key_checks = 0")
        cursor.execute("SET lock_wait_timeout = 5")
        for _ in range(DDL_RUNS):
            text = ddl(chance, mysql=is_mysql(server))
            with suppress(pymysql.MySQLError):
                cursor.execute(text)
            if tells is not None:
                tells(text)


def tell(loop: asyncio.AbstractEventLoop, catalog: LiveCatalog, text: str) -> None:
    """Tell a catalog of DDL from another thread, and wait until it knows."""

    async def changed() -> None:
        catalog.changed(facts_of(catalog, text), "")

    asyncio.run_coroutine_threadsafe(changed(), loop).result(60)


async def read_all_the_time(catalog: LiveCatalog, seed: str) -> None:
    """What a session does that reads and writes."""
    chance = random.Random(seed)
    session = catalog.catalog()
    while True:
        table = f"{chance.choice(DATABASES)}.{chance.choice(NAMES)}"
        facts = facts_of(catalog, f"INSERT INTO {table} VALUES ({table}())")
        if not catalog.covers(facts, ""):
            with suppress(StatementError):
                await catalog.fetch(facts, "")
        catalog.fit(session)
        await asyncio.sleep(0)


async def compare(server: PrivateServer, catalog: LiveCatalog, questions: list[Question]) -> None:
    """What is known equals what one finds who reads it all now."""
    known = await all_of(catalog, questions)
    async with live(settings_of(server)) as fresh:
        expected = await all_of(fresh, questions)
    for kind in OBJECT_KINDS:
        mine, theirs = getattr(known, kind), getattr(expected, kind)
        if kind != "events":
            assert mine == theirs, kind
    assert known.databases == expected.databases


def test_names_without_case(servers: ServerFactory) -> None:
    source = servers.start("lower", (*SOURCE_OPTIONS, "--lower-case-table-names=1"))
    execute(
        source,
        "CREATE DATABASE Cat_A",
        "USE CAT_a",
        "CREATE TABLE Parent (a INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE CHILD (a INT, FOREIGN KEY (a) REFERENCES pArent (a)) ENGINE=InnoDB",
        "CREATE TRIGGER Trg BEFORE INSERT ON CHILD FOR EACH ROW SET @a = 1",
    )

    async def run() -> None:
        async with live(settings_of(source)) as catalog:
            facts = await fetch(catalog, "INSERT INTO cAt_A.ChilD VALUES (1)")
            found = catalog.catalog()
            assert set(found.tables) == {name("parent"), name("child")}
            assert len(found.triggers(name("child"))) == 1
            catalog.changed(facts_of(catalog, "DROP TRIGGER TRG", "CAT_A"), "CAT_A")
            assert not catalog.covers(facts, "")
            await fetch(catalog, "INSERT INTO cAt_A.ChilD VALUES (1)")
            catalog.changed(facts_of(catalog, "ALTER TABLE PARENT ADD b INT", "CAT_A"), "CAT_A")
            assert not catalog.covers(facts, "")

    asyncio.run(run())
