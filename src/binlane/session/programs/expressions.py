"""Expressions of SQL, as far as they can be computed without a server.

`compile_expression` reads a text once; the result can be evaluated many times. What it does not
understand, and what only a server knows, evaluates to `UNKNOWN`, never to a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

from binlane.session.programs.operators import BINARY_OPERATORS, negation, negative, truth
from binlane.session.programs.types import VariableType, default_collation
from binlane.session.programs.values import BINARY, UNKNOWN, Temporal, TemporalKind, Text, Value
from binlane.sql.cursor import Cursor, Stopped
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind, tokenise

_DEPTH_MAX: Final = 100
_CACHE_SIZE: Final = 4096
_LETTERS_MAX: Final = 20_000
"""Longer expressions are not computed."""


class Environment(Protocol):
    """What an expression can refer to."""

    @property
    def is_mariadb(self) -> bool:
        """Whose rules are followed."""

    @property
    def collation(self) -> str:
        """collation_connection, that of string literals."""

    @property
    def database(self) -> str:
        """The default database."""

    def local(self, name: str) -> Value:
        """The value of a local variable or parameter.

        Raises:
            LookupError: If there is none of that name.
        """

    def user_variable(self, name: str) -> Value:
        """The value of `@name`."""

    def assign_user_variable(self, name: str, value: Value) -> None:
        """Do `@name := value`."""

    def system_variable(self, name: str) -> Value:
        """The value of `@@name`, where it is known."""

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function that is none of those known here."""


Compiled: TypeAlias = Callable[[Environment], Value]


def evaluate(text: str, environment: Environment) -> Value:
    """The value of an expression; what it assigns and calls is done."""
    return compile_expression(text)(environment)


@lru_cache(_CACHE_SIZE)
def compile_expression(text: str) -> Compiled:
    """Read an expression; one that is not understood is unknown."""
    if len(text) > _LETTERS_MAX:
        return _unknown
    try:
        reader = _Reader(list(tokenise(text)))
        compiled = reader.expression()
        reader.cursor.expect_end()
    except (Stopped, SqlSyntaxError):
        return _unknown
    return compiled


def _unknown(_: Environment) -> Value:
    return UNKNOWN


class _Reader:
    """Reads one expression, by the operators' precedence."""

    def __init__(self, tokens: Sequence[Token]) -> None:
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
            return lambda environment: _cast(operand(environment), "BINARY", environment)
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
            return lambda environment: _both(left, right, environment)
        if symbol == "XOR":
            return lambda environment: _exclusive(left, right, environment)
        return lambda environment: _either(left, right, environment)

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
                return _combined(first, last)

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
        lazy = _LAZY.get(token.word) if database is None else None
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
            return lambda environment: _recoded(operand(environment), charset, environment)
        if not cursor.accept("AS"):
            cursor.expect_operator(",")
        type_text = " ".join(token.text for token in cursor.until((), operators=(")",)))
        cursor.expect_operator(")")
        return lambda environment: _cast(operand(environment), type_text, environment)


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


def _combined(first: Value, last: Value) -> Value:
    """AND of two truths."""
    if first == 0 or last == 0:
        return 0
    if first is UNKNOWN or last is UNKNOWN:
        return UNKNOWN
    return None if first is None or last is None else 1


def _both(left: Compiled, right: Compiled, environment: Environment) -> Value:
    first = truth(left(environment))
    return 0 if first == 0 else _combined(first, truth(right(environment)))


def _either(left: Compiled, right: Compiled, environment: Environment) -> Value:
    first = truth(left(environment))
    if first == 1:
        return 1
    return negation(_combined(negation(first), negation(truth(right(environment)))))


def _exclusive(left: Compiled, right: Compiled, environment: Environment) -> Value:
    first, last = truth(left(environment)), truth(right(environment))
    if first is UNKNOWN or last is UNKNOWN:
        return UNKNOWN
    return None if first is None or last is None else int(first != last)


def _cast(value: Value, type_text: str, environment: Environment) -> Value:
    kind = VariableType.parse(
        type_text, collation=environment.collation, is_mariadb=environment.is_mariadb
    )
    stored = kind.store(value)
    if isinstance(stored, Text) and kind.length is not None:
        return Text(stored.content[: kind.length], stored.collation)
    return stored


def _recoded(value: Value, charset: str, environment: Environment) -> Value:
    if value is None or value is UNKNOWN:
        return value
    return _cast(value, f"CHAR CHARACTER SET {charset}", environment)


def _if(arguments: Sequence[Compiled], environment: Environment) -> Value:
    if len(arguments) != 3:
        return UNKNOWN
    holds = truth(arguments[0](environment))
    if holds is UNKNOWN:
        return UNKNOWN
    return arguments[1 if holds else 2](environment)


def _coalesce(arguments: Sequence[Compiled], environment: Environment) -> Value:
    for argument in arguments:
        value = argument(environment)
        if value is not None:
            return value
    return None


def _database(arguments: Sequence[Compiled], environment: Environment) -> Value:
    if arguments:
        return UNKNOWN
    collation = default_collation("utf8", is_mariadb=environment.is_mariadb)
    return Text(environment.database, collation) if environment.database else None


_LAZY: Final[dict[str, Callable[[Sequence[Compiled], Environment], Value]]] = {
    "IF": _if,
    "IFNULL": _coalesce,
    "COALESCE": _coalesce,
    "NVL": _coalesce,
    "DATABASE": _database,
    "SCHEMA": _database,
}
"""Functions that do not evaluate all their arguments, or need none but the session."""

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
