"""Reads expressions of SQL by the precedence of their operators, into what can be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from binlane.session.programs.expression_environment import Compiled, Environment
from binlane.session.programs.lazy_operators import (
    LAZY_FUNCTIONS,
    both,
    cast,
    combined,
    either,
    exclusive,
    recoded,
)
from binlane.session.programs.operators import BINARY_OPERATORS, negation, negative, truth
from binlane.session.programs.types import default_collation
from binlane.session.programs.values import BINARY, UNKNOWN, Temporal, TemporalKind, Text, Value
from binlane.sql.cursor import Cursor
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind

_DEPTH_MAX: Final = 100
_LITERAL_WORDS: Final[dict[str, Value]] = {"NULL": None, "TRUE": 1, "FALSE": 0}
_QUERY_WORDS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_PREDICATES: Final = ("IS", "NOT", "BETWEEN", "IN")
_NOT, _COMPARISON, _BIT, _UNARY = 4, 5, 6, 12
_LOGIC: Final = {"OR": 1, "||": 1, "XOR": 2, "AND": 3, "&&": 3}
_LEVELS: Final = {
    **dict.fromkeys(("=", "<=>", "<>", "!=", "<", ">", "<=", ">=", "LIKE"), _COMPARISON),
    "|": _BIT,
    "&": 7,
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "%", "DIV", "MOD"), 10),
    "^": 11,
}


class ExpressionReader:
    """Reads one expression.

    Attributes:
        cursor: Where it stands.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        """Take the expression's tokens."""
        self.cursor = Cursor(tokens)
        self._depth = 0

    def expression(self, level: int = 0) -> Compiled:
        """Read an expression whose operators bind at least as tightly as a level."""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self.cursor.stop("less nesting")
        left = self._prefixed(level)
        while (step := self._binary(left, level)) is not None:
            left = step
        self._depth -= 1
        return left

    def _prefixed(self, level: int) -> Compiled:
        cursor = self.cursor
        if level <= _NOT and cursor.accept("NOT"):
            operand = self.expression(_NOT)
            return lambda environment: negation(operand(environment))
        if cursor.accept_operator("!"):
            operand = self.expression(_UNARY)
            return lambda environment: negation(operand(environment))
        if cursor.accept_operator("-"):
            operand = self.expression(_UNARY)
            return lambda environment: negative(operand(environment))
        if cursor.accept_operator("+"):
            return self.expression(_UNARY)
        if cursor.accept("BINARY"):
            operand = self.expression(_UNARY)
            return lambda environment: cast(operand(environment), "BINARY", environment)
        return self._primary()

    def _binary(self, left: Compiled, level: int) -> Compiled | None:
        """Read an operator and what follows it; None if none of the level comes next."""
        cursor = self.cursor
        token = cursor.token
        symbol = token.word if token.kind is TokenKind.NAME else token.text
        if token.kind not in {TokenKind.NAME, TokenKind.OPERATOR}:
            return None
        if symbol in _LOGIC:
            return self._logical(left, symbol, level)
        if symbol in _PREDICATES and level <= _COMPARISON:
            return self._predicate(left)
        operator = BINARY_OPERATORS.get(symbol)
        if operator is None or _LEVELS[symbol] < level:
            return None
        cursor.advance()
        right = self.expression(_LEVELS[symbol] + 1)
        return lambda environment: operator(left(environment), right(environment), environment)

    def _logical(self, left: Compiled, symbol: str, level: int) -> Compiled | None:
        if _LOGIC[symbol] < level:
            return None
        self.cursor.advance()
        right = self.expression(_LOGIC[symbol] + 1)
        if symbol in {"AND", "&&"}:
            return lambda environment: both(left, right, environment)
        if symbol == "XOR":
            return lambda environment: exclusive(left, right, environment)
        return lambda environment: either(left, right, environment)

    def _predicate(self, left: Compiled) -> Compiled | None:
        """Read IS, BETWEEN, IN, LIKE, with NOT."""
        cursor = self.cursor
        if cursor.accept("IS"):
            return self._is(left, is_negated=cursor.accept("NOT"))
        start = cursor.index
        is_negated = cursor.accept("NOT")
        if cursor.accept("BETWEEN"):
            lower = self.expression(_BIT)
            cursor.expect("AND")
            upper = self.expression(_COMPARISON)
            at_least, at_most = BINARY_OPERATORS[">="], BINARY_OPERATORS["<="]

            def between(environment: Environment) -> Value:
                value = left(environment)
                first = truth(at_least(value, lower(environment), environment))
                last = truth(at_most(value, upper(environment), environment))
                return combined(first, last)

            return _negated(between, is_negated=is_negated)
        if cursor.accept("IN"):
            cursor.expect_operator("(")
            if cursor.word in _QUERY_WORDS:
                raise cursor.stop("a list")
            members = self._list()
            equal = BINARY_OPERATORS["="]

            def is_in(environment: Environment) -> Value:
                value = left(environment)
                results = [truth(equal(value, m(environment), environment)) for m in members]
                if 1 in results:
                    return 1
                return UNKNOWN if UNKNOWN in results else None if None in results else 0

            return _negated(is_in, is_negated=is_negated)
        cursor.index = start
        return None

    def _is(self, left: Compiled, *, is_negated: bool) -> Compiled:
        word = self.cursor.accept_any(("NULL", "TRUE", "FALSE", "UNKNOWN"))
        if not word:
            raise self.cursor.stop("NULL, TRUE, FALSE or UNKNOWN")

        def is_what(environment: Environment) -> Value:
            value = left(environment)
            if value is UNKNOWN:
                return UNKNOWN
            if word in {"NULL", "UNKNOWN"}:
                return int(value is None)
            return int(truth(value) == (1 if word == "TRUE" else 0))

        return _negated(is_what, is_negated=is_negated)

    def _list(self) -> list[Compiled]:
        """Read expressions up to a closing parenthesis that an opening one began."""
        if self.cursor.accept_operator(")"):
            return []
        members = [self.expression()]
        while self.cursor.accept_operator(","):
            members.append(self.expression())
        self.cursor.expect_operator(")")
        return members

    def _primary(self) -> Compiled:
        cursor = self.cursor
        token = cursor.token
        if cursor.accept_operator("("):
            return self._parenthesised()
        if token.kind is TokenKind.STRING:
            return self._string("")
        if token.kind is TokenKind.NUMBER:
            cursor.advance()
            return _constant(_number(token.text))
        if token.kind is TokenKind.USER_VARIABLE:
            return self._user_variable()
        if token.kind is TokenKind.SYSTEM_VARIABLE:
            cursor.advance()
            name = token.text.lower().lstrip("@").replace("`", "")
            return lambda environment: environment.system_variable(name)
        if token.kind in NAME_KINDS:
            return self._named(cursor.advance())
        raise cursor.stop("an expression")

    def _parenthesised(self) -> Compiled:
        """Read behind an opening parenthesis: an expression, or a query that reads no table."""
        if not self.cursor.accept("SELECT"):
            inner = self.expression()
            self.cursor.expect_operator(")")
            return inner
        inner = self.expression()
        self.cursor.expect_operator(")")
        return inner

    def _string(self, charset: str) -> Compiled:
        content = ""
        while self.cursor.token.kind is TokenKind.STRING:
            token = self.cursor.advance()
            content += token.value
            if token.text[0] in "nN":
                charset = "utf8mb3"
        collation = self.cursor.identifier() if self.cursor.accept("COLLATE") else ""

        def text(environment: Environment) -> Value:
            if collation:
                return Text(content, collation.lower())
            if charset:
                found = default_collation(charset, is_mariadb=environment.is_mariadb)
                return Text(content, found)
            return Text(content, environment.collation)

        return text

    def _user_variable(self) -> Compiled:
        name = user_variable_name(self.cursor.advance().text)
        if not self.cursor.accept_operator(":="):
            return lambda environment: environment.user_variable(name)
        assigned = self.expression()

        def assign(environment: Environment) -> Value:
            value = assigned(environment)
            environment.assign_user_variable(name, value)
            return value

        return assign

    def _named(self, token: Token) -> Compiled:
        """Read what begins with a name: a literal, a variable, CASE, a function."""
        cursor = self.cursor
        word = token.word
        if token.kind is TokenKind.NAME and word in _LITERAL_WORDS and cursor.token.text != "(":
            return _constant(_LITERAL_WORDS[word])
        if cursor.token.kind is TokenKind.STRING and token.kind is TokenKind.NAME:
            return self._introduced(token)
        if word.startswith("_") and cursor.token.kind is TokenKind.NUMBER:
            return self._introduced_bytes(token)
        if word == "CASE":
            return self._case()
        if cursor.token.text == "(":
            return self._function(None, token)
        if cursor.accept_operator("."):
            member = cursor.advance()
            if cursor.token.text == "(":
                return self._function(token.value, member)
            name = f"{token.value}.{member.value}"
            return lambda environment: _local(environment, name)
        return lambda environment: _local(environment, token.value)

    def _introduced(self, token: Token) -> Compiled:
        """A literal behind a word: `_latin1'x'`, `DATE'2020-01-02'`."""
        word = token.word
        if word.startswith("_"):
            return self._string(word[1:].lower())
        if word not in TemporalKind.__members__:
            raise self.cursor.stop("an operator")
        return _constant(Temporal(TemporalKind[word], self.cursor.advance().value))

    def _introduced_bytes(self, token: Token) -> Compiled:
        value = _number(self.cursor.advance().text)
        if not isinstance(value, Text):
            raise self.cursor.stop("a string")
        charset = token.word[1:].lower()
        return lambda environment: Text(
            value.content, default_collation(charset, is_mariadb=environment.is_mariadb)
        )

    def _case(self) -> Compiled:
        cursor = self.cursor
        operand = None if cursor.word == "WHEN" else self.expression()
        branches: list[tuple[Compiled, Compiled]] = []
        while cursor.accept("WHEN"):
            condition = self.expression()
            cursor.expect("THEN")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if cursor.accept("ELSE") else _constant(None)
        cursor.expect("END")
        equal = BINARY_OPERATORS["="]

        def case(environment: Environment) -> Value:
            value = operand(environment) if operand else None
            for condition, result in branches:
                found = condition(environment)
                if operand:
                    found = equal(value, found, environment)
                holds = truth(found)
                if holds is UNKNOWN:
                    return UNKNOWN
                if holds:
                    return result(environment)
            return otherwise(environment)

        return case

    def _function(self, database: str | None, token: Token) -> Compiled:
        cursor = self.cursor
        cursor.expect_operator("(")
        name = token.value
        if database is None and token.word in {"CAST", "CONVERT"}:
            return self._conversion()
        arguments = self._list()
        lazy = LAZY_FUNCTIONS.get(token.word) if database is None else None
        if lazy is not None:
            return lambda environment: lazy(arguments, environment)
        return lambda environment: environment.call(
            database, name, [argument(environment) for argument in arguments]
        )

    def _conversion(self) -> Compiled:
        """Read CAST(… AS …) and CONVERT(…, …), CONVERT(… USING …) behind the parenthesis."""
        cursor = self.cursor
        operand = self.expression()
        if cursor.accept("USING"):
            charset = cursor.identifier().lower()
            cursor.expect_operator(")")
            return lambda environment: recoded(operand(environment), charset, environment)
        if not cursor.accept("AS"):
            cursor.expect_operator(",")
        type_text = " ".join(token.text for token in cursor.until((), operators=(")",)))
        cursor.expect_operator(")")
        return lambda environment: cast(operand(environment), type_text, environment)


def user_variable_name(text: str) -> str:
    """The name of `@name` in lower case, without its quotes."""
    name = text[1:]
    if name[:1] in {"'", '"', "`"}:
        name = name[1:-1].replace(name[0] * 2, name[0])
    return name.lower()


def _negated(compiled: Compiled, *, is_negated: bool) -> Compiled:
    if not is_negated:
        return compiled
    return lambda environment: negation(compiled(environment))


def _constant(value: Value) -> Compiled:
    return lambda _: value


def _number(text: str) -> Value:
    """A number's literal; hexadecimal and bit literals are byte strings."""
    kind = text[:2].lower()
    if kind in {"0x", "x'"}:
        digits = text[2:].rstrip("'")
        content = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    elif kind in {"0b", "b'"}:
        bits = text[2:].rstrip("'")
        content = int(bits or "0", 2).to_bytes((len(bits) + 7) // 8, "big")
    elif "e" in text.lower():
        return float(text)
    else:
        return Decimal(text) if "." in text else int(text)
    return Text(content.decode("latin-1"), BINARY, is_number=True)


def _local(environment: Environment, name: str) -> Value:
    try:
        return environment.local(name)
    except LookupError:
        return UNKNOWN
