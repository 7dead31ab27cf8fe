"""Bodies: blocks, conditions, loops, and what stands in them, as trees."""

from __future__ import annotations

import pytest

from binlane.statements.sql.fact_finder import is_statement, parts_of
from binlane.statements.sql.parser import Stopped, parse_body
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree import statements as programs
from binlane.statements.sql.tree.expressions import Node
from binlane.statements.sql.tree.statements import Diagnostics, Insert, Set


def _body(text: str) -> Node:
    return parse_body(text, Dialect())


def _block(text: str) -> programs.Block:
    block = _body(text)
    assert isinstance(block, programs.Block)
    return block


def _text(text: str, node: Node | None) -> str:
    assert node is not None
    return text[node.at : node.end]


def test_declarations() -> None:
    sql = (
        "BEGIN DECLARE a, `b c` VARCHAR(9) CHARSET latin1 DEFAULT concat('x', 1); DECLARE n INT;"
        " DECLARE e CONDITION FOR SQLSTATE VALUE '23000'; DECLARE c CURSOR (p INT, q INT) FOR"
        " SELECT x FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND, 1062, e SET n = 1; END"
    )
    block = _block(sql)
    assert block.statements == ()
    text, number, condition, cursor, handler = block.declarations
    assert isinstance(text, programs.VariableDeclaration)
    assert text.names == ("a", "b c")
    assert (text.type.name, text.type.arguments, text.type.charset) == ("VARCHAR", ("9",), "latin1")
    assert _text(sql, text.default) == "concat('x', 1)"
    assert isinstance(number, programs.VariableDeclaration)
    assert (number.type.name, number.default) == ("INT", None)
    assert isinstance(condition, programs.ConditionDeclaration)
    assert (condition.name, condition.value) == ("e", "SQLSTATE 23000")
    assert isinstance(cursor, programs.CursorDeclaration)
    assert (cursor.name, _text(sql, cursor.query)) == ("c", "SELECT x FROM t")
    assert cursor.parameters == ("p", "q")
    assert isinstance(handler, programs.HandlerDeclaration)
    assert handler.action is programs.HandlerAction.CONTINUE
    assert handler.conditions == ("NOT FOUND", "1062", "e")
    assert isinstance(handler.statement, Set)


def test_branches() -> None:
    sql = (
        "BEGIN IF a > CASE b WHEN 1 THEN 2 END THEN DO 1; ELSEIF c THEN DO 2; ELSE DO 3; END IF;"
        " CASE x WHEN 1 THEN DO 1; DO 2; END CASE; CASE WHEN y THEN DO 1; ELSE BEGIN END;"
        " END CASE; END"
    )
    choice, simple, searched = _block(sql).statements
    assert isinstance(choice, programs.If)
    assert [_text(sql, one.condition) for one in choice.branches] == [
        "a > CASE b WHEN 1 THEN 2 END",
        "c",
    ]
    assert len(choice.otherwise) == 1
    assert isinstance(simple, programs.CaseStatement)
    assert _text(sql, simple.operand) == "x"
    assert len(simple.branches[0].statements) == 2
    assert simple.otherwise is None
    assert isinstance(searched, programs.CaseStatement)
    assert searched.operand is None
    assert searched.otherwise is not None
    assert isinstance(searched.otherwise[0], programs.Block)


def test_loops() -> None:
    sql = (
        "o: BEGIN l: LOOP LEAVE l; ITERATE l; END LOOP l; w: WHILE a DO DO 1; END WHILE;"
        " REPEAT DO 1; UNTIL b END REPEAT; FOR i IN REVERSE 1..f(2) DO DO i; END FOR;"
        " FOR r IN c(1, 2) DO DO 1; END FOR; FOR r IN (SELECT 1) DO DO 1; END FOR; END o"
    )
    block = _block(sql)
    assert block.label == "o"
    loop, rounds, repeat, numbers, rows, query = block.statements
    assert isinstance(loop, programs.Loop)
    leave, iterate = loop.statements
    assert isinstance(leave, programs.Leave)
    assert isinstance(iterate, programs.Iterate)
    assert (loop.label, leave.label, iterate.label) == ("l", "l", "l")
    assert isinstance(rounds, programs.While)
    assert (_text(sql, rounds.condition), rounds.label) == ("a", "w")
    assert isinstance(repeat, programs.Repeat)
    assert _text(sql, repeat.condition) == "b"
    assert isinstance(numbers, programs.ForRange)
    assert (numbers.variable, numbers.is_reverse) == ("i", True)
    assert (_text(sql, numbers.lower), _text(sql, numbers.upper)) == ("1", "f(2)")
    assert isinstance(rows, programs.ForRows)
    assert (rows.variable, rows.cursor, rows.query) == ("r", "c", None)
    assert [_text(sql, argument) for argument in rows.arguments] == ["1", "2"]
    assert isinstance(query, programs.ForRows)
    assert (query.cursor, _text(sql, query.query)) == ("", "SELECT 1")


def test_statements_of_programs() -> None:
    sql = (
        "BEGIN OPEN c(1); FETCH NEXT FROM c INTO a, r.b; CLOSE c; RETURN 1 + 1;"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = concat(a, 'b'), mysql_errno = 5; RESIGNAL;"
        " GET DIAGNOSTICS CONDITION 1 a = MESSAGE_TEXT; SIGNAL e; END"
    )
    opened, fetched, closed, returned, signal, again, told, named = _block(sql).statements
    assert isinstance(opened, programs.Open)
    assert (opened.cursor, len(opened.arguments)) == ("c", 1)
    assert isinstance(fetched, programs.Fetch)
    assert [_text(sql, variable) for variable in fetched.variables] == ["a", "r.b"]
    assert isinstance(closed, programs.Close)
    assert isinstance(returned, programs.Return)
    assert _text(sql, returned.value) == "1 + 1"
    assert isinstance(signal, Diagnostics)
    assert (signal.verb, signal.condition) == ("SIGNAL", "SQLSTATE 45000")
    assert [(name, _text(sql, value)) for name, value in signal.items] == [
        ("MESSAGE_TEXT", "concat(a, 'b')"),
        ("MYSQL_ERRNO", "5"),
    ]
    assert isinstance(again, Diagnostics)
    assert (again.verb, again.condition, again.items) == ("RESIGNAL", "", ())
    assert isinstance(told, Diagnostics)
    assert [_text(sql, target) for target in told.targets] == ["a"]
    assert isinstance(named, Diagnostics)
    assert named.condition == "e"


def test_parts_are_in_the_order_of_the_text() -> None:
    sql = (
        "BEGIN DECLARE a INT DEFAULT 1; DECLARE c CURSOR FOR SELECT 2;"
        " DECLARE EXIT HANDLER FOR SQLEXCEPTION DO 3; IF 4 THEN DO 5; ELSE DO 6; END IF;"
        " CASE 7 WHEN 8 THEN DO 9; ELSE DO 10; END CASE; REPEAT DO 11; UNTIL 12 END REPEAT;"
        " WHILE 13 DO DO 14; END WHILE; FOR i IN 15..16 DO DO 17; END FOR;"
        " SIGNAL e SET MESSAGE_TEXT = 18; RETURN 19; END"
    )
    found = list(parts_of(_body(sql)))
    assert [int(_text(sql, part).split()[-1]) for part in found] == list(range(1, 20))
    assert [is_statement(part) for part in found[:3]] == [False, False, True]


def test_one_statement_is_a_body() -> None:
    assert isinstance(_body("RETURN 1;"), programs.Return)
    assert isinstance(_body("INSERT INTO t VALUES (1)"), Insert)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("BEGIN DO 1 END", ""),
        ("BEGIN DO 1;", ""),
        ("BEGIN DO 1; DECLARE a INT; END", "DECLARE"),
        ("IF THEN DO 1; END IF", "THEN"),
        ("IF 1 THEN END IF", "END"),
        ("LOOP END LOOP", "END"),
        ("BEGIN END l", "l"),
        ("l: BEGIN END m", "m"),
        ("l: IF 1 THEN DO 1; END IF", "IF"),
        ("FOR i IN DO DO 1; END FOR", "1"),
        ("BEGIN DECLARE CONTINUE HANDLER FOR SQLSTATE 1 DO 1; END", "1"),
        ("DO 1; DO 2", "DO"),
        ("WHILE 1 DO FROB; END WHILE", "FROB"),
    ],
)
def test_what_is_not_understood_is_said(text: str, token: str) -> None:
    with pytest.raises(Stopped) as stopped:
        _body(text)
    assert stopped.value.token.text == token


def test_an_open_quote_is_said() -> None:
    with pytest.raises(SqlSyntaxError):
        _body("BEGIN 'x")


def test_loops_over_ranges_are_mariadbs() -> None:
    with pytest.raises(Stopped):
        parse_body("FOR i IN 1..2 DO DO 1; END FOR", Dialect(flavor="mysql", version=(9, 7, 0)))
