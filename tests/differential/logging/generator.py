"""Random sessions: everything that bears on how a statement is logged, mixed by a seed.

Rows with `a` of 1 and 2 stand in every table and stay, so that a duplicate is always at hand; what
a session inserts has keys from 100 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from tests.differential.logging.scripts import Script, Statement

_FORMATS: Final = ("statement", "mixed", "row")
_T: Final = ("t1", "t2")
_N: Final = ("n1", "n2")
_PLAIN: Final = (*_T, *_N)
_ROUTINES: Final = (
    "create function f_t(x int) returns int begin insert into t2 values(x,'f'); return x; end",
    "create function f_n(x int) returns int begin insert into n2 values(x,'f'); return x; end",
    (
        "create function f_m(x int) returns int begin insert into n2 values(x,'f');"
        " insert into t2 values(x,'g'); return x; end"
    ),
    "create function f_uuid() returns varchar(40) return uuid()",
    "create function f_const() returns int return 7",
    "create function f_read() returns int return (select max(a) from t1)",
    "create procedure p_t(x int) insert into t1 values(x,concat('p',x))",
    "create procedure p_n(x int) insert into n1 values(x,'p')",
    "create procedure p_uuid(x int) insert into t1 values(x,uuid())",
    (
        "create procedure p_mix(x int) begin declare y varchar(20) default 'v';"
        " insert into t1 values(x,y); insert into n1 values(x,y); update t1 set b=concat(y,b) where a=x; end"
    ),
    (
        "create procedure p_tx(x int) begin start transaction; insert into t1 values(x,'q');"
        " insert into n1 values(x,'q'); commit; end"
    ),
    (
        "create procedure p_rb(x int) begin start transaction; insert into t1 values(x,'q');"
        " insert into n1 values(x,'q'); rollback; end"
    ),
    (
        "create procedure p_loop(x int) begin declare i int default 0; while i<2 do"
        " insert into t2 values(x+i,'w'); set i=i+1; end while; end"
    ),
    (
        "create procedure p_if(x int) begin if x>0 then insert into t1 values(x,'i');"
        " else insert into n1 values(-x,'i'); end if; end"
    ),
    "create procedure p_call(x int) begin call p_t(x); call p_n(x); end",
    (
        "create procedure p_ddl(x int) begin insert into t1 values(x,'d');"
        " create table made(a int) engine=innodb; drop table made; end"
    ),
    (
        "create procedure p_tmp(x int) begin create temporary table ptmp(a int);"
        " insert into ptmp values(x); insert into t1 select a,'s' from ptmp;"
        " drop temporary table ptmp; end"
    ),
    (
        "create procedure p_data(x int) begin if (select count(*) from t2 where a=x)=0 then"
        " insert into t2 values(x,'new'); end if; insert into t1 values(x,'dt'); end"
    ),
    (
        "create procedure p_dyn(x int) begin set @q=concat('insert into t1 values(',x,',''dy'')');"
        " prepare pq from @q; execute pq; deallocate prepare pq; end"
    ),
    (
        "create procedure p_case(x int) begin case x%3 when 0 then insert into t1 values(x,'0');"
        " when 1 then insert into n1 values(x,'1'); else insert into t2 values(x,'2'); end case; end"
    ),
    (
        "create procedure p_handle(x int) begin declare continue handler for 1062"
        " insert into n2 values(x,'h'); insert into t1 values(x,'k'); end"
    ),
    "create procedure p_func(x int) begin set @r=f_t(x); insert into n1 values(x,@r); end",
    (
        "create procedure p_point(x int) begin savepoint s1; insert into t1 values(x,'s');"
        " insert into n1 values(x,'s'); rollback to s1; end"
    ),
    (
        "create procedure p_level(x int) begin set transaction isolation level read committed;"
        " insert into t1 values(x,'v'); insert into t2 values(x,'v'); end"
    ),
    (
        "create procedure p_format(x int) begin set session binlog_format=row;"
        " insert into t1 values(x,'f'); set session binlog_format=mixed; insert into n1 values(x,'f');"
        " insert into t2 values(x,uuid()); insert into n2 values(x,'g'); end"
    ),
    (
        "create procedure p_unlogged(x int) begin set sql_log_bin=0; insert into t1 values(x,'u');"
        " set sql_log_bin=1; insert into n1 values(x,'u'); end"
    ),
    (
        "create procedure p_signal(x int) begin insert into t1 values(x,'e'); insert into n1 values(x,'e');"
        " signal sqlstate '45000'; end"
    ),
    (
        "create procedure p_undo(x int) begin declare exit handler for sqlexception rollback;"
        " start transaction; insert into t1 values(x,'o'); insert into n1 values(x,'o');"
        " signal sqlstate '45000'; end"
    ),
    (
        "create procedure p_commits(x int) begin insert into t1 values(x,'c'); commit;"
        " insert into n1 values(x,'c'); insert into t2 values(x,'c'); commit and chain;"
        " insert into t1 values(x+1,'c'); rollback; end"
    ),
    "create function f_format() returns int begin set binlog_format=row; return 1; end",
    (
        "create trigger tr_e before insert on tg_e for each row begin insert into n2 values(new.a,'r');"
        " if new.b='bad' then signal sqlstate '45000'; end if; end"
    ),
    (
        "create trigger tr_f after insert on tg_f for each row begin insert into t2 values(new.a,'r');"
        " if new.b='bad' then signal sqlstate '45000'; end if; end"
    ),
    "create trigger tr_t before insert on tg_n for each row insert into n2 values(new.a,'r')",
    "create trigger tr_n after insert on tg_t for each row insert into t2 values(new.a,'r')",
    "create trigger tr_a before insert on tg_a for each row insert into ta(b) values(new.b)",
    "create trigger tr_u after update on tg_n for each row update n2 set b=new.b where a=1",
    "create trigger tr_d after delete on tg_t for each row delete from t2 where a=old.a",
    "create trigger tr_s before insert on tg_s for each row set new.b=concat(new.b,'s')",
    "create function f_a(x int) returns int begin insert into ta(b) values(x); return x; end",
    (
        "create view v_3 as select t1.a a,t1.b b,t2.b c,n1.b d from t1 join t2 on t1.a=t2.a"
        " join n1 on n1.a=t1.a"
    ),
    "create view v_t as select * from t1",
    "create view v_n as select * from n1",
    "create view v_u as select a,uuid() u from t2",
    "create view v_j as select t1.a a,t1.b b,n1.b c from t1 join n1 on t1.a=n1.a",
)
_MARIADB_OBJECTS: Final = (
    "create table vs(a int primary key, b varchar(100)) engine=innodb with system versioning",
    "create table dq(a int default nextval(sq), b varchar(100)) engine=innodb",
    "insert into vs values(1,'x'),(2,'y')",
)
_TRIGGERED: Final = ("tg_n", "tg_t", "tg_a", "tg_s")
_EXPRESSIONS: Final = (
    *("'z'",) * 8,
    "uuid()",
    "left(rand(),5)",
    "now()",
    "sysdate()",
    "user()",
    "connection_id()",
    "last_insert_id()",
    "@@hostname",
    "@@timestamp",
    "@@version",
    "@uv",
    "@uv:='k'",
    "f_uuid()",
    "f_const()",
    "(select max(b) from n2 x)",
    "(select max(b) from t2 x)",
    "concat('a',database())",
    "found_rows()",
    "row_count()",
)


_SELECTED: Final = (
    *("a+1", "concat(b,'k')", "cast(a as char(5))", "cast(b as signed)", "coalesce(b,'n')"),
    *("ifnull(a,0)", "now()", "curdate()", "if(a=1,1.5,a)", "a/3", "a*1.5", "-a", "a%2", "not a"),
    *(
        "left(b,3)",
        "length(b)",
        "substr(b,1,2)",
        "trim(b)",
        "1",
        "1.5",
        "'x'",
        "null",
        "reverse(b)",
    ),
    *("case when a=1 then 'a' else b end", "a in (1,2)", "a between 1 and 2", "b like 'x%'"),
    *("(select max(a) from t2)", "f_const()", "f_uuid()", "date '2020-01-01'", "hex(a)"),
)


def schema(flavor: str, *, has_blackhole: bool = False) -> tuple[str, ...]:
    """Objects of every kind, the same for all sessions.

    Args:
        flavor: `mariadb` or `mysql`.
        has_blackhole: The server has that engine: MariaDB keeps it in a plugin.
    """
    columns = "a int primary key, b varchar(100)"
    tables = {
        **dict.fromkeys((*_T, "tg_n", "tg_a", "tg_s", "tg_e"), f"({columns}) engine=innodb"),
        **dict.fromkeys((*_N, "tg_t", "tg_f"), f"({columns}) engine=myisam"),
        "ta": "(a int auto_increment primary key, b varchar(100)) engine=innodb",
        "na": "(a int auto_increment primary key, b varchar(100)) engine=myisam",
        "tu": "(a int primary key, b int, c int, unique(b)) engine=innodb",
        "nu": "(a int primary key, b int, c int, unique(b)) engine=myisam",
        "ts": "(g int, a int auto_increment, primary key(g,a)) engine=myisam",
        "tp": f"({columns}) engine=innodb partition by range(a)(partition p0 values less than maxvalue)",
        "mm": f"({columns}) engine=memory",
        "parent": "(a int primary key, b varchar(100)) engine=innodb",
        "child": "(a int primary key, p int, foreign key(p) references parent(a)"
        " on delete cascade on update cascade) engine=innodb",
    }
    tables |= {
        "kid": "(a int primary key, p int, foreign key(p) references child(a)"
        " on delete cascade on update cascade) engine=innodb",
        "tree": "(a int primary key, b varchar(100), up int, foreign key(up) references tree(a))"
        " engine=innodb",
        "ring": "(a int primary key, b varchar(100), up int, foreign key(up) references ring(a)"
        " on delete cascade on update cascade) engine=innodb",
        "du": "(a int primary key, b varchar(100) default (uuid())) engine=innodb",
        "bh": f"({columns}) engine=blackhole",
    }
    if not has_blackhole:
        del tables["bh"]
    made = [f"create table {name} {definition}" for name, definition in tables.items()]
    rows = [
        f"insert into {name}(a,b) values(1,{value}),(2,{value[:-2]}y')"
        for name in tables
        if name not in {"tu", "nu", "ts", "parent", "child", "kid", "tree", "ring", "bh"}
        for value in ["'x'"]
    ]
    rows += [f"insert into {name} values(1,1,1),(2,2,2)" for name in ("tu", "nu")]
    rows += ["insert into ts(g) values(1)", "insert into parent(a) values(1),(2)"]
    rows += ["insert into child values(1,1),(2,2)", "insert into kid values(1,1),(2,2)"]
    rows += ["insert into tree values(1,'x',null)", "insert into ring values(1,'x',null)"]
    rows += [
        "create trigger tr_k after delete on kid for each row insert into ta(b) values(old.a)",
        "create trigger tr_p after update on child for each row insert into t2 values(new.a+9000,'c')",
    ]
    others: tuple[str, ...] = ()
    if flavor == "mariadb":
        others = ("create sequence sq nocache engine=innodb", *_MARIADB_OBJECTS)
    return ("create database d", "use d", *made, *others, *rows, *_ROUTINES)


class Generator:
    """Makes one session.

    Attributes:
        flavor: `mariadb` or `mysql`.
        has_blackhole: The server has that engine.
    """

    def __init__(self, flavor: str, seed: int, *, has_blackhole: bool = False) -> None:
        self.flavor = flavor
        self.has_blackhole = has_blackhole
        self._random = Random(f"{flavor}-{seed}")
        self._key = 100
        self._temporary: list[str] = []
        self._made: list[str] = []
        self._serial = 0
        self._is_timeless = True

    def script(self, length: int = 25) -> Script:
        """A session of about `length` statements."""
        statements = [Statement(sql=sql) for sql in self._opening()]
        while len(statements) < length:
            statements += self._next()
        made = schema(self.flavor, has_blackhole=self.has_blackhole)
        return Script(schema=made, statements=tuple(statements))

    def _opening(self) -> Iterator[str]:
        yield f"set binlog_format={self._random.choice(_FORMATS)}"
        if self._random.random() < 0.3:
            yield "set binlog_direct_non_transactional_updates=1"
        if self._random.random() < 0.2:
            yield "set autocommit=0"
        if self._random.random() < 0.15:
            level = self._random.choice(("read committed", "read uncommitted", "serializable"))
            yield f"set session transaction isolation level {level}"

    def _next(self) -> list[Statement]:
        kinds: tuple[tuple[int, Callable[[], Statement | list[Statement] | str]], ...] = (
            (14, self._control),
            (4, self._setting),
            (22, self._insert),
            (8, self._change),
            (8, self._from_query),
            (5, self._several),
            (6, self._failing),
            (7, self._routine),
            (7, self._temporary_table),
            (4, self._ddl),
            (3, self._create_select),
            (3, self._prepared),
            (3, self._upsert),
            (2, self._administration),
            (2, self._of_flavor),
            (1, self._distributed),
            (3, self._foreign_keys),
            (2, self._locks),
            (2, self._dynamic),
            (2, self._branches),
            (2, self._defaults),
            (1, self._black_hole),
            (2, self._partitions),
            (3, self._joined_views),
            (2, self._counting_functions),
            (2, self._load_data),
            (2, self._empty_tables),
            (3, self._expressions),
            (3, self._failing_otherwise),
            (3, self._transaction),
            (2, self._characteristics),
            (2, self._signals),
            (2, self._locked_transaction),
            (2, self._sequences),
            (1, self._renamed_temporary),
        )
        weights = [weight for weight, _ in kinds]
        made = self._random.choices(kinds, weights)[0][1]()
        if isinstance(made, str):
            made = Statement(sql=made)
        return made if isinstance(made, list) else [made]

    def _new_key(self) -> int:
        self._key += 10
        return self._key

    def _pick(self, *names: str) -> str:
        return self._random.choice(names)

    def _table(self) -> str:
        """Any table of two columns that is written directly."""
        names = (*_PLAIN, *_PLAIN, "tp", "mm", "v_t", "v_n", *_TRIGGERED, *self._temporary * 2)
        return self._pick(*names)

    def _plain_table(self) -> str:
        """Any table without triggers: a statement may read what triggers write."""
        return self._pick(*_PLAIN, *_PLAIN, "tp", "mm", "v_t", "v_n", *self._temporary * 2)

    def _value(self) -> str:
        return self._pick(*_EXPRESSIONS)

    def _control(self) -> str:
        return self._pick(
            *("begin",) * 6,
            *("commit",) * 5,
            *("rollback",) * 4,
            *("savepoint s1", "savepoint s2") * 2,
            *("rollback to s1", "rollback to savepoint s2") * 2,
            "release savepoint s1",
            "start transaction with consistent snapshot",
            "commit and chain",
            "rollback and chain",
            "set autocommit=1",
            "set autocommit=0",
        )

    def _setting(self) -> str:
        isolation = "tx_isolation" if self.flavor == "mariadb" else "transaction_isolation"
        return self._pick(
            *(f"set binlog_format={name}" for name in _FORMATS),
            *(f"set session binlog_format='{name.upper()}'" for name in _FORMATS),
            f"set binlog_direct_non_transactional_updates={self._pick('0', '1')}",
            f"set session {isolation}='{self._pick('READ-COMMITTED', 'REPEATABLE-READ')}'",
            "set transaction isolation level read committed",
            f"set sql_log_bin={self._pick('0', '1', '1', '1')}",
            "set @uv='u'",
            "set @uv=5",
            f"set @r=f_t({self._new_key()})",
            f"set @r=f_n({self._new_key()})",
            f"set autocommit={self._pick('0', '1')}",
            self._time(),
            f"set insert_id={self._key + 5}",
            f"set last_insert_id={self._key}",
            "use d",
        )

    def _time(self) -> str:
        """Rows of versioned tables have no history of times before they were made."""
        self._is_timeless = False
        return f"set timestamp={self._pick('1', '1000', 'default')}"

    def _insert(self) -> str:
        key = self._new_key()
        kind = self._random.random()
        value = self._value()
        table = self._plain_table() if "select" in value else self._table()
        if kind < 0.15:
            return f"insert into {self._pick('ta', 'na')}(b) values({value})"
        if kind < 0.2:
            return f"insert into ts(g) values({key})"
        if kind < 0.25:
            return f"insert into {self._pick('ta', 'na')} values({key},{value})"
        if kind < 0.3:
            return f"insert into {table}(a) values({key})"
        if kind < 0.4:
            return f"insert into {table} values({key},'m'),({key + 1},{value})"
        if kind < 0.45:
            return f"insert into {table} set a={key},b={value}"
        if kind < 0.5:
            return f"insert ignore into {table} values({key},{value})"
        return f"insert into {table} values({key},{value})"

    def _change(self) -> str:
        value = self._value()
        table = self._plain_table() if "select" in value else self._table()
        # An UPDATE that sets what is there changes nothing, but may commit as if it did.
        changed = f"concat(coalesce(b,''),left(coalesce({value},'n'),5))"
        where = self._pick("a=1", "a>=1", "a=77", "b='nope'", "a=1 or a=2", f"a={self._key}")
        return self._pick(
            *(f"update {table} set b={changed} where {where}",) * 3,
            *(f"update {table} set b=concat(b,'q') where {where}",) * 3,
            f"update {self._plain_table()} set b=b where a=1",
            f"update ignore {table} set b='i{self._new_key()}' where {where}",
            f"update {table} set b='l{self._new_key()}' where a>0 limit 1",
            f"update {table} set b='o{self._new_key()}' order by a limit 1",
            f"delete from {table} where a={self._key}",
            f"delete from {table} where a>=100",
            f"delete from {table} where a>100 limit 1",
            f"delete from {table} where a=100 and rand()<2",
            f"delete from {table} where b=concat({value},'d')",
            "update ts set g=g where g=1",
            f"update v_j set b='j{self._new_key()}' where a=1",
            "delete from parent where a=2",
            "update parent set a=a+1000 where a=1",
        )

    def _from_query(self) -> str:
        target, source = self._plain_table(), self._pick(*_PLAIN, "v_t", "v_u", *self._temporary)
        key = self._new_key() * 1000
        query = f"select a+{key},{self._pick('2', '1.5', 'uuid()', 'now()')} from {source}"
        return self._pick(
            *(f"insert into {target} {query} where a<3",) * 4,
            f"insert ignore into {target} {query} where a<3",
            f"insert into {target} {query} limit 1",
            f"insert into {target} {query} where a=77",
            f"replace into {target} {query} where a<3",
            f"insert into {self._pick('ta', 'na')}(b) select a from {source} where a<3",
            f"insert into {target} {query} where a<3 on duplicate key update b='k'",
            f"insert into {target} values({key},(select max(a) from {source} x))",
            f"select * from {source} where a=1 for update",
            f"select {self._value()}",
            f"select a into @uv from {source} where a=1",
        )

    def _several(self) -> str:
        first, second = self._pick(*_PLAIN, *self._temporary), self._pick(*_PLAIN, "tp")
        if first == second:
            second = "ta"
        return self._pick(
            f"update {first} x, {second} y set x.b=concat(x.b,'q'), y.b=concat(y.b,'q') where x.a=y.a and x.a=1",
            f"update {first} x, {second} y set x.b=concat(x.b,'q') where x.a=y.a",
            f"update {first} x join {second} y on x.a=y.a set y.b=uuid() where x.a=1",
            f"delete x from {first} x join {second} y on x.a=y.a where x.a=100",
            f"delete x, y from {first} x join {second} y on x.a=y.a where x.a>=100",
            f"delete from {first} where a in (select a+99 from {second})",
            f"update {first} set b='s{self._new_key()}' where a in (select a from {second} where a=1)",
        )

    def _failing(self) -> Statement:
        key = self._new_key()
        table = self._pick(*_PLAIN, *_PLAIN, "mm", "tp", *_TRIGGERED)
        if self._random.random() < 0.5:
            # A row that stays in tg_t has none of its trigger in t2, which a DELETE would take along.
            kept = -key if table == "tg_t" else key
            return Statement(sql=f"insert into {table} values({kept},'e'),(1,'dup')", rows=1)
        return Statement(
            sql=self._pick(
                f"insert into {table} values(1,'dup')",
                f"insert into {table} values(1,'dup'),({key},'e')",
                f"insert into {table} values(1,uuid())",
                f"insert into {self._pick('t1', 'n1')} select a,b from t2 where a=1",
                "insert into nosuch values(1)",
                "delete from nosuch",
                "insert into child values(50,99)",
            ),
            rows=0,
        )

    def _routine(self) -> str:
        key = self._new_key()
        procedure = self._pick(
            "p_t", "p_n", "p_uuid", "p_mix", "p_tx", "p_rb", "p_loop", "p_if", "p_call", "p_func"
        )
        function = self._pick("f_t", "f_n", "f_m")
        # Functions write t2 and n2: a statement on those fails in the middle.
        table = self._pick("t1", "n1", "tp", "mm", "tg_s")
        return self._pick(
            *(f"call {procedure}({key})",) * 6,
            f"call p_if(-{key})",
            f"call {self._pick('p_ddl', 'p_tmp')}({key})",
            f"do {function}({key})",
            f"select {function}({key})",
            f"select {function}({key}),{self._pick('f_t', 'f_n')}({key + 1})",
            f"insert into {table} values({key},{function}({key}))",
            f"update {table} set b=concat({function}({key}),'u{key}') where a=1",
            f"insert into {table} values({key},f_read())",
            "select f_read()",
        )

    def _temporary_table(self) -> str | list[Statement]:
        engine = self._pick("innodb", "myisam")
        if self._temporary and self._random.random() < 0.35:
            name = self._pick(*self._temporary)
            other = self._pick(*self._temporary)
            made = self._pick(
                *(f"drop temporary table {name}",) * 3,
                f"drop table {name}",
                f"drop temporary table if exists {name}, nosuch",
                f"drop table {name}, nosuch",
                f"alter table {name} comment 'c{self._key}'",
                f"drop temporary table {name}, {other}" if other != name else f"drop table {name}",
                f"create temporary table if not exists {name}(a int)",
            )
            if made.startswith("drop"):
                dropped = made.replace(",", " ").split()
                self._temporary = [kept for kept in self._temporary if kept not in dropped]
            return made
        self._serial += 1
        name = f"tmp{self._serial}"
        self._temporary.append(name)
        made = self._pick(
            *(f"create temporary table {name}(a int, b varchar(100)) engine={engine}",) * 4,
            f"create temporary table {name} engine={engine} select a,b from t1",
            f"create temporary table {name} engine={engine} select a,b from n1",
            f"create temporary table {name} engine={engine} select a,uuid() b from t1",
            f"create temporary table {name} like t1",
            f"create temporary table if not exists {name}(a int, b varchar(100)) engine={engine}",
            "drop temporary table if exists nosuch",
        )
        # As in all tables rows with 1 and 2 stand there: some servers look if a table is empty.
        if "select" in made or "nosuch" in made:
            return made
        return [Statement(sql=made), Statement(sql=f"insert into {name} values(1,'x'),(2,'y')")]

    def _ddl(self) -> str:
        engine = self._pick("innodb", "myisam")
        if self._made and self._random.random() < 0.5:
            name = self._made.pop()
            return self._pick(
                f"drop table {name}",
                f"drop table if exists {name}, nosuch",
                f"drop table {name}, nosuch",
            )
        self._serial += 1
        name = f"new{self._serial}"
        made = self._pick(
            f"create table {name}(a int, b varchar(100)) engine={engine}",
            f"create table {name} like {self._pick(*_PLAIN, *self._temporary)}",
            f"create table if not exists {name}(a int) engine={engine}",
            "create table if not exists t1(a int)",
            "create table t1(a int)",
            f"truncate table {self._pick('tp', 'nu', 'child')}",
            f"alter table {self._pick(*_PLAIN)} alter b set default 'c{self._key}'",
            f"alter table {self._pick(*_PLAIN)} comment='c'",
            f"create index i{self._key} on {self._pick(*_PLAIN)}(b)",
            f"create or replace view vv as select {self._pick('1', 'uuid()', 'a from t1')}",
            f"create database if not exists e{self._pick('1', '2')}",
            "drop database if exists e1",
            "drop table if exists nosuch",
            "drop table nosuch",
            "rename table ts to ts2, ts2 to ts",
            "drop view if exists vv",
        )
        if made.startswith("create table") and name in made:
            self._made.append(name)
        return made

    def _create_select(self) -> str:
        self._serial += 1
        name = f"new{self._serial}"
        self._made.append(name)
        engine = self._pick("innodb", "myisam")
        source = self._pick(*_PLAIN, *self._temporary)
        return self._pick(
            f"create table {name} engine={engine} select a,b from {source}",
            f"create table {name} engine={engine} as select a,uuid() u from {source}",
            f"create table {name}(k int auto_increment primary key) engine={engine}"
            f" select a from {source}",
            f"create table {name} engine={engine} select a from {source} limit 1",
            f"create table {name} engine={engine} select a from {source} where a=77",
            f"create table if not exists {name} engine={engine} select a from {source}",
            f"create table if not exists t1 engine={engine} select a from {source}",
            f"create table {name} engine={engine} select f_uuid() u, 1 c",
            f"create table {name}(a int primary key) engine={engine} ignore select a from {source}",
        )

    def _prepared(self) -> list[Statement]:
        key = self._new_key()
        table = self._pick(*_PLAIN, *_TRIGGERED)
        return [
            Statement(sql=sql)
            for sql in self._pick_list(
                [
                    f"prepare ps from 'insert into {table} values(?,?)'",
                    f"set @k={key}, @v='w'",
                    "execute ps using @k,@v",
                    "deallocate prepare ps",
                ],
                [
                    f"prepare ps from 'update {table} set b=? where a=1'",
                    f"set @v={key}.5",
                    "execute ps using @v",
                ],
                [f"prepare ps from 'insert into {table} values({key},uuid())'", "execute ps"],
                [f"prepare ps from 'insert into {table} values({key},@uv)'", "execute ps"],
            )
        ]

    def _pick_list(self, *choices: list[str]) -> list[str]:
        return self._random.choice(choices)

    def _upsert(self) -> str:
        key = self._new_key()
        return self._pick(
            f"insert into {self._plain_table()} values(1,'d') on duplicate key update b='d{key}'",
            f"insert into {self._pick('tu', 'nu')} values(1,1,5) on duplicate key update c=c+1",
            f"insert into {self._pick('tu', 'nu')} values({key},{key},5)"
            " on duplicate key update c=c+1",
            f"replace into {self._pick(*_PLAIN)} values(1,'r{key}')",
            f"replace into {self._pick(*_PLAIN)} values({key},{self._value()})",
            f"replace into {self._pick('tu', 'nu')} values({key},{key},1)",
        )

    def _administration(self) -> str:
        return self._pick(
            "analyze table t1",
            "analyze no_write_to_binlog table t1",
            "optimize table n1",
            "repair table n1",
            "check table t1",
            "flush tables",
            "flush local tables",
            "flush tables t1",
            "create user if not exists u1",
            "drop user if exists u1",
            "grant select on d.* to root@localhost",
            "show tables",
            "explain select * from t1",
            "lock tables t1 write, n1 write, t2 write",
            "unlock tables",
            "handler t1 open",
            "handler t1 close",
            "select get_lock('l',0)",
            f"alter table {self._pick(*_PLAIN)} force",
            f"flush tables {self._pick(*_PLAIN)}",
            "update performance_schema.setup_consumers set enabled=enabled",
        )

    def _of_flavor(self) -> str:
        key = self._new_key()
        if self.flavor == "mysql":
            return self._pick(
                f"insert into t1 select a+{key * 1000},b from t2 where a<3 for update nowait",
                f"insert into t1 select a+{key * 1000},b from t2 where a<3 for update skip locked",
                f"insert into n1 with c as (select a from t1 where a<3) select a+{key},'w' from c",
                "create table if not exists tj(a int) engine=innodb",
            )
        return self._pick(
            f"insert into {self._pick(*_PLAIN)} values({key},nextval(sq))",
            "do nextval(sq)",
            "select next value for sq",
            f"insert into {self._pick(*_PLAIN)} values({key},'r') returning a",
            f"delete from {self._pick(*_PLAIN)} where a>=100 returning a",
            f"execute immediate 'insert into t1 values(?,?)' using {key},'z'",
            f"set statement binlog_format=row for insert into t1 values({key},'s')",
            f"set statement binlog_format=statement for insert into {self._pick(*_PLAIN)}"
            f" values({key},uuid())",
            f"set statement sql_log_bin=0 for insert into t1 values({key},'s')",
            f"set statement foreign_key_checks=0 for insert into child values({key},1)",
            f"set statement binlog_direct_non_transactional_updates=1 for insert into n1"
            f" values({key},'s')",
            f"set statement max_statement_time=100 for call p_mix({key})",
            f"begin not atomic insert into t1 values({key},'c'); insert into n1 values({key},'c');"
            " end",
            "create or replace table newr(a int) engine=innodb",
            "create or replace table newr engine=innodb select a,b from t1",
            f"create or replace temporary table tmpr(a int) engine={self._pick('innodb', 'myisam')}",
        )

    def _distributed(self) -> list[Statement]:
        key = self._new_key()
        end = self._pick_list(
            ["xa end 'x'", "xa prepare 'x'", "xa commit 'x'"],
            ["xa end 'x'", "xa prepare 'x'", "xa rollback 'x'"],
            ["xa end 'x'", "xa commit 'x' one phase"],
            ["xa end 'x'", "xa rollback 'x'"],
        )
        inner = self._pick_list(
            [f"insert into t1 values({key},'x')"],
            [f"insert into n1 values({key},'x')"],
            ["set sql_log_bin=0", f"insert into t1 values({key},'x')"],
            ["set binlog_direct_non_transactional_updates=1", f"insert into n1 values({key},'x')"],
            [f"insert into t1 values({key},'x')", f"insert into n1 values({key},uuid())"],
            [],
        )
        made = [Statement(sql=sql) for sql in ("xa start 'x'", *inner)]
        if self._random.random() < 0.4:
            made += [*map(_stated, self._pick_list(["savepoint s1"], [])), self._failing()]
            made += map(_stated, self._pick_list(["rollback to s1"], []))
        return [*made, *map(_stated, end)]

    def _foreign_keys(self) -> str:
        key = self._new_key()
        return self._pick(
            f"insert into parent values({key},'p')",
            f"update parent set b='p{key}' where a=1",
            f"update parent set b='p{key}' where a=77",
            f"insert into child values({key},1)",
            f"insert into kid values({key},1)",
            "delete from parent where a=77",
            "delete from kid where a=77",
            "update child set p=null where a=77",
            f"insert into tree values({key},'t',1)",
            f"update tree set b='t{key}' where a=1",
            f"delete from tree where a={key}",
            f"insert into ring values({key},'t',1)",
            f"update ring set b='t{key}' where a=1",
            f"delete from ring where a={key - 10}",
            f"replace into ring values({key},'t',null)",
            f"replace into parent values({key},'r')",
            f"update parent x left join child y on x.a=y.p set x.b='h{key}' where x.a=1",
            f"update child x, kid y set y.p=y.p where x.a=y.p and x.a={key}",
            f"set foreign_key_checks={self._pick('0', '1', '1')}",
            f"insert into parent values(1,'d') on duplicate key update b='u{key}'",
            f"update parent x, child y set x.b='j{key}' where x.a=y.p and x.a=1",
        )

    def _locks(self) -> list[Statement]:
        key = self._new_key()
        locks, inner = self._random.choice(
            (
                ("t1 write", [f"insert into t1 values({key},'l')"]),
                ("t1 write, n1 write", [f"insert into n1 values({key},'l')"]),
                # MariaDB fails with 1442 where two triggers write the same table.
                (
                    ("tg_n" if self.flavor == "mysql" else "tg_s") + " write, n1 read",
                    [
                        f"update tg_{'n' if self.flavor == 'mysql' else 's'} set b='l{key}' where a=1"
                    ],
                ),
                ("tg_a write", [f"insert into tg_a values({key},'l')"]),
                ("ring write", [f"update ring set b='l{key}' where a=1"]),
                (
                    "parent write",
                    [
                        f"update parent set b='m{key}' where a=1",
                        f"insert into t2 values({key},'l')",
                    ],
                ),
                ("v_j write", [f"update v_j set b='l{key}' where a=1"]),
                ("t1 read", [f"insert into t1 values({key},'l')", "create table made(a int)"]),
                (
                    "t1 write",
                    [f"create table made{key}(a int)", "truncate table mm", "drop table t2"],
                ),
                (
                    "t1 write, t2 read",
                    [f"insert into t1 select a+{key},b from t2 where a=1", "select * from v_t"],
                ),
                (
                    "t1 write",
                    [f"insert into t1 values({key},f_t({key}))", "create view vv2 as select 1"],
                ),
                ("parent write", [f"update parent set b='l{key}' where a=1"]),
                ("v_t write", [f"insert into v_t values({key},'l')"]),
                (
                    "n1 write, t2 read",
                    ["begin", f"insert into n1 select a+{key},b from t2 where a<3"],
                ),
                (
                    "t1 read, n2 write",
                    ["select count(*) from t1", f"insert into n2 values({key},'l')"],
                ),
            )
        )
        return [Statement(sql=sql) for sql in (f"lock tables {locks}", *inner, "unlock tables")]

    def _dynamic(self) -> list[Statement]:
        key = self._new_key()
        table = self._pick(*_PLAIN)
        choices = [
            [
                f"set @s=if(1=1,'insert into {table} values({key},''d'')','select 1')",
                "prepare ds from @s",
                "execute ds",
                "deallocate prepare ds",
            ],
            [
                f"set @s=concat('update {table} set b=''c{key}'' where a=','1')",
                "prepare ds from @s",
            ],
            [f"call p_dyn({key})"],
            ["prepare ds from 'select 1'", "execute ds", "drop prepare ds", "execute ds"],
        ]
        choices[1].append("execute ds")
        return [Statement(sql=sql) for sql in self._random.choice(choices)]

    def _branches(self) -> str:
        key = self._new_key()
        return self._pick(
            f"call p_data({key})",
            f"call p_case({key})",
            f"call p_case({key + 1})",
            f"call p_case({key + 2})",
            f"call p_handle({key})",
        )

    def _defaults(self) -> str:
        key = self._new_key()
        choices = [
            f"insert into du(a) values({key})",
            f"insert into du values({key},default)",
            f"insert into du values({key},'x')",
            f"update du set b='x{key}' where a=1",
            "delete from du where a=77",
            f"insert into du(a) select a+{key * 1000} from t1 where a<3",
        ]
        if self.flavor == "mariadb":
            choices += [
                f"insert into dq(b) values('s{key}')",
                f"insert into dq values({key},'n')",
                f"insert into vs values({key},'v')",
            ]
            if self._is_timeless:
                choices += [
                    f"update vs set b='v{key}' where a=1",
                    f"delete from vs where a={key - 10}",
                ]
        return self._pick(*choices)

    def _black_hole(self) -> str:
        key = self._new_key()
        if not self.has_blackhole:
            return f"insert into tp values({key},'b')"
        return self._pick(
            f"insert into bh values({key},'b')",
            "update bh set b='q' where a=1",
            "update bh set b='q' where a>1",
            "update bh set b='q'",
            "delete from bh where a=1",
            "delete from bh where b='x'",
            f"insert into bh select a+{key},b from t1 where a<3",
            f"update t1 left join bh on t1.a=bh.a set t1.b='h{key}' where t1.a=1",
            f"update t1 left join bh on t1.a=bh.a set t1.b='i{key}', bh.b='i' where t1.a=1",
            "update bh, n1 set bh.b='x' where bh.a=n1.a",
            f"delete t1 from t1 left join bh on t1.a=bh.a where t1.a={key}",
            "update bh left join n1 on 1=1 set bh.b='z'",
        )

    def _partitions(self) -> str:
        work = self._pick("check", "analyze", "optimize", "rebuild", "truncate")
        return f"alter table tp {work} partition p0"

    def _joined_views(self) -> str:
        key = self._new_key()
        return self._pick(
            f"update v_j set c='c{key}' where a=1",
            f"update v_3 set b='b{key}' where a=1",
            f"update v_3 set d='d{key}' where a=1",
            f"update v_j x, t2 y set x.b='x{key}' where x.a=y.a and y.a=1",
            f"update v_j x, t2 y set y.b='y{key}' where x.a=y.a and y.a=1",
            f"update v_3, tp set v_3.c='t{key}' where v_3.a=tp.a and tp.a=1",
            f"insert into v_j(a,b) values({key},'j')",
            f"delete t2 from v_j join t2 on v_j.a=t2.a where t2.a={key}",
            f"insert into tp select a+{key},c from v_j where a=1",
            "update v_j set b=uuid() where a=1",
        )

    def _counting_functions(self) -> str:
        key = self._new_key()
        return self._pick(
            f"insert into t1 values({key},f_a({key}))",
            f"insert into parent values({key},f_a({key}))",
            f"insert into child values({key},f_a(1))",
            f"insert into n1 values({key},f_a({key}))",
            f"update parent set b=concat(f_a({key}),'p') where a=1",
            f"replace into parent values({key},f_a({key}))",
            f"do f_a({key})",
            f"insert into parent values({key},f_t({key}))",
            f"insert into ring values({key},f_a({key}),null)",
        )

    def _load_data(self) -> str:
        """From a file of two rows, `1<TAB>one` and `2<TAB>two`, in the data directory."""
        key = self._new_key()
        table = self._pick("t1", "n1", "t2", "n2", "tp", "mm", "tg_s")
        return self._pick(
            f"load data infile './rows.txt' into table {table} (@a,@b) set a=@a+{key},b=@b",
            f"load data infile './rows.txt' into table {table} (@a,b) set a=@a+{key}",
            f"load data infile './rows.txt' into table {table} (@a,b) set a=@a+{key},b=concat(b,@uv)",
            f"load data infile './rows.txt' into table {table} (@a,b) set a=@a+{key},b=uuid()",
            "load data infile './rows.txt' into table ta (@a,b)",
        )

    def _empty_tables(self) -> list[Statement]:
        """A table that is changed before anything is in it."""
        self._serial += 1
        name, key = f"emp{self._serial}", self._new_key()
        engine = self._pick("innodb", "myisam", "memory")
        kind = self._pick("temporary table", "table")
        texts = (
            f"create {kind} {name}(a int primary key, b varchar(100)) engine={engine}",
            self._pick(f"update {name} set b='e' where b='x'", f"delete from {name} where b='x'"),
            self._pick(
                f"update {name} set b=uuid() where b is not null",
                f"delete from {name} where b>'x' limit 1",
            ),
            f"insert into {name} values({key},'e')",
            f"update {name} set b='f' where b='e'",
            f"drop {kind} {name}",
        )
        return [Statement(sql=sql) for sql in texts]

    def _expressions(self) -> str:
        """CREATE … SELECT as rows: their columns are what the expressions make."""
        self._serial += 1
        name = f"new{self._serial}"
        self._made.append(name)
        source = self._pick(*_PLAIN)
        picked = self._random.sample(_SELECTED, 3)
        items = ", ".join(f"{item} c{index}" for index, item in enumerate(picked))
        return f"create table {name} engine={self._pick('innodb', 'myisam')} select {items}, uuid() u from {source}"

    def _failing_otherwise(self) -> Statement:
        """Statements that fail behind rows of other kinds, and such as change no row before."""
        key = self._new_key()
        table = self._pick(*_PLAIN, "mm", "tp")
        if self._random.random() < 0.6:
            return Statement(
                sql=self._pick(
                    f"insert into {self._pick('ta', 'na')} values({key},'e'),(1,'dup')",
                    f"insert into {self._pick('ta', 'na')} values(null,'e'),(1,'dup')",
                    f"insert into {self._pick('ta', 'na')}(b,a) values('e',null),(uuid(),1)",
                    f"insert into {self._pick('tu', 'nu')} values({key},{key},1),({key + 1},1,1)",
                    f"insert into {table} values({key},uuid()),(1,'dup')",
                    f"insert into {table} values({key},@uv),(1,'dup')",
                    f"insert into {table} select {key},'e' union all select 1,'dup'",
                    f"insert into child values({key},1),({key + 1},99)",
                    f"insert into du(a) values({key}),(1)",
                ),
                rows=1,
            )
        return Statement(
            sql=self._pick(
                f"update {table} set a=2 where a=1",
                "update t1 x, n1 y set x.a=2 where x.a=1 and y.a=1",
                "update n1 x, t1 y set x.a=2 where x.a=1 and y.a=1",
                f"load data infile './rows.txt' into table {table} (a,b)",
            ),
            rows=0,
        )

    def _transaction(self) -> list[Statement]:
        """Both kinds of engines, failures and savepoints in one transaction."""
        made = [_stated(self._pick("begin", "begin", "set autocommit=0"))]
        points = self._random.sample(("s1", "S2", "s1"), 2)
        for point in points:
            made.append(self._random.choice((self._failing, self._failing_otherwise))())
            made.append(_stated(f"savepoint {point}"))
            made.append(_stated(self._insert()))
        made.append(self._random.choice((self._failing, self._failing_otherwise))())
        made.append(
            _stated(
                self._pick(
                    f"rollback to {points[0]}",
                    f"rollback to {points[1]}",
                    f"release savepoint {points[1]}",
                    "rollback to nosuch",
                )
            )
        )
        made.append(_stated(self._insert()))
        end = self._pick("commit", "rollback", "commit and chain", "rollback and chain", "begin")
        return [*made, _stated(end)]

    def _characteristics(self) -> str:
        key = self._new_key()
        level = self._pick("read uncommitted", "repeatable read", "serializable", "read committed")
        return self._pick(
            f"set transaction isolation level {level}",
            f"set session transaction isolation level {level}",
            *("set session transaction isolation level repeatable read",) * 2,
            "set transaction read only",
            "start transaction read only",
            "start transaction read write",
            "commit and no chain",
            "rollback and no chain",
            f"set completion_type={self._pick('0', '0', '1')}",
            f"call p_level({key})",
            f"call p_format({key})",
            f"call p_unlogged({key})",
            f"call p_commits({key})",
            f"select f_format(), f_t({key})",
            f"insert into t1 values({key},f_format())",
        )

    def _signals(self) -> Statement | str:
        key = self._new_key()
        table = self._pick("tg_e", "tg_f")
        if self._random.random() < 0.4:
            before = self._pick("", f"({key + 1},'ok'),")
            return Statement(sql=f"insert into {table} values {before}({key},'bad')", rows=1)
        choices = [
            f"insert into {table} values({key},'ok')",
            f"call p_signal({key})",
            f"call p_undo({key})",
            f"call p_point({key})",
        ]
        if self.flavor == "mariadb":
            choices.append(
                f"begin not atomic insert into n1 values({key},'c'); insert into t1 values({key},'c');"
                " signal sqlstate '45000'; end"
            )
        return self._pick(*choices)

    def _locked_transaction(self) -> list[Statement]:
        """LOCK TABLES without autocommit: transactions end, and the locks stay."""
        made = ["set autocommit=0"] if self._random.random() < 0.7 else []
        made.append(
            "lock tables "
            + self._pick("t1 write, n1 write, t2 write", "t1 write, n1 read, n2 write")
        )
        statements = [_stated(sql) for sql in made]
        for _ in range(4):
            key, table = self._new_key(), self._pick("t1", "n1", "t2")
            statements.append(
                self._random.choice(
                    (
                        _stated(f"insert into {table} values({key},{self._value()})"),
                        Statement(sql=f"insert into {table} values({key},'l'),(1,'dup')", rows=1),
                        Statement(sql=f"insert into {table} values(1,'dup')", rows=0),
                        _stated(self._pick("commit", "rollback", "savepoint s1", "rollback to s1")),
                        _stated(f"update {table} set b='k{key}' where a=1"),
                    )
                )
            )
        return [*statements, _stated(self._pick("unlock tables", "unlock tables", "begin"))]

    def _sequences(self) -> str:
        """Sequences that are made and changed: of a name that is there or not."""
        if self.flavor == "mysql":
            return f"insert into t1 select a+{self._new_key() * 1000},b from n2 where a<3"
        key = self._new_key()
        name = self._pick("sq1", "sq2")
        return self._pick(
            f"create sequence {name}{self._pick('', ' engine=myisam', ' nocache')}",
            f"create or replace sequence {name} start with {key}",
            f"create sequence if not exists {name}",
            f"create temporary sequence if not exists {name}",
            f"drop sequence if exists {name}",
            f"drop sequence {name}",
            f"alter sequence if exists {name} restart {key}",
            f"do setval({name},{key})",
            f"select nextval({name})",
            f"select lastval({name})",
            f"insert into {self._pick(*_PLAIN)} values({key},nextval({name}))",
        )

    def _renamed_temporary(self) -> str:
        """Temporary tables that are altered otherwise; those of other statements keep their names."""
        if not self._temporary:
            return "truncate table nosuch"
        name, key = self._pick(*self._temporary), self._new_key()
        return self._pick(
            f"alter table {name} engine={self._pick('innodb', 'myisam')}",
            f"alter table {name} add column c int, drop column c",
            f"rename table {name} to moved, moved to {name}",
            f"insert into {self._pick(*_PLAIN)} select {key},max(b) from {name}",
        )


def _stated(sql: str) -> Statement:
    return Statement(sql=sql)
