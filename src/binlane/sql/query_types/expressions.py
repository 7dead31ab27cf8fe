"""The type of an expression in a query, as the servers derive it.

Read from tokens by precedence; nothing is computed. What is not known raises `Untyped`: then no
column is made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from binlane.names import TableName
from binlane.sql.collations import default_collation
from binlane.sql.cursor import Cursor, Stopped, split
from binlane.sql.query_types.arithmetic import (
    as_bytes,
    bits,
    combined,
    moved,
    negative,
    truth,
)
from binlane.sql.query_types.calls import Call, together
from binlane.sql.query_types.fixed_functions import FIXED_TYPES, WITH_FRACTION, fixed
from binlane.sql.query_types.functions import FUNCTIONS
from binlane.sql.query_types.scope import Scope, Untyped
from binlane.sql.query_types.values import (
    NO_DECIMALS,
    Coercibility,
    Value,
    ValueKind,
    value_of_column,
)
from binlane.sql.schema import Routine
from binlane.sql.sql_mode import Quoting
from binlane.sql.table_definitions import create_table
from binlane.sql.tokens import NAME_KINDS, SqlSyntaxError, Token, TokenKind

QUERY_WORDS: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
"""What a query in parentheses begins with."""
_COMPARISONS: Final = frozenset({"=", "<=>", "<", ">", "<=", ">=", "<>", "!="})
_COMPARISON_WORDS: Final = frozenset({"LIKE", "REGEXP", "RLIKE", "IN", "BETWEEN"})
_TEMPORAL_LITERALS: Final = {
    "DATE": (ValueKind.DATE, 10),
    "TIME": (ValueKind.TIME, 10),
    "TIMESTAMP": (ValueKind.DATETIME, 19),
}
_WITHOUT_PARENTHESES: Final = frozenset(
    {
        *("CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP"),
        *("CURRENT_USER", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP"),
    }
)
_BIGINT_MAX: Final = (1 << 63) - 1
_UNSIGNED_MAX: Final = (1 << 64) - 1


def expression_type(tokens: Sequence[Token], scope: Scope) -> Value:
    """The type of one expression.

    Raises:
        Untyped: If it is not known.
    """
    reader = _Reader(tokens, scope)
    try:
        value = reader.expression()
        if not reader.cursor.is_at_end:
            raise Untyped(reader.cursor.token.text)
    except Stopped as stopped:
        raise Untyped(stopped.token.text) from None
    return value


class _Reader:
    """Reads one expression; a method for each level of precedence, weakest first."""

    def __init__(self, tokens: Sequence[Token], scope: Scope) -> None:
        self.cursor = Cursor(tokens)
        self.scope = scope

    def expression(self) -> Value:
        left = self._conjunction()
        while self.cursor.accept_any(("OR", "XOR")) or self.cursor.accept_operator("||"):
            left = truth(left, self._conjunction())
        return left

    def _conjunction(self) -> Value:
        left = self._negation()
        while self.cursor.accept("AND") or self.cursor.accept_operator("&&"):
            left = truth(left, self._negation())
        return left

    def _negation(self) -> Value:
        if self.cursor.accept("NOT"):
            return truth(self._negation())
        return self._comparison()

    def _comparison(self) -> Value:
        left = self._bits()
        while True:
            if self.cursor.accept("IS"):
                self.cursor.accept("NOT")
                self.cursor.advance()
                left = truth()
                continue
            word = self.cursor.ahead(int(self.cursor.word == "NOT")).word
            if word in _COMPARISON_WORDS:
                self.cursor.accept("NOT")
                self.cursor.advance()
                left = self._compared_by_word(left, word)
                continue
            operator = self._operator(_COMPARISONS)
            if not operator:
                return left
            right = self._bits()
            left = truth() if operator == "<=>" else truth(left, right)

    def _operator(self, texts: frozenset[str]) -> str:
        """Read one of these operators if it comes next, and say which."""
        token = self.cursor.token
        if token.kind is TokenKind.OPERATOR and token.text in texts:
            return self.cursor.advance().text
        return ""

    def _compared_by_word(self, left: Value, word: str) -> Value:
        if word == "BETWEEN":
            low = self._bits()
            self.cursor.expect("AND")
            return truth(left, low, self._bits())
        if word == "IN":
            tokens = self.cursor.group()
            if tokens and tokens[0].word in QUERY_WORDS:
                return truth(left, *self.scope.subquery(tokens, self.scope))
            values = [expression_type(part, self.scope) for part in split(tokens)]
            return truth(left, *values)
        right = self._bits()
        if self.cursor.accept("ESCAPE"):
            self._bits()
        return truth(left, right)

    def _bits(self) -> Value:
        left = self._sum()
        while self._operator(frozenset({"|", "&", "<<", ">>"})):
            left = bits(left, self._sum())
        return left

    def _sum(self) -> Value:
        left = self._product()
        while self._operator(frozenset({"+", "-"})):
            if self.cursor.accept("INTERVAL"):
                self.expression()
                left = moved(left, self.cursor.advance().word, self.scope)
            else:
                left = combined(left, self._product(), "+", self.scope)
        return left

    def _product(self) -> Value:
        left = self._unary()
        while True:
            operator = self.cursor.accept_any(("DIV", "MOD")) or self._operator(
                frozenset({"*", "/", "%", "^"})
            )
            if not operator:
                return left
            right = self._unary()
            if operator == "^":
                left = bits(left, right)
            else:
                operator = "MOD" if operator == "%" else operator
                left = combined(left, right, operator, self.scope)

    def _unary(self) -> Value:
        operator = self._operator(frozenset({"+", "-", "~", "!"}))
        if operator == "-":
            return negative(self._unary(), self.scope)
        if operator == "~":
            return bits(self._unary())
        if operator == "!":
            return truth(self._unary())
        if operator:
            return self._unary()
        if self.cursor.accept("BINARY"):
            return as_bytes(self._unary(), self.scope)
        value = self._primary()
        while self.cursor.accept("COLLATE"):
            value = replace(
                value,
                collation=self.cursor.advance().value.lower(),
                coercibility=Coercibility.EXPLICIT,
                column=None,
            )
        return value

    # Primary expressions --------------------------------------------------------------------------

    def _primary(self) -> Value:
        token = self.cursor.token
        if token.kind is TokenKind.NUMBER:
            return _number(self.cursor.advance().text)
        if token.kind is TokenKind.STRING:
            return self._string()
        if token.text == "(":
            return self._parenthesised(self.cursor.group())
        if token.kind not in NAME_KINDS:  # variables too: their values decide
            raise Untyped(token.text or "nothing")
        following = self.cursor.ahead(1)
        if following.kind is TokenKind.STRING and (
            token.text.startswith("_") or token.word in _TEMPORAL_LITERALS
        ):
            self.cursor.advance()
            return self._introduced(token, self.cursor.advance().value)
        by_word = self._by_word(token.word)
        if by_word is not None:
            return by_word
        is_member = following.text == "."
        if following.text == "(" or (is_member and self.cursor.ahead(3).text == "("):
            return self._call()
        return self._column()

    def _string(self) -> Value:
        first = self.cursor.advance()
        text = first.value
        while self.cursor.token.kind is TokenKind.STRING:
            text += self.cursor.advance().value
        charset, collation = self.scope.connection
        if first.text[:1] in {"N", "n"}:
            charset, collation = "utf8mb3", "utf8mb3_general_ci"
        return _text_literal(text, charset, collation)

    def _introduced(self, introducer: Token, text: str) -> Value:
        """`_latin1'a'` and `DATE '2020-01-01'`."""
        if introducer.word in _TEMPORAL_LITERALS:
            kind, length = _TEMPORAL_LITERALS[introducer.word]
            return Value(kind=kind, length=length, decimals=len(text.partition(".")[2]))
        charset = introducer.text[1:].lower()
        charset = {"utf8": "utf8mb3"}.get(charset, charset)
        return _text_literal(text, charset, default_collation(charset, self.scope.flavor))

    def _by_word(self, word: str) -> Value | None:
        if word == "NULL":
            self.cursor.advance()
            return Value(kind=ValueKind.NULL, is_nullable=True, coercibility=Coercibility.NULL)
        if word in {"TRUE", "FALSE"}:
            self.cursor.advance()
            length = 5 if self.scope.is_mariadb else 1
            return Value(kind=ValueKind.INTEGER, length=length, is_literal=True)
        if word == "EXISTS" and self.cursor.ahead(1).text == "(":
            self.cursor.advance()
            self.cursor.group()
            return truth()
        if word in {"NEXT", "PREVIOUS"} and self.cursor.ahead(1).word == "VALUE":
            self.cursor.advance()
            self.cursor.expect("VALUE", "FOR")
            self.cursor.qualified_name()
            return self._fixed("NEXTVAL" if word == "NEXT" else "LASTVAL")
        if word == "CASE":
            self.cursor.advance()
            return self._case()
        if word in _WITHOUT_PARENTHESES and self.cursor.ahead(1).text != "(":
            self.cursor.advance()
            return self._fixed(word)
        return None

    def _case(self) -> Value:
        conditions: list[Value] = []
        results: list[Value] = []
        if self.cursor.word != "WHEN":
            conditions.append(self.expression())
        while self.cursor.accept("WHEN"):
            conditions.append(self.expression())
            self.cursor.expect("THEN")
            results.append(self.expression())
        if self.cursor.accept("ELSE"):
            results.append(self.expression())
        else:
            results.append(Value(kind=ValueKind.NULL, is_nullable=True))
        self.cursor.expect("END")
        made = together(results, self.scope)
        if self.scope.is_mariadb and any(value.is_nullable for value in conditions):
            return made.as_nullable()
        return made

    def _parenthesised(self, tokens: Sequence[Token]) -> Value:
        if not tokens or tokens[0].word not in QUERY_WORDS:
            return expression_type(tokens, self.scope)
        values = self.scope.subquery(tokens, self.scope)
        if len(values) != 1:
            raise Untyped("a subquery of several columns")
        (value,) = values
        if not any(token.word == "FROM" for token in tokens):
            return value
        if not self.scope.is_mariadb and value.kind is ValueKind.INTEGER:
            return replace(value, column=None, integer_type="BIGINT", is_nullable=True)
        column = value.column
        if column is not None:
            column = replace(column, default=None, comment=None, is_nullable=True)
        return replace(value, is_nullable=True, column=column)

    def _column(self) -> Value:
        names = [self.cursor.identifier()]
        while self.cursor.accept_operator("."):
            names.append(self.cursor.identifier())
        return self.scope.column(names)

    # Functions ------------------------------------------------------------------------------------

    def _call(self) -> Value:
        database, name = self.cursor.qualified_name()
        tokens = self.cursor.group()
        if self.cursor.accept("OVER"):
            self.cursor.group() if self.cursor.token.text == "(" else self.cursor.advance()
        upper = name.upper()
        if database is not None:
            return self._stored(TableName(database, name))
        call = Call(tokens=tokens, scope=self.scope, typed=expression_type)
        if upper in FUNCTIONS:
            return FUNCTIONS[upper](call)
        written = FIXED_TYPES[self.scope.flavor].get(upper)
        if written is None:
            return self._stored(TableName(self.scope.database, name))
        if upper in WITH_FRACTION and len(tokens) == 1:
            return replace(self._fixed(upper), decimals=call.number(0))
        has_values = written.endswith("*") and bool(tokens)
        return fixed(written, call.values if has_values else (), self.scope)

    def _fixed(self, name: str) -> Value:
        written = FIXED_TYPES[self.scope.flavor].get(name)
        if written is None:
            raise Untyped(name)
        return fixed(written, (), self.scope)

    def _stored(self, name: TableName) -> Value:
        routine = self.scope.objects.function(name)
        if routine is None:
            raise Untyped(f"{name.table}()")
        value = _returned(routine, self.scope)
        return replace(value, is_nullable=True, coercibility=Coercibility.IMPLICIT)


def _returned(routine: Routine, scope: Scope) -> Value:
    """The value that a stored function returns."""
    charset = routine.charset or scope.connection[0]
    try:
        definition = create_table(
            f"CREATE TABLE t (c {routine.returns})",
            charset=charset,
            quoting=Quoting(ansi_quotes=False, no_backslash_escapes=False),
        )
    except SqlSyntaxError:
        raise Untyped(routine.returns) from None
    return value_of_column(definition.columns[0], charset=charset, flavor=scope.flavor)


def _text_literal(text: str, charset: str, collation: str) -> Value:
    return Value(
        kind=ValueKind.TEXT,
        length=len(text),
        charset=charset,
        collation=collation,
        coercibility=Coercibility.LITERAL,
        is_literal=True,
    )


def _number(text: str) -> Value:
    lower = text.lower()
    if lower.startswith(("0x", "x'")):
        digits = lower.removeprefix("0x").removeprefix("x").strip("'")
        return _text_literal("?" * ((len(digits) + 1) // 2), "binary", "binary")
    if lower.startswith(("0b", "b'")):
        digits = lower.removeprefix("0b").removeprefix("b").strip("'")
        return _text_literal("?" * ((len(digits) + 7) // 8), "binary", "binary")
    if "e" in lower:
        return Value(kind=ValueKind.REAL, length=len(text), decimals=NO_DECIMALS, is_literal=True)
    if "." in text:
        whole, _, fraction = text.partition(".")
        length = max(len(whole.lstrip("0")), 1) + len(fraction)  # `.5` has two digits
        return Value(kind=ValueKind.DECIMAL, length=length, decimals=len(fraction), is_literal=True)
    digits = text.lstrip("0") or "0"
    kind = ValueKind.DECIMAL if int(digits) > _UNSIGNED_MAX else ValueKind.INTEGER
    is_unsigned = kind is ValueKind.INTEGER and int(digits) > _BIGINT_MAX
    return Value(kind=kind, length=len(digits), is_unsigned=is_unsigned, is_literal=True)
