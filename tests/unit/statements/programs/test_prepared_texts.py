"""Texts that are prepared are read as their session reads: quotes and escapes, comments too."""

from __future__ import annotations

from binlane.statements.check.checker import Checker
from binlane.statements.policy.server import Server

SCHEMA = "CREATE DATABASE d; USE d; CREATE TABLE t (a TEXT, b TEXT) ENGINE=InnoDB;"
SCRIPT = r"""
SET binlog_format = STATEMENT;
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
EXECUTE IMMEDIATE "INSERT INTO t VALUES ('\', '/*!99999 x */')";
"""


def test_what_looks_like_a_comment_in_a_string_stays() -> None:
    checker = Checker(Server.parse("mariadb"), SCHEMA, None)
    *_, executed = checker.check(SCRIPT)
    texts = [info for _, info in executed.result.binlogs["binlog"].events]
    assert any(r"INSERT INTO t VALUES ('\', '/*!99999 x */')" in text for text in texts), texts
