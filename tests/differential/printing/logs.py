"""Fresh binlogs of a real server: random sessions of every kind that logs events of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from random import Random
from typing import Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from tests.differential.logging.generator import Generator, schema
from tests.differential.logging.recorder import has_next
from tests.differential.logging.servers import LoggingServer

_OBJECTS: Final = (
    "create database if not exists `o d`",
    "create database if not exists e",
    (
        "create table e.types(id int auto_increment primary key, ti tinyint unsigned, si smallint,"
        " mi mediumint, bi bigint unsigned, f float, db double, de decimal(20,6), bt bit(11),"
        " y year, da date, tm time(3), dt datetime(6), ts timestamp(2) null, c char(9),"
        " vc varchar(300) character set utf8mb4, vb varbinary(90), tx text, bl mediumblob,"
        " en enum('a','b''c','é'), se set('x','y','z'))"
    ),
    "create table `o d`.`t``b`(`a b` int, `c'd` varchar(50), unique key(`a b`))",
    "create table e.am(id int auto_increment primary key, v varchar(60))",
    "create table e.u(id int primary key, v varchar(60)) engine=myisam",
)
_OF_FLAVOR: Final = {
    "mariadb": (
        "create table e.packed(id int primary key, t text compressed, v varchar(500) compressed)",
        "create table e.other(id int primary key, i inet6, u uuid)",
        "create sequence e.s",
    ),
    "mysql": ("create table e.j(id int primary key, j json)",),
}
_PATIENCE: Final = "set lock_wait_timeout=1, innodb_lock_wait_timeout=1"
_TEXTS: Final = (
    *("", "x", "it''s", "back\\\\slash", "line\\nend", "tab\\tand\\r", "é€", "😀", "%d %s", "\\0"),
    *("/*!*/;", "-- no", "# no", "`q`", '"d"', "\\Z\\b", "x" * 70),
)
_CHARSETS: Final = ("latin1", "utf8mb4", "utf8mb3", "cp1251", "binary", "ascii", "big5")


def make_log(server: LoggingServer, seed: int, *, sessions: int = 6, length: int = 40) -> list[str]:
    """Run random sessions, two at a time, in files of their own.

    Args:
        server: A server that logs.
        seed: Of all that is random.
        sessions: How many.
        length: About how many statements each has.

    Returns:
        Names of the files, in order.
    """
    random = Random(f"log-{server.flavor}-{seed}")
    with closing(server.connect()) as observer:
        _run(observer, _PATIENCE)
        for _, *_, xid in _ask(observer, "xa recover"):
            _run(observer, f"xa rollback '{xid.decode() if isinstance(xid, bytes) else xid}'")
        for name in ("d", "e", "o d"):
            _run(observer, f"drop database if exists `{name}`")
        _run(observer, "flush logs")
        first = str(_ask(observer, "show binary logs")[-1][0])
        for sql in (*schema(server.flavor), *_OBJECTS, *_OF_FLAVOR[server.flavor]):
            _run(observer, sql)
        for number in range(sessions // 2):
            _run_pair(server, random, [seed * 1000 + 2 * number + side for side in (0, 1)], length)
            if random.random() < 0.4:
                _run(observer, "flush logs")
        _run(observer, "flush logs")
        names = [str(row[0]) for row in _ask(observer, "show binary logs")]
        return names[names.index(first) : -1]


def _run_pair(server: LoggingServer, random: Random, seeds: Sequence[int], length: int) -> None:
    with ExitStack() as stack:
        scripts: list[tuple[Connection[Cursor], list[str]]] = []
        for seed in seeds:
            connection = stack.enter_context(closing(server.connect("d")))
            _run(connection, _PATIENCE)
            script = Generator(server.flavor, seed).script(length).texts
            mine = list(_Own(server.flavor, seed).statements(length))
            scripts.append((connection, _mixed(random, script, mine)))
        while scripts:
            connection, texts = random.choice(scripts)
            for sql in texts[: random.randrange(1, 6)]:
                _run(connection, sql)
            del texts[:5]
            scripts = [script for script in scripts if script[1]]


def _mixed(random: Random, *lists: list[str]) -> list[str]:
    """The lists' members, each in its order."""
    lefts = [texts.copy() for texts in lists]
    mixed = []
    while any(lefts):
        texts = random.choice([left for left in lefts if left])
        mixed.append(texts.pop(0))
    return mixed


class _Own:
    """What sessions have here beside those that judge what is logged: values, settings, sizes."""

    def __init__(self, flavor: str, seed: int) -> None:
        self._flavor = flavor
        self._random = Random(f"own-{flavor}-{seed}")
        self._key = 1000 + seed % 1000 * 1000

    def statements(self, count: int) -> Iterator[str]:
        kinds: tuple[tuple[int, Callable[[], Iterator[str]]], ...] = (
            (5, self._setting),
            (4, self._types),
            (4, self._rows),
            (2, self._names),
            (2, self._variables),
            (1, self._load),
            (1, self._distributed),
            (4, self._of_flavor),
        )
        weights = [weight for weight, _ in kinds]
        for _ in range(count):
            yield from self._random.choices(kinds, weights)[0][1]()

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _text(self) -> str:
        return "".join(self._random.choices(_TEXTS, k=self._random.randrange(1, 4)))

    def _new_key(self) -> int:
        self._key += 1
        return self._key

    def _setting(self) -> Iterator[str]:
        number = self._random.randrange(1, 4)
        yield self._pick(
            f"set binlog_format={self._pick('row', 'mixed', 'statement')}",
            f"set session binlog_row_image={self._pick('full', 'minimal', 'noblob')}",
            f"set sql_mode={self._pick('default', repr('ansi'), repr(''), repr('no_backslash_escapes'))}",
            f"set names {self._pick(*_CHARSETS)}",
            f"set time_zone={self._pick(repr('+02:00'), repr('SYSTEM'), repr('-11:30'))}",
            f"set lc_time_names={self._pick('de_DE', 'en_US')}",
            f"set auto_increment_increment={number}, auto_increment_offset={number}",
            f"set collation_database={self._pick('latin1_bin', 'utf8mb4_general_ci')}",
            f"set {self._pick('foreign_key_checks', 'unique_checks', 'sql_auto_is_null')}={number % 2}",
            f"set timestamp={self._pick('default', '1700000000', '1700000000.123456', '12.5')}",
            f"use {self._pick('d', 'e', '`o d`')}",
            "set autocommit=1",
            "commit",
        )

    def _types(self) -> Iterator[str]:
        key, number = self._new_key(), self._random.randrange(-(2**31), 2**31)
        null = self._random.random() < 0.2
        text = "null" if null else f"'{self._text()}'"
        yield (
            f"insert into e.types values({key},{number % 256},{number % 65536 - 32768},"
            f"{number % 2**24 - 2**23},{number % 2**31 * 8},{number / 7:.4f},{number / 3e10!r},"
            f"{number / 1e4:.4f},{number % 2048},{1901 + number % 254},"
            f"'{1000 + number % 8999}-0{number % 9 + 1}-{number % 28 + 1:02}',"
            f"'{self._pick('', '-')}{number % 838}:{number % 60:02}:05.{number % 1000:03}',"
            f"'2024-0{number % 9 + 1}-11 10:00:00.{number % 10**6:06}','2001-02-03 04:05:06.78',"
            f"{text if len(text) < 9 else repr('c')},{text},x'{number % 2**31:08x}',{text},"
            f"repeat({text},{self._random.choice((1, 1, 1, 40))}),{self._pick('1', '2', '3', 'null')},"
            f"{number % 8})"
        )
        yield self._pick(
            f"update e.types set vc={text}, ti=ti+1 where id={key}",
            f"update e.types set f=-f, de=-de, dt=null, tx=null where id>{key - 3}",
            f"delete from e.types where id={key - 2}",
            f"replace into e.types(id,vc) values({key},{text})",
            f"insert into e.types(vc,c) select vc,'n' from e.types where id>{key - 3}",
        )

    def _rows(self) -> Iterator[str]:
        key, text = self._new_key(), self._text()
        yield self._pick(
            f"insert into e.am(v) values('{text}'),('{text}2')",
            f"insert into e.am values({key},'{text}')",
            f"insert into e.u values({key},'{text}')",
            f"insert into e.u values({key},'{text}'),({key - 1},'k')",
            f"update e.am set v='{text}' where id>{key} or v='x'",
            f"update e.am, e.u set e.am.v='{text}', e.u.v='b' where e.u.id={key - 1}",
            f"delete e.am, e.u from e.am join e.u where e.u.id={key - 1} and e.am.v='x'",
            f"insert into e.am(v) values(concat(rand(),'{text}'))",
            "insert into e.am(v) values(last_insert_id())",
            f"insert into e.am(v) select v from e.u /* {text} */ limit 3",
            f"# a comment\ninsert into e.am(v)\nvalues('{text}')\r\n",
            "update e.am set v=v where id<0",
            "insert into e.am(v) select v from e.u where id<0",
            "begin",
            "commit",
        )

    def _names(self) -> Iterator[str]:
        key = self._new_key()
        yield self._pick(
            f"insert into `o d`.`t``b` values({key},'{self._text()}')",
            f"update `o d`.`t``b` set `c'd`='q' where `a b`>{key - 2}",
            f"create table `o d`.`n\u00e9w {key}`(a int, `x\u20acy` enum('k','{self._text()}'))",
            f"create temporary table e.tt{key}(a int)",
            f"create table e.c{key} as select 1 a, '{self._text()}' b",
            f"create user 'u{key}'@'%' identified by 'geheim'",
        )

    def _variables(self) -> Iterator[str]:
        yield "set @n=null, @i=-5, @d=1.50, @f=1.5e300, @`s p`='" + self._text() + "', @b=x'00ff'"
        yield self._pick(
            "insert into e.am(v) values(@i),(@d)",
            "insert into e.am(v) values(concat(@n,@f,@`s p`))",
            "insert into e.u values(@i,@b)",
            "insert into e.am(v) values(@`s p` collate utf8mb4_bin)",
        )

    def _load(self) -> Iterator[str]:
        yield self._pick(
            "load data infile './rows.txt' into table e.am (@x,v)",
            "load data infile './rows.txt' ignore into table e.am (@x,v) set id=null",
            "load data infile './rows.txt' replace into table e.u fields terminated by '\\t'",
        )

    def _distributed(self) -> Iterator[str]:
        xid = f"'x{self._new_key()}','b',7"
        yield "commit"
        yield f"xa start {xid}"
        yield f"insert into e.am(v) values('{self._text()}')"
        yield f"xa end {xid}"
        if self._random.random() < 0.6:
            yield f"xa prepare {xid}"
            yield f"xa {self._pick('commit', 'rollback')} {xid}"
        else:
            yield f"xa commit {xid} one phase"

    def _of_flavor(self) -> Iterator[str]:
        key, number = self._new_key(), self._random.randrange(1, 4)
        if self._flavor == "mariadb":
            yield self._pick(
                f"set gtid_domain_id={number - 1}",
                f"set server_id={number}",
                f"set skip_replication={number % 2}",
                f"set binlog_annotate_row_events={number % 2}",
                f"set skip_parallel_replication={number % 2}",
                f"set global log_bin_compress={number % 2}",
                f"set global binlog_row_metadata={self._pick('full', 'minimal', 'no_log')}",
                f"set global binlog_checksum={self._pick('crc32', 'none')}",
                f"set binlog_alter_two_phase={number % 2}",
                f"set character_set_collations='utf8mb4=utf8mb4_{self._pick('bin', 'general_ci')}'",
                f"set check_constraint_checks={number % 2}",
                f"set explicit_defaults_for_timestamp={number % 2}",
                f"insert into e.packed values({key},repeat('{self._text()}',50),'{self._text()}')",
                f"insert into e.other values({key},'::{number}',uuid())",
                f"update e.packed set v=concat(v,'y') where id>{key - 3}",
                "select nextval(e.s)",
                f"alter table e.am add column a{key} int default {number}",
            )
            return
        yield self._pick(
            f"set binlog_rows_query_log_events={number % 2}",
            f"set binlog_transaction_compression={number % 2}",
            f"set global binlog_row_metadata={self._pick('full', 'minimal')}",
            f"set global binlog_checksum={self._pick('crc32', 'none')}",
            f"set binlog_row_value_options={self._pick(repr(''), 'partial_json')}",
            f"set default_collation_for_utf8mb4=utf8mb4_{self._pick('0900_ai_ci', 'general_ci')}",
            f"set sql_require_primary_key={number // 3}",
            f"set sql_generate_invisible_primary_key={number % 2}",
            f"set gtid_next='aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaa{number}:{self._pick('', 't1:')}{key}'",
            "set gtid_next='automatic'",
            f"set original_commit_timestamp={1_600_000_000_000_000 + key}",
            f'insert into e.j values({key},\'{{"a":[1,2,"x"],"b":null,"c":{number}.5}}\')',
            f"update e.j set j=json_set(j,'$.a[{number}]','{key}') where id>{key - 5}",
            f"update e.j set j=json_remove(j,'$.b') where id>{key - 2}",
            f"create table e.g{key}(a int)",
        )


def _ask(connection: Connection[Cursor], sql: str) -> tuple[tuple[object, ...], ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return tuple(cursor.fetchall())


def _run(connection: Connection[Cursor], sql: str) -> None:
    """Run a statement; what a server refuses it does not log, or as an error."""
    with suppress(pymysql.MySQLError):
        connection.query(sql)
        while has_next(connection):
            connection.next_result()
