"""The trees of bodies."""

from __future__ import annotations

import pytest

from binlane.sql.analysis import read
from binlane.sql.body import (
    Block,
    Branch,
    Case,
    Close,
    ConditionDeclaration,
    CursorDeclaration,
    Fetch,
    ForRange,
    ForRows,
    HandlerAction,
    HandlerDeclaration,
    If,
    Iterate,
    Leave,
    Loop,
    Open,
    PlainStatement,
    Repeat,
    Return,
    Signal,
    Span,
    SpanKind,
    VariableDeclaration,
    While,
    spans,
)
from binlane.sql.compound import read_program
from binlane.sql.cursor import Stopped
from binlane.sql.effects import StatementKind


def _block(text: str) -> Block:
    block = read_program(text)
    assert isinstance(block, Block)
    return block


def test_declarations() -> None:
    block = _block(
        "BEGIN DECLARE a, `b c` VARCHAR(9) CHARSET latin1 DEFAULT concat('x', 1); DECLARE n INT;"
        " DECLARE e CONDITION FOR SQLSTATE VALUE '23000'; DECLARE c CURSOR (p INT, q INT) FOR"
        " SELECT x FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND, 1062, e SET n = 1; END"
    )
    assert block.statements == ()
    text, number, condition, cursor, handler = block.declarations
    assert text == VariableDeclaration(
        names=("a", "b c"),
        type_text="VARCHAR(9) CHARSET latin1",
        default=Span("concat('x', 1)", 57),
    )
    assert number == VariableDeclaration(names=("n",), type_text="INT")
    assert condition == ConditionDeclaration(name="e", value="SQLSTATE 23000")
    assert isinstance(cursor, CursorDeclaration)
    assert (cursor.name, cursor.query.text) == ("c", "SELECT x FROM t")
    assert cursor.parameters == ("p", "q")
    assert isinstance(handler, HandlerDeclaration)
    assert handler.action is HandlerAction.CONTINUE
    assert handler.conditions == ("NOT FOUND", "1062", "e")
    assert isinstance(handler.statement, PlainStatement)
    assert handler.statement.kind is StatementKind.SET


def test_branches() -> None:
    block = _block(
        "BEGIN IF a > CASE b WHEN 1 THEN 2 END THEN DO 1; ELSEIF c THEN DO 2; ELSE DO 3; END IF;"
        " CASE x WHEN 1 THEN DO 1; DO 2; END CASE; CASE WHEN y THEN DO 1; ELSE BEGIN END;"
        " END CASE; END"
    )
    choice, simple, searched = block.statements
    assert isinstance(choice, If)
    assert [one.condition.text for one in choice.branches] == [
        "a > CASE b WHEN 1 THEN 2 END",
        "c",
    ]
    assert len(choice.otherwise) == 1
    assert isinstance(simple, Case)
    assert simple.operand == Span("x", 93)
    assert len(simple.branches[0].statements) == 2
    assert simple.otherwise is None
    assert isinstance(searched, Case)
    assert searched.operand is None
    assert searched.otherwise == (Block(declarations=(), statements=()),)


def test_loops() -> None:
    block = _block(
        "o: BEGIN l: LOOP LEAVE l; ITERATE l; END LOOP l; w: WHILE a DO DO 1; END WHILE;"
        " REPEAT DO 1; UNTIL b END REPEAT; FOR i IN REVERSE 1..f(2) DO DO i; END FOR;"
        " FOR r IN c(1, 2) DO DO 1; END FOR; FOR r IN (SELECT 1) DO DO 1; END FOR; END o"
    )
    assert block.label == "o"
    loop, rounds, repeat, numbers, rows, query = block.statements
    assert loop == Loop(statements=(Leave(label="l"), Iterate(label="l")), label="l")
    assert isinstance(rounds, While)
    assert (rounds.condition.text, rounds.label) == ("a", "w")
    assert isinstance(repeat, Repeat)
    assert repeat.condition.text == "b"
    assert isinstance(numbers, ForRange)
    assert (numbers.variable, numbers.is_reverse) == ("i", True)
    assert (numbers.lower.text, numbers.upper.text) == ("1", "f(2)")
    assert isinstance(rows, ForRows)
    assert (rows.variable, rows.cursor, rows.query) == ("r", "c", None)
    assert [argument.text for argument in rows.arguments] == ["1", "2"]
    assert isinstance(query, ForRows)
    assert query.query is not None
    assert (query.cursor, query.query.text) == ("", "SELECT 1")


def test_statements_of_programs() -> None:
    block = _block(
        "BEGIN OPEN c(1); FETCH NEXT FROM c INTO a, r.b; CLOSE c; RETURN 1 + 1;"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = concat(a, 'b'), mysql_errno = 5; RESIGNAL;"
        " GET DIAGNOSTICS CONDITION 1 a = MESSAGE_TEXT; SIGNAL e; END"
    )
    opened, fetched, closed, returned, signal, again, diagnostics, named = block.statements
    assert opened == Open(cursor="c", arguments=(Span("1", 13),))
    assert fetched == Fetch(cursor="c", variables=("a", "r.b"))
    assert closed == Close(cursor="c")
    assert isinstance(returned, Return)
    assert returned.value is not None
    assert returned.value.text == "1 + 1"
    assert isinstance(signal, Signal)
    assert signal.condition == "SQLSTATE 45000"
    assert [(name, span.text) for name, span in signal.items] == [
        ("MESSAGE_TEXT", "concat(a, 'b')"),
        ("MYSQL_ERRNO", "5"),
    ]
    assert again == Signal(condition="", is_again=True)
    assert isinstance(diagnostics, PlainStatement)
    assert diagnostics.sql.text == "GET DIAGNOSTICS CONDITION 1 a = MESSAGE_TEXT"
    assert named == Signal(condition="e")


def test_a_body_in_the_text_that_makes_it() -> None:
    statement = (
        "CREATE PROCEDURE p(a INT) COMMENT 'x' IF a THEN\n  INSERT INTO t VALUES (a); END IF;"
    )
    offset = read(statement, database="d").body_offset
    assert offset is not None
    body = read_program(statement, offset=offset)
    assert isinstance(body, If)
    found = [(kind, statement[span.offset : span.end]) for kind, span in spans(body)]
    assert found == [
        (SpanKind.EXPRESSION, "a"),
        (SpanKind.STATEMENT, "INSERT INTO t VALUES (a)"),
    ]


def test_spans_are_in_the_order_of_the_text() -> None:
    block = _block(
        "BEGIN DECLARE a INT DEFAULT 1; DECLARE c CURSOR FOR SELECT 2;"
        " DECLARE EXIT HANDLER FOR SQLEXCEPTION DO 3; IF 4 THEN DO 5; ELSE DO 6; END IF;"
        " CASE 7 WHEN 8 THEN DO 9; ELSE DO 10; END CASE; REPEAT DO 11; UNTIL 12 END REPEAT;"
        " WHILE 13 DO DO 14; END WHILE; FOR i IN 15..16 DO DO 17; END FOR;"
        " SIGNAL e SET MESSAGE_TEXT = 18; RETURN 19; END"
    )
    found = list(spans(block))
    assert [int(span.text.split()[-1]) for _, span in found] == list(range(1, 20))
    assert found[1] == (SpanKind.QUERY, Span("SELECT 2", 52))
    assert found[2][0] is SpanKind.STATEMENT


def test_one_statement_is_a_body() -> None:
    assert read_program("RETURN 1;") == Return(value=Span("1", 7))
    assert read_program("RETURN") == Return()
    branch = Branch(condition=Span("1", 3), statements=(Leave(label="x"),))
    assert read_program("IF 1 THEN LEAVE x; END IF") == If(branches=(branch,))


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("BEGIN DO 1 END", ""),
        ("BEGIN DO 1;", ""),
        ("BEGIN DO 1; DECLARE a INT; END", "DECLARE"),
        ("IF THEN DO 1; END IF", "THEN"),
        ("FOR i IN DO DO 1; END FOR", "DO"),
        ("BEGIN DECLARE CONTINUE HANDLER FOR SQLSTATE 1 DO 1; END", "1"),
        ("BEGIN 'x", "'x"),
        ("DO 1; DO 2", "DO"),
        ("WHILE 1 DO FROB; END WHILE", "FROB"),
    ],
)
def test_what_is_not_understood_is_said(text: str, token: str) -> None:
    with pytest.raises(Stopped) as stopped:
        read_program(text)
    assert stopped.value.token.text == token
