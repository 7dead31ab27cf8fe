"""SQL of MariaDB and MySQL → that of SQLite, a token at a time.

What SQLite has under the same name stays as it is, white space included, since column heads are made
of it. Functions that it lacks are added by `worker`. What cannot be translated is an error, or
becomes one when SQLite reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.names import quote
from binlane.statements.sql.tokens import SqlSyntaxError, Token, TokenKind, split

_KEYWORDS: Final = frozenset(
    """
    ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CHECK COLLATE COMMIT CONSTRAINT CREATE CROSS
    DEFAULT DEFERRABLE DELETE DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM FULL GROUP HAVING
    IN INDEX INNER INSERT INTERSECT INTO IS ISNULL JOIN LEFT LIMIT NATURAL NOT NOTHING NOTNULL NULL
    ON OR ORDER OUTER PRIMARY REFERENCES RETURNING RIGHT SELECT SET TABLE THEN TO TRANSACTION UNION
    UNIQUE UPDATE USING VALUES WHEN WHERE
    """.split()  # noqa: SIM905 a list of words is easier to read
)
"""Words that SQLite takes for no name, and the servers do behind a dot or AS."""

_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RLIKE": "REGEXP",
        "STRAIGHT_JOIN": "JOIN",
        "DISTINCTROW": "DISTINCT",
        "DIV": "/",
        **dict.fromkeys(("SQL_NO_CACHE", "SQL_CACHE", "HIGH_PRIORITY", "SQL_BUFFER_RESULT"), ""),
        **dict.fromkeys(("SQL_BIG_RESULT", "SQL_SMALL_RESULT", "SQL_CALC_FOUND_ROWS"), ""),
    }
)
_OPERATORS: Final[Mapping[str, str]] = MappingProxyType(
    {"<=>": " IS ", "&&": " AND ", "!": " NOT ", "||": " OR ", "/": "* 1.0 /"}
)
_FORBIDDEN: Final = frozenset("?:@[]{}") | {":="}
_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("SIGNED", "UNSIGNED", "INTEGER", "INT"), "INTEGER"),
        **dict.fromkeys(("DOUBLE", "FLOAT", "REAL", "DECIMAL"), "REAL"),
        "BINARY": "BLOB",
    }
)
_FUNCTIONS: Final = frozenset(("LEFT", "RIGHT", "REPLACE", "IF"))
"""Functions whose names SQLite takes for something else, unless they are quoted."""
_MODIFIERS: Final = frozenset(("ALL", "DISTINCT", "DISTINCTROW")) | {
    word for word, text in _WORDS.items() if not text
}
_COMPOUNDS: Final = frozenset(("UNION", "EXCEPT", "INTERSECT"))
_DEPTH_MAX: Final = 50
"""CAST and GROUP_CONCAT inside of each other."""
GROUP_CONCAT: Final = "group_concat_of"
"""The aggregate of `worker`: flags, separator, value, and the keys by which values are sorted."""


def translate(statement: str, tokens: Sequence[Token], *, pipes_concat: bool = False) -> str:
    """The statement as SQLite takes it.

    Args:
        statement: The text of one SELECT.
        tokens: The statement's tokens, END included.
        pipes_concat: True if sql_mode has PIPES_AS_CONCAT.

    Raises:
        SqlSyntaxError: If it holds what SQLite cannot do.
    """
    return _Translation(statement, tokens, pipes_concat=pipes_concat).text()


class _Translation:
    def __init__(self, statement: str, tokens: Sequence[Token], *, pipes_concat: bool) -> None:
        self._statement = statement
        self._tokens = [token for token in tokens if token.kind is not TokenKind.END]
        self._operators = {**_OPERATORS, **({"||": "||"} if pipes_concat else {})}
        self._index = 0
        self._depth = 0
        self._top = dict.fromkeys(self._at_top_level())
        self._is_distinct_union = self._unites_distinct()
        self._heads = dict(self._unnamed_columns())

    def text(self) -> str:
        """The whole statement."""
        text = "".join(self._parts(len(self._tokens))).strip()
        # The servers keep the order in which UNION meets rows, where nothing else is asked for.
        if self._is_distinct_union:
            return f"SELECT DISTINCT * FROM ({text})"  # noqa: S608 it runs over a copy
        return text

    def _parts(self, end: int) -> Iterator[str]:
        """Give the translated texts of the tokens up to an index."""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            token = self._tokens[min(self._index, len(self._tokens) - 1)]
            raise self._error(token, f"at most {_DEPTH_MAX} functions inside of each other")
        while self._index < end:
            yield self._gap()
            yield self._one()
            if (head := self._heads.pop(self._index, None)) is not None:
                yield f" AS {quote(head)}"
        self._depth -= 1

    def _at_top_level(self) -> Iterator[int]:
        """The indexes of tokens outside of parentheses, which count as outside themselves."""
        depth = 0
        for index, token in enumerate(self._tokens):
            depth -= token.text == ")"
            if depth == 0:
                yield index
            depth += token.text == "("

    def _unites_distinct(self) -> bool:
        """True if the statement is a UNION of queries, never UNION ALL, without an order of its own."""
        words = [self._tokens[index].word for index in self._top]
        kinds = [
            (word, after)
            for word, after in zip(words, (*words[1:], ""), strict=True)
            if word in _COMPOUNDS
        ]
        has_end = "ORDER" in words or "LIMIT" in words
        return bool(kinds) and not has_end and all(k == "UNION" and a != "ALL" for k, a in kinds)

    def _unnamed_columns(self) -> Iterator[tuple[int, str]]:
        """Give the ends and texts of unnamed expressions in the first SELECT's list."""
        top = [index for index in self._top if self._tokens[index].text != "("]
        words = {index: self._tokens[index].word for index in top}
        start = next((index for index in top if words[index] == "SELECT"), None)
        if start is None:
            return
        while start + 1 < len(self._tokens) and self._tokens[start + 1].word in _MODIFIERS:
            start += 1
        start += 1
        for index in (*(index for index in top if index >= start), len(self._tokens)):
            ends = index == len(self._tokens) or words[index] in {"FROM", "WHERE", *_COMPOUNDS}
            is_comma = not ends and self._tokens[index].text == ","
            if not (ends or is_comma):
                continue
            last = self._tokens[index - 1]
            named = any(words.get(each) == "AS" for each in range(start, index))
            is_expression = last.text == ")" or last.kind is TokenKind.NUMBER
            if index - start > 1 and not named and is_expression:
                yield index, self._statement[self._tokens[start].offset : last.end]
            if ends:
                return
            start = index + 1

    def _gap(self) -> str:
        """The white space before the token; of comments none is left."""
        if not self._index:
            return ""
        before = self._tokens[self._index - 1].end
        gap = self._statement[before : self._tokens[self._index].offset]
        return gap if gap.isspace() or not gap else " "

    def _ahead(self, count: int = 1) -> Token | None:
        index = self._index + count
        return self._tokens[index] if 0 <= index < len(self._tokens) else None

    def _one(self) -> str:
        """Translate the token at hand, or a whole that it begins, and go behind it."""
        token, following = self._tokens[self._index], self._ahead()
        opens = following is not None and following.text == "("
        if token.word == "GROUP_CONCAT" and opens:
            return self._group_concat()
        if token.word == "CAST" and opens:
            return self._cast()
        if token.word == "FROM" and following is not None and following.word == "DUAL":
            self._index += 2
            return ""
        if token.text == "(" and self._is_at_query():
            self._index += 1
            return "SELECT * FROM ("
        text = self._translated(token, opens=opens)
        self._index += 1
        return text

    def _is_at_query(self) -> bool:
        """True if a query may stand here: SQLite takes none in parentheses at this place."""
        before = self._ahead(-1)
        if before is not None and before.word in ("ALL", "DISTINCT"):
            before = self._ahead(-2)
        return before is None or before.word in _COMPOUNDS

    def _translated(self, token: Token, *, opens: bool) -> str:
        kind, before = token.kind, self._ahead(-1)
        if kind is TokenKind.STRING:
            return self._string(token)
        if kind is TokenKind.QUOTED_NAME:
            return quote(token.value)
        if kind in (TokenKind.USER_VARIABLE, TokenKind.SYSTEM_VARIABLE):
            raise self._error(token, "a value: variables are not known to system tables")
        if kind is TokenKind.OPERATOR:
            if token.text in _FORBIDDEN:
                raise self._error(token, "something else: system tables do not know this")
            return self._operators.get(token.text, token.text)
        if kind is TokenKind.NAME and not self._is_name(before):
            return self._word(token, before, opens=opens)
        is_safe = token.text.upper() not in _KEYWORDS and "$" not in token.text
        is_safe = is_safe and not token.text[:1].isdigit()
        return token.text if is_safe or kind is TokenKind.NUMBER else quote(token.value)

    def _is_name(self, before: Token | None) -> bool:
        """True if the word at hand is a name by where it stands."""
        following = self._ahead()
        is_qualifier = following is not None and following.text == "."
        return is_qualifier or (before is not None and before.word == "AS")

    def _word(self, token: Token, before: Token | None, *, opens: bool) -> str:
        word, following = token.word, self._ahead()
        if word == "TABLE" and self._is_at_query():
            return "SELECT * FROM"
        if opens and word in _FUNCTIONS:
            return quote(token.value.lower())
        if word == "UNION" and self._is_distinct_union and self._index in self._top:
            return "UNION ALL"
        if word == "MOD" and not opens:
            return "%"
        if word == "DISTINCT" and before is not None and before.word in _COMPOUNDS:
            return ""
        if word[0] == "_" and following is not None and following.kind is TokenKind.STRING:
            return ""  # a character set before its string
        if before is not None and before.word == "COLLATE":
            return "NOCASE" if word.endswith("_CI") else "BINARY"
        if "$" in word:
            return quote(token.value)
        return _WORDS.get(word, token.text)

    def _string(self, token: Token) -> str:
        if "\0" in token.value:
            raise self._error(token, "a string without NUL")
        return "'" + token.value.replace("'", "''") + "'"

    def _cast(self) -> str:
        """CAST(expression AS type), with the type that SQLite has for it."""
        opening = self._tokens[self._index + 1]
        close = self._closing(self._index + 1)
        as_ = self._at_top("AS", self._index + 2, close)
        type_ = self._tokens[as_ + 1] if as_ + 1 < close else opening
        self._index += 2
        expression = "".join(self._parts(as_)).strip()
        self._index = close + 1
        return f"CAST({expression} AS {_TYPES.get(type_.word, 'TEXT')})"

    def _group_concat(self) -> str:
        """GROUP_CONCAT([DISTINCT] value … [ORDER BY key …] [SEPARATOR text]) as our own aggregate."""
        start, close = self._index + 2, self._closing(self._index + 1)
        separator = self._at_top("SEPARATOR", start, close, default=close)
        order = self._at_top("ORDER", start, separator, default=separator)
        is_distinct = self._tokens[start].word == "DISTINCT"
        values = self._expressions(start + is_distinct, order)
        keys = self._expressions(order + 2, separator) if order < separator else []
        between = "','"
        if separator < close:
            self._index = separator + 1
            between = "".join(self._parts(close)).strip()
        self._index = close + 1
        flags, sorted_by = ["d" if is_distinct else "-"], []
        for key in keys:
            head, _, direction = key.rpartition(" ")
            is_named = direction.upper() in ("ASC", "DESC")
            flags.append("<" if direction.upper() == "DESC" else ">")
            sorted_by.append(head if is_named else key)
        value = " || ".join(f"({value})" for value in values)
        arguments = ", ".join((f"'{''.join(flags)}'", between, value, *sorted_by))
        return f"{GROUP_CONCAT}({arguments})"

    def _expressions(self, start: int, end: int) -> list[str]:
        """Expressions with commas between them."""
        found = []
        for part in split(self._tokens[start:end]):
            if not part:
                raise self._error(self._tokens[min(start, len(self._tokens) - 1)], "an expression")
            self._index = self._tokens.index(part[0], start)
            found.append("".join(self._parts(self._index + len(part))).strip())
        return found

    def _closing(self, opening: int) -> int:
        """The index of the parenthesis that closes an open one."""
        depth = 0
        for index in range(opening, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[index].text, 0)
            if not depth:
                return index
        raise self._error(self._tokens[opening], "a closing parenthesis")

    def _at_top(self, word: str, start: int, end: int, *, default: int | None = None) -> int:
        """The index of a word outside of parentheses."""
        depth, index = 0, start
        while index < end:
            token = self._tokens[index]
            if not depth and token.word == word:
                return index
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            index += 1
        if default is None:
            raise self._error(self._tokens[min(end, len(self._tokens) - 1)], word)
        return default

    def _error(self, token: Token, expected: str) -> SqlSyntaxError:
        return SqlSyntaxError(self._statement, token.offset, expected)
