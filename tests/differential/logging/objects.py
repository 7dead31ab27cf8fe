"""Objects of every kind on which statements of the grammar and of settings are drawn.

All tables have columns `a`, `b` and `c`, a key `k` and rows with 1 and 2 in `a`, so that most of what
is drawn is taken; names are told by what they are for.
"""

from __future__ import annotations

from typing import Final

_COLUMNS: Final = "a int not null, b varchar(40), c int, primary key(a), key k(c)"
_TABLES: Final = {
    "t": f"({_COLUMNS})",
    "t2": f"({_COLUMNS})",
    "n": f"({_COLUMNS}) engine=myisam",
    "m": f"({_COLUMNS}) engine=memory",
    "am": "(id int auto_increment primary key, a int, b varchar(40), c int, key k(c))",
    "an": "(id int auto_increment primary key, a int, b varchar(40), c int, key k(c)) engine=myisam",
    "ao": "(g int, a int auto_increment, b varchar(40), c int, primary key(g,a), key k(c))"
    " engine=myisam",
    "u": "(a int not null primary key, b varchar(40), c int, unique k(c))",
    "ts": "(a int not null primary key, b varchar(40), c int, key k(c),"
    " s timestamp null default current_timestamp on update current_timestamp,"
    " d datetime(6) default current_timestamp(6))",
    "dx": "(a int not null primary key, b varchar(40) default (uuid()), c int, key k(c),"
    " r double default (rand()))",
    "ge": "(a int not null primary key, b varchar(40), c int, v int as (c+1) virtual,"
    " w int as (c*2) stored, unique k(w))",
    "nn": "(b varchar(40), c int, a int not null, key k(c))",
    "pt": f"({_COLUMNS}) partition by range(a)"
    " (partition p0 values less than (10), partition p1 values less than (1000000))",
    "ph": f"({_COLUMNS}) partition by hash(a) partitions 2",
    "pa": f"({_COLUMNS})",
    "ch": "(a int not null primary key, b varchar(40), c int, key k(c),"
    " constraint fk foreign key(c) references pa(a) on delete cascade on update cascade)",
    "kd": "(a int not null primary key, b varchar(40), c int, key k(c),"
    " constraint fk2 foreign key(c) references ch(a) on delete cascade on update cascade)",
    "ck": f"({_COLUMNS}, constraint co check (a > 0))",
    "tg": f"({_COLUMNS})",
    "ng": f"({_COLUMNS}) engine=myisam",
    "tx": "(a int not null primary key, b text, c int, key k(c), fulltext ft(b))",
    "js": "(a int not null primary key, b varchar(40), c int, j json, g point, e enum('x','y'),"
    " f blob, key k(c))",
}
_UNFILLED: Final = ("ao", "js")
_OF_MARIADB: Final = (
    (
        "create table ve(a int not null primary key, b varchar(40), c int, key k(c))"
        " with system versioning"
    ),
    (
        "create table vr(a int not null primary key, b varchar(40), c int, key k(c),"
        " rs timestamp(6) generated always as row start, re timestamp(6) generated always as row end,"
        " period for system_time(rs, re)) with system versioning"
    ),
    (
        "create table pe(a int not null, b varchar(40), c int, d1 date, d2 date, period for p(d1, d2),"
        " primary key(a), key k(c))"
    ),
    "create sequence sq",
    (
        "create table dq(a int not null primary key, b varchar(40), c int default nextval(sq),"
        " key k(c))"
    ),
    "insert into ve values(1,'x',1),(2,'y',2)",
    "insert into pe values(1,'x',1,'2020-01-01','2021-01-01'),(2,'y',2,'2020-01-01','2021-01-01')",
    "create package pk procedure pp(); end",
)
_ROUTINES: Final = (
    "create view v as select a, b, c from t",
    "create view vn as select a, b, c from n",
    "create view vj as select t.a a, t.b b, n.c c from t join n on t.a=n.a",
    "create algorithm=merge sql security invoker view vm as select a, b, c from t2",
    "create procedure p(x int) insert into t values(x,'p',x)",
    "create procedure p0() select 1",
    (
        "create procedure pi(x int) begin if x > 0 then insert into t values(x,'p',x);"
        " else insert into n values(-x,'p',x); end if; end"
    ),
    "create function f(x int) returns int deterministic return x+1",
    "create function fw(x int) returns int begin insert into t2 values(x,'f',x); return x; end",
    "create function fu() returns varchar(40) return uuid()",
    "create trigger tr before insert on tg for each row insert into t2 values(new.a,'r',1)",
    "create trigger tn after insert on ng for each row insert into am(b) values(new.b)",
    "create event e on schedule every 10 year do delete from t where a>100",
    "create database d2",
    "create table d2.t(a int not null primary key, b varchar(40), c int, key k(c))",
)
_ACCOUNTS: Final = (
    "create user u1@localhost identified by 'Xy12345!', u2@localhost",
    "create role r1, r2",
    "grant select, insert on d.* to u1@localhost",
    "grant r1 to u1@localhost",
)


def names(flavor: str) -> tuple[str, ...]:
    """The tables that statements draw."""
    return (*_TABLES, *(("ve", "pe", "dq") if flavor == "mariadb" else ()))


def schema(flavor: str, *, has_accounts: bool = False) -> tuple[str, ...]:
    """All of them, as they are made.

    Args:
        flavor: `mariadb` or `mysql`.
        has_accounts: There are users and roles, too: without any, none is missed.
    """
    made = [f"create table {name} {definition}" for name, definition in _TABLES.items()]
    rows = [
        f"insert into {name}(a,b,c) values(1,'x',1),(2,'y',2)"
        for name in _TABLES
        if name not in _UNFILLED
    ]
    others = _OF_MARIADB[:-1] if flavor == "mariadb" else ()
    accounts = _ACCOUNTS if has_accounts else ()
    return ("create database d", "use d", *made, *rows, *others, *_ROUTINES, *accounts)
