"""Sessions of settings: each two variables that bear on logging, and statements behind them.

A session sets a few variables, other ones in each, so that all sessions together have every value of
a variable beside every value of every other one; most are at their defaults in each, since what one
refuses hides what others do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Final

from tests.differential.logging import objects
from tests.differential.logging.scripts import Script, Statement, needed

_SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "binlog_format": ("statement", "mixed", "row"),
    "binlog_row_image": ("minimal", "noblob"),
    "binlog_direct_non_transactional_updates": ("1",),
    "autocommit": ("0",),
    "completion_type": ("chain", "release"),
    "sql_auto_is_null": ("1",),
    "foreign_key_checks": ("0",),
    "unique_checks": ("0",),
    "auto_increment_increment": ("3",),
    "auto_increment_offset": ("2",),
    "insert_id": ("50", "7"),
    "last_insert_id": ("60",),
    "timestamp": ("1000000000", "1700000000.5"),
    "time_zone": ("'+02:00'", "'SYSTEM'"),
    "names": ("latin1", "utf8mb4 collate utf8mb4_bin"),
    "collation_connection": ("utf8mb4_general_ci",),
    "collation_database": ("latin1_swedish_ci",),
    "collation_server": ("latin1_bin",),
    "lc_time_names": ("'de_DE'",),
    "default_storage_engine": ("myisam",),
    "default_tmp_storage_engine": ("myisam",),
    "sql_notes": ("0",),
    "max_error_count": ("0", "1"),
    "sql_log_bin": ("0",),
    "pseudo_thread_id": ("7777",),
    "sql_safe_updates": ("1",),
    "rand_seed1": ("5",),
    "sql_mode": (
        *("''", "'ansi_quotes'", "'no_backslash_escapes'", "'no_auto_value_on_zero'"),
        *("'ansi'", "'pipes_as_concat'", "'traditional'", "'no_engine_substitution'"),
        *("'ignore_space'", "'high_not_precedence'", "'no_zero_date,strict_all_tables'"),
    ),
    "big_tables": ("1",),
    "sql_quote_show_create": ("0",),
    "sql_select_limit": ("1",),
    "sql_warnings": ("1",),
    "updatable_views_with_limit": ("0",),
    "low_priority_updates": ("1",),
    "group_concat_max_len": ("10",),
    "max_sort_length": ("64",),
    "div_precision_increment": ("2",),
    "explicit_defaults_for_timestamp": ("0",),
    "session_track_gtids": (),
}
_OF_FLAVOR: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "mariadb": {
        "tx_isolation": ("'read-committed'", "'serializable'"),
        "tx_read_only": ("1",),
        "binlog_annotate_row_events": ("0",),
        "binlog_alter_two_phase": ("1",),
        "check_constraint_checks": ("0",),
        "gtid_domain_id": ("5",),
        "gtid_seq_no": ("5000000",),
        "server_id": ("9",),
        "skip_replication": ("1",),
        "system_versioning_alter_history": ("keep",),
        "system_versioning_asof": ("'2030-01-01 00:00:00'",),
        "system_versioning_insert_history": ("1",),
        "sql_if_exists": ("1",),
        "old_mode": ("'no_progress_info'", "''"),
        "storage_engine": ("aria",),
        "alter_algorithm": ("copy",),
        "idle_transaction_timeout": ("100",),
        "in_predicate_conversion_threshold": ("0",),
        "innodb_strict_mode": ("0",),
        "standard_compliant_cte": ("0",),
        "column_compression_threshold": ("1",),
        "secure_timestamp": (),
        "sql_mode": (
            *("'oracle'", "'mssql'", "'empty_string_is_null'", "'simultaneous_assignment'"),
            *("'time_round_fractional'", "'no_auto_create_user,no_field_options'"),
        ),
    },
    "mysql": {
        "transaction_isolation": ("'read-committed'", "'serializable'"),
        "transaction_read_only": ("1",),
        "binlog_rows_query_log_events": ("1",),
        "binlog_row_value_options": ("partial_json",),
        "binlog_transaction_compression": ("1",),
        "sql_require_primary_key": ("1",),
        "sql_generate_invisible_primary_key": ("1",),
        "show_gipk_in_create_table_and_information_schema": ("0",),
        "default_collation_for_utf8mb4": ("utf8mb4_general_ci",),
        "default_table_encryption": (),
        "windowing_use_high_precision": ("0",),
        "print_identified_with_as_hex": ("1",),
        "restrict_fk_on_non_standard_key": ("0",),
        "use_secondary_engine": ("off",),
        "xa_detach_on_prepare": ("0",),
        "innodb_ddl_threads": ("2",),
        "original_commit_timestamp": ("1500000000000000",),
        "original_server_version": ("80036",),
        "immediate_server_version": ("80036",),
        "sql_mode": (
            "'pad_char_to_full_length'",
            "'time_truncate_fractional'",
            "'allow_invalid_dates'",
        ),
    },
}
_TOGETHER: Final = 4
"""Variables that a session sets, beside binlog_format."""
_LENGTH: Final = 14
_BATTERY: Final = (
    "insert into {any} (a,b,c) values({k},'s',{k})",
    "insert into {any} (a,b,c) values({k},'s',{k}),({k}+1,'q',null)",
    "insert into {any} (a,b,c) values({k},{value},{k})",
    "insert into {any} (a,b,c) values({k},{value},{k})",
    "insert into {auto}(b) values('s')",
    "insert into {auto}(b) values('s'),('t')",
    "insert into {auto}(id,b) values(0,'z')",
    "insert into {auto}(id,b) values({k},'z'),(null,'w')",
    "insert into {auto}(b) select b from {plain} where a<3",
    "insert into {auto}(b) values(last_insert_id())",
    "insert into {any}(a,b) values(1,'dup')",
    "insert into {any}(a,b) values({k},'e'),(1,'dup')",
    "insert ignore into {any}(a,b) values(1,'dup'),({k},'i')",
    "insert into {any}(a,b,c) values(1,'d',1) on duplicate key update b='o{k}'",
    "replace into {any}(a,b,c) values(1,'r{k}',1)",
    "insert into {plain}(a,b,c) select a+{k}*1000,{value},c from {plain} where a<3",
    "insert into {plain}(a,b,c) select a+{k}*1000,b,c from {plain} limit 1",
    "update {any} set b='u{k}' where a=1",
    "update {any} set b={value} where a=1",
    "update {any} set b='u{k}' where a>0 limit 1",
    "update {any} set b='u{k}'",
    "update {any} set c=c where a=1",
    "update {auto} set b='n{k}' where id is null",
    "update {plain} x, {plain} y set x.b='j{k}' where x.a=y.a and x.a=1",
    "update v set b='v{k}' where a=1",
    "update vj set b='w{k}' where a=1",
    "update pa set a=a+1000 where a=1",
    "update pa set b='p{k}' where a=1",
    "update ts set b='t{k}' where a=1",
    "delete from {any} where a={k}",
    "delete from {any} where a=2",
    "delete from {plain}",
    "delete from {any} where a>0 order by a limit 1",
    "delete from pa where a=1",
    "delete x from {plain} x join {plain} y on x.a=y.a where x.a=2",
    "insert into ch(a,b,c) values({k},'f',999)",
    "insert into ts(a) values({k})",
    "insert into dx(a) values({k})",
    "insert into ge(a,b,c) values({k},'g',{k}) on duplicate key update b='h'",
    "insert into ge(a,b,c) values({k},'g',{k})",
    "insert into js(a,j,f) values({k},'{{\"a\": 1}}',repeat('x',10))",
    "update js set j=json_set(j,'$.a',2), b='k{k}'",
    "insert into js(a,b) values({k},'l')",
    "insert into ao(g,b) values(1,'g')",
    "load data infile './rows.txt' into table {plain} (@a,b) set a=@a+{k}",
    "load data infile './rows.txt' into table {plain} (@a,@b) set a=@a+{k},b=concat(@b,@uv)",
    "call p({k})",
    "call pi(-{k})",
    "do fw({k})",
    "select fw({k})",
    "set @uv='u'",
    "set @Uv=5",
    "insert into {any}(a,b) values({k},@uv)",
    "insert into {any}(a,b) values({k},@UV)",
    "begin",
    "begin",
    "commit",
    "rollback",
    "savepoint s",
    "rollback to s",
    "start transaction read only",
    "start transaction with consistent snapshot",
    "lock tables {plain} write",
    "unlock tables",
    "create table x{k}(a int, b varchar(10))",
    "create table x{k}(a int primary key, t timestamp, u timestamp not null) engine=myisam",
    "create table x{k} select * from {plain}",
    "create table x{k}(id int auto_increment primary key) select b from {plain}",
    "create table x{k} like {any}",
    "create table if not exists t(a int)",
    "create temporary table y{k}(a int, b varchar(10))",
    "create temporary table y{k} select * from {plain}",
    "create table x{k}(a int, b varchar(10) default 'ä', c char(3) character set latin1)",
    "alter table {any} add column x{k} int",
    "alter table {any} add column x{k} varchar(40) default (uuid())",
    "alter table {any} comment 'c{k}'",
    "alter table {any} force, algorithm=copy",
    "alter table {any} drop key k",
    "create index x{k} on {any}(b)",
    "drop table {plain}",
    "drop table if exists nosuch",
    "drop temporary table if exists nosuch",
    "truncate table {plain}",
    "rename table {plain} to z{k}",
    "create view x{k} as select * from {plain}",
    "alter view v as select a, b, c from t2",
    "drop view vm",
    "create procedure x{k}() insert into t(a) values({k})",
    "create function x{k}() returns int return 1",
    "create trigger x{k} before update on {plain} for each row set new.c=1",
    "create event x{k} on schedule every 1 day do select 1",
    "drop procedure p0",
    "create database x{k}",
    "create database x{k} character set latin1",
    "drop database d2",
    "grant select on d.* to root@localhost",
    "analyze table {plain}",
    "optimize table {plain}",
    "flush tables",
    "xa start 'x'",
    "xa end 'x'",
    "xa prepare 'x'",
    "xa commit 'x'",
    "xa rollback 'x'",
    "set binlog_format=statement",
    "set binlog_format=row",
    "set transaction isolation level read committed",
    "prepare ps from 'insert into t(a,b) values(?,?)'",
    "execute ps using @uv,@uv",
    "select 1",
    "select * from t where a=1 for update",
    "insert into d2.t values({k},'d',1)",
    "use d2",
    "use d",
)
_OF_MARIADB: Final = (
    "insert into ve(a,b,c) values({k},'v',1)",
    "update ve set b='v{k}' where a=1",
    "delete from ve where a=2",
    "delete from vr where a=1",
    "insert into vr(a,b,c) values(1,'r',1)",
    "delete history from ve",
    "alter table ve add column x{k} int",
    "insert into dq(a) values({k})",
    "insert into {any}(a,b,c) values({k},'q',nextval(sq))",
    "do nextval(sq)",
    "create or replace table x9(a int)",
    "create or replace table x9 select * from {plain}",
    "create table x{k}(a int default nextval(sq))",
    "create sequence x{k}",
    "alter sequence sq restart 100",
    "delete from {plain} where a=1 returning a",
    "insert into {plain}(a) values({k}) returning a",
    "set statement binlog_format=row for insert into {any}(a,b) values({k},uuid())",
    "set statement sql_log_bin=0 for insert into {any}(a) values({k})",
    "delete from pe for portion of p from '2020-02-01' to '2020-03-01'",
    "insert into ck(a) values(-{k})",
    "execute immediate 'insert into t(a) values({k})'",
)
_OF_MYSQL: Final = (
    "insert into ck(a) values(-{k})",
    "lock instance for backup",
    "unlock instance",
    "create table x{k}(a int, b int) start transaction",
    "insert into {plain}(a,b,c) table t2",
    "insert into {plain}(a,b,c) values({k},'a',1) as new on duplicate key update b=new.b",
    "with w as (select a from t2) update {plain} set b='w{k}' where a in (select a from w)",
    "select * from t for update skip locked",
    "create table x{k} as select * from {plain} for update nowait",
)
_VALUES: Final = (
    *("'v'", "uuid()", "rand()", "now()", "sysdate()", "user()", "@@hostname", "@@timestamp"),
    *("@uv", "last_insert_id()", "f(1)", "fu()", "fw({k}+500)", "'ä'", "'it''s \\\\ x'", "0x41"),
    *("connection_id()", "date_format(now(),'%M')", "@@server_id", "1/3", "current_user()"),
    *("found_rows()", "row_count()", "unix_timestamp()", "curdate()", "database()", '"q"'),
    *("_latin1'l'", "n'n'", "load_file('x')", "get_lock('l',0)", "version()", "'a' || 'b'"),
)
_ANY: Final = ("t", "n", "m", "u", "ts", "dx", "ge", "nn", "pt", "ck", "tg", "ng", "ch", "v", "tx")
_PLAIN: Final = ("t", "n", "t2", "m", "nn", "pt")


def values(flavor: str) -> list[tuple[str, str]]:
    """Variables with the values that are drawn, one pair for each value."""
    found = [(name, value) for name, known in _SETTINGS.items() for value in known]
    return found + [(name, value) for name, known in _OF_FLAVOR[flavor].items() for value in known]


def rows(flavor: str) -> Iterator[tuple[tuple[str, str], ...]]:
    """Settings of one session after the other: together every two values of two variables."""
    known = values(flavor)
    left = {
        frozenset(pair)
        for pair in combinations(range(len(known)), 2)
        if known[pair[0]][0] != known[pair[1]][0]
    }
    random = Random(flavor)
    while left:
        row = list(min(left, key=sorted))
        rest = [index for index in range(len(known)) if index not in row]
        random.shuffle(rest)
        while len(row) < _TOGETHER:
            named = {known[index][0] for index in row}
            fitting = [index for index in rest if known[index][0] not in named]
            row.append(max(fitting, key=lambda i: sum(frozenset((i, j)) in left for j in row)))
            rest.remove(row[-1])
        left -= {frozenset(pair) for pair in combinations(row, 2)}
        random.shuffle(row)
        yield tuple(known[index] for index in row)


def script(flavor: str, row: tuple[tuple[str, str], ...], seed: int) -> Script:
    """A session of some settings, and statements drawn by a seed."""
    random = Random(f"{flavor}-{seed}")
    texts = [
        f"set {name}={value}" if name != "names" else f"set names {value}" for name, value in row
    ]
    if all(name != "binlog_format" for name, _ in row):
        texts.insert(0, f"set binlog_format={random.choice(_SETTINGS['binlog_format'])}")
    others = _OF_MARIADB if flavor == "mariadb" else _OF_MYSQL
    drawn = random.choices((*_BATTERY, *others), k=_LENGTH)
    texts += [filled(text, random, 100 + 10 * number) for number, text in enumerate(drawn)]
    statements = tuple(Statement(sql=text) for text in texts)
    return Script(schema=needed(objects.schema(flavor), texts), statements=statements)


def filled(text: str, random: Random, key: int) -> str:
    """A statement of the battery with names and values."""
    names = {
        "any": random.choice(_ANY),
        "auto": random.choice(("am", "an")),
        "plain": random.choice(_PLAIN),
        "value": random.choice(_VALUES).format(k=key),
        "k": key,
    }
    return text.format(**names)
