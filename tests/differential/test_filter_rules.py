"""The order of rules by databases and tables is that of a MariaDB replica's own filters."""

from __future__ import annotations

import random
import time

import pytest

from binlane.binlogs.filters.terms import parse_terms
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.names import TableName
from tests.servers import ServerFactory, execute

# Names that differ in case alone are one to a replica's filters, and two tables to ours.
DATABASES = ("shop", "crm", "s_op", "staff")
NAMES = ("a", "B", "ab", "a_b", "a%b", "b.c")
TABLES = [TableName(database, name) for database in DATABASES for name in NAMES]
PATTERNS = (
    *("shop.%", "shop.B", "s_op.%", r"s\_op.%", "%.a", "%.a_", r"shop.a\_b", r"shop.a\%b"),
    *("sh%", "crm._", "%p.a%", "shop.b.c", "c%", "%.%"),
)
OPTIONS = {
    "do_db": "replicate_do_db",
    "ignore_db": "replicate_ignore_db",
    "do_table": "replicate_do_table",
    "ignore_table": "replicate_ignore_table",
    "wild_do_table": "replicate_wild_do_table",
    "wild_ignore_table": "replicate_wild_ignore_table",
}
ROUNDS = 40
_WAIT_S = 30


def rules(chance: random.Random) -> dict[str, list[str]]:
    """Some rules of some kinds, as a user writes them."""
    found: dict[str, list[str]] = {}
    for option in OPTIONS:
        if chance.random() < 0.6:
            continue
        if option.endswith("db"):
            found[option] = chance.sample(DATABASES, chance.choice((1, 2)))
        elif option.startswith("wild"):
            found[option] = [text for text in chance.sample(PATTERNS, 2) if "." in text]
        else:
            found[option] = [table.plain for table in chance.sample(TABLES, 3)]
    return found


def wanted(given: dict[str, list[str]]) -> set[TableName]:
    """The tables that our rules include; a name is quoted where a dot is in it."""
    ours = {
        option: [f"`{name.replace('.', '`.`', 1)}`" for name in names]
        if option in {"do_table", "ignore_table"}
        else names
        for option, names in given.items()
    }
    found = parse_terms(ours).rules
    return {table for table in TABLES if found.includes(table)}


def catch_up(source: PrivateServer, replica: PrivateServer) -> None:
    ((position,),) = execute(source, "SELECT @@gtid_binlog_pos")
    ((state,),) = execute(replica, f"SELECT MASTER_GTID_WAIT('{position}', {_WAIT_S})")
    assert state == 0


def replicated(
    source: PrivateServer, replica: PrivateServer, given: dict[str, list[str]], number: int
) -> set[TableName]:
    """The tables that get a row on a replica with such filters."""
    execute(replica, "STOP SLAVE")
    for option, variable in OPTIONS.items():
        value = ",".join(given.get(option, ()))
        execute(replica, f"SET GLOBAL {variable} = '{value.replace(chr(92), chr(92) * 2)}'")
    execute(replica, "START SLAVE")
    execute(source, *(f"INSERT INTO {table} VALUES ({number})" for table in TABLES))
    catch_up(source, replica)
    return {
        table
        for table in TABLES
        if execute(replica, f"SELECT COUNT(*) FROM {table} WHERE a = {number}")[0][0]
    }


@pytest.mark.slow
def test_tables_are_chosen_as_a_replica_chooses_them(servers: ServerFactory) -> None:
    source = servers.start("source")
    replica = servers.start("replica", (*SOURCE_OPTIONS, "--server-id=2"))
    execute(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, MASTER_USER='root', "
        "MASTER_USE_GTID=slave_pos",
        "START SLAVE",
    )
    made = [f"CREATE DATABASE {database}" for database in DATABASES]
    made += [f"CREATE TABLE {table} (a INT)" for table in TABLES]
    execute(source, *made)
    catch_up(source, replica)
    chance, start = random.Random(3), time.monotonic()
    for number in range(ROUNDS):
        given = rules(chance)
        assert replicated(source, replica, given, number) == wanted(given), given
        assert time.monotonic() - start < 300
