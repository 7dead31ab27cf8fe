"""Random grants and the statements of an account that has them; random account statements."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

OWN: Final = "u@localhost"
ACCOUNTS: Final = (
    "CREATE USER w@'%'",
    f"CREATE USER {OWN}",
    "CREATE ROLE r",
    "CREATE ROLE s",
)
SCHEMA: Final = (
    "CREATE DATABASE d",
    "CREATE DATABASE e",
    "USE d",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "CREATE TABLE u (a INT PRIMARY KEY, b INT)",
    "CREATE TABLE e.t (a INT, b INT)",
    "CREATE TABLE l (a INT)",
    "CREATE TABLE tt (a INT, b INT)",
    "CREATE VIEW v AS SELECT a, b FROM t",
    "CREATE SQL SECURITY INVOKER VIEW vi AS SELECT a, b FROM u",
    "CREATE DEFINER=w@'%' VIEW vw AS SELECT a, b FROM u",
    "CREATE DEFINER=nobody@'%' VIEW vn AS SELECT a FROM t",
    "CREATE PROCEDURE p() INSERT INTO t VALUES (1, 1)",
    "CREATE PROCEDURE q() SQL SECURITY INVOKER INSERT INTO u VALUES (1, 1)",
    "CREATE DEFINER=w@'%' PROCEDURE pw() INSERT INTO u VALUES (2, 2)",
    "CREATE DEFINER=nobody@'%' PROCEDURE pn() SELECT 1",
    "CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO l VALUES (1); RETURN 1; END",
    "CREATE FUNCTION g() RETURNS INT SQL SECURITY INVOKER BEGIN INSERT INTO l SELECT 1; RETURN 1; END",
    "CREATE DEFINER=w@'%' FUNCTION fw() RETURNS INT BEGIN INSERT INTO l VALUES (2); RETURN 1; END",
    "CREATE DEFINER=w@'%' TRIGGER tr BEFORE INSERT ON tt FOR EACH ROW INSERT INTO l VALUES (NEW.a)",
    "CREATE EVENT ev ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
)
_OF_TABLES: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES"),
    *("CREATE VIEW", "SHOW VIEW", "TRIGGER"),
)
_OF_DATABASES: Final = (
    *_OF_TABLES,
    *("CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE ROUTINE", "ALTER ROUTINE"),
    "EVENT",
)
_OF_SERVERS: Final = (*_OF_DATABASES, "RELOAD", "SUPER", "CREATE USER", "FILE", "PROCESS")
_DYNAMIC: Final = (
    *("SYSTEM_VARIABLES_ADMIN", "SESSION_VARIABLES_ADMIN", "SET_ANY_DEFINER", "ROLE_ADMIN"),
)
_SPLIT: Final = ("BINLOG ADMIN", "BINLOG REPLAY", "SET USER", "READ_ONLY ADMIN")
_READING_AND_WRITING: Final = """
SELECT a FROM t; SELECT * FROM t; SELECT b FROM u WHERE a = 1; SELECT COUNT(*) FROM t
SELECT 1 FROM t; INSERT INTO t VALUES (10, 1); INSERT INTO t (a) VALUES (11)
INSERT INTO t (b, a) VALUES (1, 12); INSERT INTO t SELECT a + 100, b FROM u
REPLACE INTO t VALUES (10, 2); INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2
UPDATE t SET b = 1; UPDATE t SET b = a; UPDATE t SET b = 1 WHERE a = 1
UPDATE t SET b = (SELECT MAX(a) FROM u); UPDATE t, u SET t.b = u.b; DELETE FROM t
UPDATE t, u SET t.b = 1 WHERE t.a = u.a; DELETE FROM t WHERE a = 3
DELETE t FROM t, u WHERE t.a = u.a; DELETE FROM t WHERE a IN (SELECT a FROM u)
INSERT INTO u (b, a) VALUES (3, 70); UPDATE u SET b = 3; DELETE FROM u WHERE b = 8
SELECT a FROM v; INSERT INTO v VALUES (30, 1); UPDATE v SET b = 2; DELETE FROM v WHERE a = 99
SELECT a FROM vi; INSERT INTO vi VALUES (33, 3); UPDATE vi SET b = 4; SELECT a FROM vw
INSERT INTO vw VALUES (34, 4); UPDATE vw SET b = 5; SELECT a FROM vn; SELECT v.a FROM v, u
CALL p(); CALL q(); CALL pw(); CALL pn(); CALL nosuch(); SELECT f(); SELECT g(); SELECT fw()
DO f(); INSERT INTO l VALUES (f()); INSERT INTO tt VALUES (1, 1); INSERT INTO tt (a) VALUES (1)
UPDATE tt SET a = 2; INSERT INTO e.t VALUES (1, 1); SELECT * FROM e.t
INSERT INTO nosuch VALUES (1); SELECT * FROM nosuch; SELECT * FROM nodb.t
SET @a = 1; SET @a = (SELECT MAX(a) FROM t); PREPARE st FROM 'SELECT a FROM t'
LOAD DATA INFILE '/nosuch' INTO TABLE t; HANDLER t OPEN
"""
_DEFINING: Final = """
CREATE TABLE n (a INT); CREATE TABLE IF NOT EXISTS n (a INT); CREATE TABLE n2 LIKE t
CREATE TABLE n3 SELECT a FROM t; CREATE TABLE n4 AS SELECT 1 x
CREATE TEMPORARY TABLE tmp1 (a INT); CREATE TABLE e.n (a INT); DROP TABLE n
DROP TABLE IF EXISTS n; DROP TABLE n, n2; DROP TABLE nosuch; ALTER TABLE u ADD c INT
ALTER TABLE u RENAME TO u2; RENAME TABLE u2 TO u; RENAME TABLE u TO u9; TRUNCATE TABLE l
CREATE INDEX i ON t (b); CREATE VIEW x1 AS SELECT a FROM t; DROP VIEW x1
CREATE OR REPLACE VIEW x1 AS SELECT b FROM u; CREATE VIEW x2 AS SELECT 1; ALTER VIEW x2 AS SELECT 2
CREATE VIEW x4 AS SELECT * FROM u; DROP VIEW IF EXISTS x1, x2, x4
CREATE TRIGGER tr2 BEFORE INSERT ON u FOR EACH ROW SET @a = 1; DROP TRIGGER tr2; DROP TRIGGER tr
CREATE PROCEDURE pp() SELECT 1; DROP PROCEDURE pp; DROP PROCEDURE p; ALTER PROCEDURE q COMMENT 'x'
CREATE EVENT ee ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1; DROP EVENT ee; DROP EVENT nosuch
CREATE DEFINER=w PROCEDURE pd() SELECT 1; CREATE DEFINER=root@localhost VIEW xd AS SELECT 1
CREATE DATABASE x; DROP DATABASE x; ALTER DATABASE d CHARACTER SET latin1; DROP DATABASE e
LOCK TABLES t READ; UNLOCK TABLES; LOCK TABLES u WRITE; UNLOCK TABLES; ANALYZE TABLE t
OPTIMIZE TABLE t; FLUSH TABLES; FLUSH PRIVILEGES; USE e; USE d; USE nodb; USE mysql
"""
_ADMINISTRATION: Final = """
CREATE USER z; DROP USER z; CREATE ROLE zr; DROP ROLE zr; GRANT SELECT ON d.t TO w
GRANT SELECT ON d.* TO w; GRANT SELECT ON *.* TO w; GRANT INSERT (a) ON d.t TO w
GRANT EXECUTE ON PROCEDURE d.p TO w; GRANT r TO w; REVOKE SELECT ON d.t FROM w
SET PASSWORD = ''; SET PASSWORD FOR w = ''; ALTER USER w ACCOUNT UNLOCK; SET ROLE r; SET ROLE NONE
SET ROLE s; SET ROLE nosuch; SET SESSION binlog_format = ROW; SET SESSION sql_log_bin = 1
SET GLOBAL max_connections = 151; SET SESSION binlog_row_image = FULL
SET SESSION sort_buffer_size = 32768; SET GLOBAL binlog_format = ROW; SET foreign_key_checks = 1
SET SESSION pseudo_thread_id = 1
"""
_OF_MARIADB: Final = """
CREATE OR REPLACE TABLE n (a INT); SET SESSION gtid_domain_id = 0; SET SESSION server_id = 1
INSERT INTO t VALUES (50, 1) RETURNING a; DELETE FROM t WHERE a = 3 RETURNING b
"""
_OF_MYSQL: Final = """
SET SESSION gtid_next = 'AUTOMATIC'; SET PERSIST max_connections = 151; SET ROLE ALL
SET ROLE DEFAULT
"""


def statements(seed: int, flavor: str, count: int) -> list[str]:
    """What the account runs."""
    texts = (_READING_AND_WRITING, _DEFINING, _ADMINISTRATION)
    text = "".join((*texts, _OF_MARIADB if flavor == "mariadb" else _OF_MYSQL))
    known = [one.strip() for line in text.strip().splitlines() for one in line.split(";")]
    return random.Random(seed).sample(known, count)


def grants(seed: int, flavor: str) -> list[str]:
    """What it and the others are granted; some of these the server does not take."""
    chance = random.Random(seed)
    return [_grant(chance, flavor) for _ in range(chance.randint(1, 9))]


def _grant(chance: random.Random, flavor: str) -> str:
    kind = chance.random()
    if kind < 0.06:
        more = _DYNAMIC if flavor == "mysql" else _SPLIT
        # MySQL takes no dynamic privileges together with others.
        source = more if chance.random() < 0.3 else _OF_SERVERS
        names, on = _some(chance, source, 3), "*.*"
    elif kind < 0.35:
        places = ("d.*", "d.*", "e.*", "`%`.*", "`_`.*", "`d%`.*")
        names, on = _some(chance, _OF_DATABASES, 6), chance.choice(places)
    elif kind < 0.7:
        tables = ("t", "u", "l", "v", "vi", "vw", "tt", "t", "u")
        names, on = _some(chance, _OF_TABLES, 5), f"d.{chance.choice(tables)}"
    elif kind < 0.85:
        columns = chance.choice(("a", "b", "a, b"))
        some = _some(chance, ("SELECT", "INSERT", "UPDATE", "REFERENCES"), 2).split(", ")
        names = ", ".join(f"{name} ({columns})" for name in some)
        on = f"d.{chance.choice(('t', 'u', 'v', 'vi', 'tt'))}"
    elif kind < 0.95:
        names = "EXECUTE" if chance.random() < 0.8 else "ALTER ROUTINE"
        routines = ("PROCEDURE d.p", "PROCEDURE d.q", "FUNCTION d.f", "FUNCTION d.g")
        on = chance.choice((*routines, "PROCEDURE d.pw", "FUNCTION d.fw", "PROCEDURE d.pn"))
    else:
        default = f"SET DEFAULT ROLE r {'TO' if flavor == 'mysql' else 'FOR'} {OWN}"
        return chance.choice((f"GRANT r TO {OWN}", "GRANT s TO r", f"GRANT s TO {OWN}", default))
    who = chance.choice((*(OWN,) * 5, "w", "w", "r", "s"))
    is_on = chance.random() < 0.07 and "(" not in names
    return f"GRANT {names} ON {on} TO {who}{' WITH GRANT OPTION' if is_on else ''}"


def _some(chance: random.Random, names: Sequence[str], most: int) -> str:
    return ", ".join(chance.sample(names, chance.randint(1, min(most, len(names)))))


# Account statements ---------------------------------------------------------------------------

ACCOUNT_SCHEMA: Final = (
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
    "CREATE PROCEDURE p() SELECT 1",
    "CREATE FUNCTION f() RETURNS INT RETURN 1",
    "CREATE USER u1, u2",
    "CREATE ROLE r1, r2",
)
_USERS: Final = ("u1", "u2", "u1@localhost", "u3")
_ROLES: Final = ("r1", "r2", "r3")
_NAMES: Final = (*_USERS, *_ROLES, "nosuch")
_PLACES: Final = (
    *("*.*", "d.*", "d.t", "d.t", "d.n", "nodb.*", "PROCEDURE d.p", "FUNCTION d.f"),
    *("PROCEDURE d.nosuch", "`d%`.*", "*", "t"),
)


def account_statements(seed: int, flavor: str, count: int) -> list[str]:
    """What root runs."""
    chance = random.Random(seed)
    return [_account_statement(chance, flavor) for _ in range(count)]


def _account_statement(chance: random.Random, flavor: str) -> str:
    is_mysql, pick = flavor == "mysql", chance.choice

    def some(names: Sequence[str]) -> str:
        return _some(chance, names, 2)

    def privileges() -> str:
        if chance.random() < 0.15:
            return pick(("SELECT (a)", "INSERT (a, b)", "UPDATE (b), SELECT (a)", "SELECT (zz)"))
        return "ALL" if chance.random() < 0.1 else _some(chance, (*_OF_TABLES, "EXECUTE"), 3)

    def role() -> str:
        return some(_ROLES) if is_mysql else pick((*_ROLES, "nosuch"))

    default = "TO" if is_mysql else "FOR"
    made: Sequence[Callable[[], str]] = (
        lambda: f"CREATE USER {pick(('', 'IF NOT EXISTS '))}{some(_USERS)}",
        lambda: f"CREATE ROLE {pick(('', 'IF NOT EXISTS '))}{some(_ROLES)}",
        lambda: f"DROP USER {pick(('', 'IF EXISTS '))}{some(_NAMES)}",
        lambda: f"DROP ROLE {pick(('', 'IF EXISTS '))}{some((*_ROLES, 'u2', 'nosuch'))}",
        lambda: f"RENAME USER {pick(_NAMES)} TO {pick((*_NAMES, 'z'))}",
        lambda: f"GRANT {privileges()} ON {pick(_PLACES)} TO {some(_NAMES)}",
        lambda: f"GRANT {privileges()} ON {pick(_PLACES)} TO {some(_USERS[:2])} WITH GRANT OPTION",
        lambda: f"REVOKE {privileges()} ON {pick(_PLACES)} FROM {some(_NAMES)}",
        lambda: f"GRANT {role()} TO {some(_NAMES)}{pick(('', ' WITH ADMIN OPTION'))}",
        lambda: f"GRANT {pick(_ROLES)} TO {pick(_USERS)}",
        lambda: f"REVOKE {role()} FROM {some(_NAMES)}",
        lambda: f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {some(_USERS)}",
        lambda: f"ALTER USER {pick(('', 'IF EXISTS '))}{some(_NAMES)} ACCOUNT LOCK",
        lambda: f"SET PASSWORD FOR {pick(_NAMES)} = ''",
        lambda: f"SET ROLE {pick((*_ROLES, 'NONE', 'nosuch'))}",
        lambda: f"SET DEFAULT ROLE {pick((*_ROLES, 'NONE'))} {default} {pick(_NAMES)}",
        lambda: f"GRANT PROXY ON {pick(_NAMES)} TO {pick(_NAMES)}",
        lambda: f"REVOKE PROXY ON {pick(_NAMES)} FROM {pick(_NAMES)}",
    )
    return pick(made)()
