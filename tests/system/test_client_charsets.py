"""Statements in character sets in which they are not what they would be in UTF-8, on real servers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import pytest

from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.framing import text_of
from binlane.log.codec.packets.replies import ErrPacket, is_error
from tests.judged_port import Answered, PortRecorder, judged
from tests.lent_servers import LENT
from tests.raw_client import CAPABILITIES, RawClient
from tests.serve_process import ServeProcess
from tests.servers import execute

_REFUSED: Final = 1
_BINLOGS: Final = ("statement", "scoped")


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def serve(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("charsets")
    with (
        LENT.lend_source(request.param) as source,
        judged(directory / "serve", source) as process,
    ):
        execute(
            source,
            "SET GLOBAL log_bin_trust_function_creators = 1",
            "CREATE DATABASE d",
            "CREATE TABLE d.inside (a VARCHAR(40) CHARACTER SET utf8mb4)",
            "CREATE TABLE d.u (a VARCHAR(40) CHARACTER SET utf8mb4)",
            "CREATE FUNCTION d.`~`(x INT) RETURNS INT"
            " BEGIN INSERT INTO d.u VALUES (1); INSERT INTO d.inside VALUES (1); RETURN x; END",
        )
        process.execute_as_root(
            "CREATE BINLOG 'statement' FORMAT='STATEMENT'",
            "CREATE BINLOG 'scoped' FORMAT='STATEMENT', LOG(d.inside, d.`ÄtÅ`)",
        )
        yield process


def _answered(serve: ServeProcess, *statements: str | bytes) -> list[Answered]:
    recorder = PortRecorder(serve, _BINLOGS)
    texts = [text_of(one) if isinstance(one, bytes) else one for one in statements]
    try:
        return list(recorder.run(texts))
    finally:
        recorder.close()


def _texts(answered: Answered, binlog: str) -> list[str]:
    return [
        event.info.removeprefix("use `d`; ").partition(" /* xid")[0]
        for event in answered.events[binlog]
        if event.type == "Query" and event.info not in ("BEGIN", "COMMIT")
    ]


def _errors(made: Sequence[Answered]) -> list[int | None]:
    return [one.error for one in made]


def _empty(serve: ServeProcess) -> None:
    execute(serve.source, "DELETE FROM d.u", "DELETE FROM d.inside")


def test_letters_of_swe7(serve: ServeProcess) -> None:
    made = _answered(
        serve,
        "SET character_set_client = swe7",
        "CREATE TABLE [t] (a VARCHAR(40))",
        "CREATE TABLE `[t]` (a VARCHAR(40) CHARACTER SET utf8mb4, b{c INT)",
        "INSERT INTO [t] VALUES ('[')",
        "INSERT INTO `[t]` VALUES ('@', 1)",
        "UPDATE [t], `[t]` SET [t].a = 'x', `[t]`.a = 'y'",
        "SELECT ~ (1)",
        "UPDATE [t], u SET [t].a = 'x', u.a = 'y'",
        "DROP TABLE [t]",
        "ALTER TABLE `[t]` DROP b{c",
    )
    assert _errors(made) == [None] * 5 + [_REFUSED] * 2 + [None] * 4
    assert [_texts(one, "scoped") for one in made if _texts(one, "scoped")] == [
        [made[number].sql] for number in (2, 4, 9)
    ]
    for number in (1, 2, 3, 4, 9):
        assert made[number].sql in _texts(made[number], "statement")
    assert execute(serve.source, "SELECT COUNT(*) FROM d.u") == ((0,),)
    assert execute(serve.source, "SELECT a FROM d.`ÄtÅ`") == (("É",),)
    execute(serve.source, "DROP TABLE d.`ÄtÅ`")


def test_what_is_run_beside_the_port_brings_in_no_outside_name(serve: ServeProcess) -> None:
    execute(
        serve.source,
        "USE d",
        "SET NAMES swe7",
        "CREATE TABLE [zz] (a INT)",
        "ALTER TABLE [zz] ADD b INT",
        "CREATE TABLE `[t]` (later INT)",
        "RENAME TABLE [zz] TO zz",
        "DROP TABLE zz, `[t]`",
        "CREATE TABLE [t] (outside INT)",
        "DROP TABLE [t]",
    )
    serve.wait_until_complete("scoped")
    data = serve.binlog_bytes("scoped")
    assert b"CREATE TABLE `[t]` (later INT)" in data
    assert re.search(rb"DROP TABLE [^\0]*`\[t\]`", data)
    assert b"zz" not in data
    assert b"outside" not in data


def test_white_space_and_comments_of_one_byte(serve: ServeProcess) -> None:
    made = _answered(
        serve,
        "SET character_set_client = latin1",
        b"INSERT\xa0INTO\xa0u\xa0VALUES\xa0('\xe9')",
        b"UPDATE\xa0inside,\xa0u\xa0SET inside.a = 'x', u.a = 'y'",
        b"UPDATE inside --\xa0 x\n, u SET inside.a = 'x', u.a = 'y'",
        "SET character_set_client = cp850",
        b"UPDATE inside --\xff , u\nSET inside.a = 'x'",
    )
    assert _errors(made) == [None, None, _REFUSED, _REFUSED, None, None, None]
    assert execute(serve.source, "SELECT a FROM d.u") == (("é",),)
    _empty(serve)


@pytest.mark.parametrize(
    ("charset", "character"), [("gbk", b"\x81\x5c"), ("sjis", b"\x83\x5c"), ("big5", b"\xa5\x5c")]
)
def test_second_bytes_that_look_like_backslashes(
    serve: ServeProcess, charset: str, character: bytes
) -> None:
    made = _answered(
        serve,
        f"SET character_set_client = {charset}",
        b"INSERT INTO u VALUES ('%b')" % character,
        b"UPDATE inside, u SET inside.a = '%b', u.a = '%b'" % (character, character),
        b"UPDATE inside SET a = '%b' WHERE a = ', u'" % character,
    )
    assert _errors(made) == [None, None, _REFUSED, None, None]
    assert len(_texts(made[1], "statement")) == 1
    _empty(serve)


def _said(client: RawClient, text: bytes) -> int:
    """The number of the error that a statement ends with; 0 where it has none."""
    *_, reply = client.say(encode_query(text_of(text), client.capabilities))
    return ErrPacket.decode(reply).errno if is_error(reply) else 0


def test_packets_of_several_statements_are_cut_as_the_source_does(serve: ServeProcess) -> None:
    capabilities = CAPABILITIES | Capability.MULTI_STATEMENTS
    first = b"INSERT INTO u VALUES ('\x81\x5c'); "
    with closing(RawClient(serve.port, capabilities, database="d")) as client:
        assert _said(client, b"SET NAMES gbk") == 0
        assert _said(client, first + b"INSERT INTO u VALUES ('\x81\x5c')") == 0
        assert _said(client, first + b"UPDATE inside, u SET inside.a = 1, u.a = ''") == _REFUSED
    assert execute(serve.source, "SELECT a FROM d.u") == (("乗",), ("乗",))
    _empty(serve)


def test_the_character_set_of_the_login_counts(serve: ServeProcess) -> None:
    for collation, text in (
        (10, b"SELECT ~ (1)"),
        (8, b"UPDATE\xa0inside,\xa0u\xa0SET inside.a = 1, u.a = 1"),
    ):
        with closing(RawClient(serve.port, database="d", collation=collation)) as client:
            assert _said(client, text) == _REFUSED
    assert execute(serve.source, "SELECT COUNT(*) FROM d.u") == ((0,),)


def test_prepared_statements_are_read_as_when_they_were_prepared(serve: ServeProcess) -> None:
    made = _answered(
        serve,
        "SET character_set_client = swe7",
        "CREATE TABLE `[t]` (a VARCHAR(40))",
        "PREPARE s FROM 'UPDATE `[t]`, u SET `[t]`.a = 1, u.a = 1'",
        "EXECUTE s",
        "DROP TABLE `[t]`",
    )
    assert _errors(made)[3] in (_REFUSED, 1243)  # MySQL does not prepare such texts
    assert execute(serve.source, "SELECT COUNT(*) FROM d.u") == ((0,),)
