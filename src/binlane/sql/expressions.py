"""What expressions call and read: functions, variables, sequences, subqueries.

No tree is made of an expression and its operators are not looked at: only parentheses, calls and
the words that begin a query or clause matter. Whatever could name a table is either read or stops
the analysis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field

from binlane.names import TableName
from binlane.sql.cursor import Cursor
from binlane.sql.draft import Draft
from binlane.sql.facts import (
    FunctionUse,
    RowChange,
    SystemVariableUse,
    TableUse,
    UserVariableUse,
    VariableScope,
)
from binlane.sql.keywords import (
    CALLED_END_WORDS,
    CALLS_WITHOUT_PARENTHESES,
    CLAUSE_GROUPS,
    CLAUSE_WORDS,
    END_WORDS,
    NO_FUNCTIONS,
    ORACLE_SEQUENCE_MEMBERS,
    QUERY_WORDS,
    SEQUENCE_FUNCTIONS,
    SET_OPERATIONS,
)
from binlane.sql.steps import Steps
from binlane.sql.tokens import NAME_KINDS, Token, TokenKind

_SCOPES = {
    "global": VariableScope.GLOBAL,
    "session": VariableScope.SESSION,
    "local": VariableScope.SESSION,
    "persist": VariableScope.PERSIST,
    "persist_only": VariableScope.PERSIST,
}


class CommonTables:
    """Names that WITH clauses around a query define, the innermost first."""

    __slots__ = ("_around", "_names")

    def __init__(self, around: CommonTables | None = None) -> None:
        self._around = around
        self._names: set[str] = set()

    def define(self, name: str) -> None:
        """Let a name mean a common table expression from here on."""
        self._names.add(name)

    def __contains__(self, name: str) -> bool:
        clause: CommonTables | None = self
        while clause is not None:
            if name in clause._names:  # noqa: SLF001 - of its own class
                return True
            clause = clause._around  # noqa: SLF001
        return False


def _is_end(operator: str, ends_at_comma: bool) -> bool:  # noqa: FBT001
    """Whether an expression ends before an operator that stands outside of parentheses."""
    return operator in (")", "}") or (ends_at_comma and operator == ",")


@dataclass(slots=True)
class _Group:
    """An open parenthesis; `first` and `last` tokens of a call's name, None if it calls nothing."""

    opening: Token
    first: Token | None = None
    last: Token | None = None
    holds_clauses: bool = False
    begin: int = 0
    """Where the current argument begins, as a token's number."""
    arguments: list[tuple[int, int]] = field(default_factory=list)
    """Where they begin and end, in characters."""


class ExpressionReader(ABC):
    """Reads expressions at a cursor into a draft."""

    __slots__ = ("_groups", "cursor", "draft")

    def __init__(self, cursor: Cursor, draft: Draft) -> None:
        self.cursor = cursor
        self.draft = draft

    @abstractmethod
    def query(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read a query, up to what cannot be part of it."""

    @abstractmethod
    def rest_of_query(self, common: CommonTables, *, is_outermost: bool) -> Steps[None]:
        """Read what may follow a query in parentheses: UNION, ORDER BY, LIMIT and the like."""

    def expression(
        self, common: CommonTables, *, ends: Collection[str] = (), ends_at_comma: bool = False
    ) -> Steps[None]:
        """Read one expression or several, up to what cannot be part of them.

        Args:
            common: The common table expressions that subqueries see.
            ends: More words to end before.
            ends_at_comma: Read a single one.
        """
        cursor = self.cursor
        groups: list[_Group] = []
        while True:
            token = cursor.token
            kind = token.kind
            if kind is TokenKind.NAME:
                if (not groups and token.word in ends) or not self._word(groups):
                    break
            elif kind is TokenKind.OPERATOR:
                if token.text == ";" or (not groups and _is_end(token.text, ends_at_comma)):
                    break
                if not self._operator(token, groups):
                    continue
                yield self.query(common, is_outermost=False)
                cursor.expect_operator(")")
                if groups and cursor.word in (*SET_OPERATIONS, "ORDER", "LIMIT"):
                    yield self.rest_of_query(common, is_outermost=False)
            elif kind is TokenKind.END:
                break
            else:
                self._operand(kind, groups)
        if groups:
            raise cursor.stop("a closing parenthesis")

    def _operand(self, kind: TokenKind, groups: list[_Group]) -> None:
        """Read what is neither word nor operator."""
        if kind is TokenKind.QUOTED_NAME:
            self._name(groups)
        elif kind is TokenKind.USER_VARIABLE:
            self.user_variable()
        elif kind is TokenKind.SYSTEM_VARIABLE:
            self._system_variable()
        else:
            self.cursor.advance()

    def _operator(self, token: Token, groups: list[_Group]) -> bool:
        """Read an operator; say whether it is a parenthesis with a query in it."""
        cursor = self.cursor
        match token.text:
            case "(":
                return self._opens_query(groups)
            case "{":
                groups.append(_Group(cursor.advance()))
            case ")" | "}":
                self._close(groups)
            case "," if groups:
                self._end_argument(groups[-1])
                cursor.advance()
                groups[-1].begin = cursor.index
            case _:
                cursor.advance()
        return False

    # Parentheses ------------------------------------------------------------------------------

    def _opens_query(self, groups: list[_Group]) -> bool:
        """Read a parenthesis that calls nothing; say whether a query follows, else open a group."""
        cursor = self.cursor
        before = cursor.ahead(-1).word
        opening = cursor.advance()
        if cursor.word in QUERY_WORDS and not self._is_values_function():
            return True
        groups.append(_Group(opening, holds_clauses=before in CLAUSE_GROUPS, begin=cursor.index))
        return False

    def _is_values_function(self) -> bool:
        """Whether VALUES comes next as the function of one column that ON DUPLICATE KEY knows."""
        cursor = self.cursor
        if cursor.word != "VALUES" or cursor.ahead(1).text != "(":
            return False
        count = 2
        while cursor.ahead(count).kind in NAME_KINDS:
            if cursor.ahead(count + 1).text != ".":
                return cursor.ahead(count + 1).text == ")"
            count += 2
        return False

    def _close(self, groups: list[_Group]) -> None:
        cursor = self.cursor
        group = groups.pop()
        if (group.opening.text == "(") != (cursor.token.text == ")"):
            raise cursor.stop("the partner of a parenthesis")
        if group.first is None or group.last is None:
            cursor.advance()
            return
        if cursor.index > group.begin or group.arguments:
            self._end_argument(group)
        end = cursor.advance().end
        first, last = group.first, group.last
        arguments = self.draft.arguments(group.arguments)
        self.draft.call(
            FunctionUse(
                name=last.value,
                database=None if first is last else first.value,
                arguments=arguments,
                argument_offsets=tuple(start for start, _ in group.arguments[: len(arguments)]),
                offset=first.offset,
                length=end - first.offset,
                is_quoted=last.kind is TokenKind.QUOTED_NAME,
            )
        )

    def _end_argument(self, group: _Group) -> None:
        if group.first is None:
            return
        cursor = self.cursor
        start = cursor.at(group.begin).offset
        group.arguments.append((start, max(start, cursor.ahead(-1).end)))

    def _call(self, groups: list[_Group], first: Token, last: Token) -> None:
        """Go behind the parenthesis that opens a call."""
        opening = self.cursor.advance()
        if first is last and last.word in SEQUENCE_FUNCTIONS:
            self._sequence_argument(last.word)
        groups.append(_Group(opening, first, last, holds_clauses=True, begin=self.cursor.index))

    # Words ------------------------------------------------------------------------------------

    def _word(self, groups: list[_Group]) -> bool:
        """Read a word without quotes; False if the expression ends before it."""
        cursor = self.cursor
        token, following = cursor.token, cursor.ahead(1).text
        word = token.word
        if word in END_WORDS and not (following == "(" and word in CALLED_END_WORDS):
            if not self._is_plain_word(word, groups):
                if not groups:
                    return False
                if not (groups[-1].holds_clauses and word in CLAUSE_WORDS):
                    raise cursor.stop("an expression")
            cursor.advance()
        elif following == "(" and word in NO_FUNCTIONS:
            cursor.advance()
        elif word in ("NEXT", "PREVIOUS") and following.upper() == "VALUE":
            self._value_for(word)
        elif word in CALLS_WITHOUT_PARENTHESES and following not in ("(", "."):
            cursor.advance()
            self.draft.call(
                FunctionUse(name=token.text, offset=token.offset, length=len(token.text))
            )
        elif word == "DEFAULT" and following != "(":
            self.draft.defaults |= not groups or not groups[-1].holds_clauses
            cursor.advance()
        elif following == "(" and cursor.ahead(-1).word == "AS":
            cursor.advance()  # CAST(x AS CHAR(3))
        else:
            self._name(groups)
        return True

    def _is_plain_word(self, word: str, groups: list[_Group]) -> bool:
        """Whether an end word is none here."""
        cursor = self.cursor
        following, before = cursor.ahead(1).word, cursor.ahead(-1).word
        match word:
            case "OFFSET":  # a name in older servers
                return cursor.ahead(2).word not in ("ROW", "ROWS")
            case "WINDOW":  # likewise in MariaDB
                return cursor.ahead(2).word != "AS"
            case "GROUP":
                return before == "WITHIN"
            case "NATURAL":
                return following == "LANGUAGE"
            case "INSERT" | "UPDATE" | "DELETE":  # WITH (INSERT, DELETE) of JSON_DUALITY_OBJECT
                around = (cursor.ahead(-1).text, cursor.ahead(1).text)
                return bool(groups) and around[0] in ("(", ",") and around[1] in (",", ")")
            case "SET":
                return before in ("CHARACTER", "CHAR")
            case "WITH":
                return bool(groups) and following in ("QUERY", "ROLLUP", "UNIQUE", "WITHOUT")
            case "FROM":  # NTH_VALUE(a, 2) FROM FIRST OVER w
                return following == "FIRST" and cursor.ahead(2).word in ("OVER", "RESPECT")
        return False

    def _name(self, groups: list[_Group]) -> None:
        """Read a column, or the name of a function with its opening parenthesis."""
        cursor = self.cursor
        start = cursor.index
        first = last = cursor.advance()
        while cursor.token.text == "." and cursor.ahead(1).kind in NAME_KINDS:
            cursor.advance()
            first, last = last, cursor.advance()
        if cursor.token.text == "(" and cursor.token.kind is TokenKind.OPERATOR:
            self._call(groups, first, last)
        elif last is not first and last.text.upper() in ORACLE_SEQUENCE_MEMBERS:
            self._sequence_member(start, last)

    # Variables and sequences ------------------------------------------------------------------

    def user_variable(self, *, is_target: bool = False) -> None:
        """Read `@name`; a target is one of INTO or SET."""
        cursor = self.cursor
        token = cursor.advance()
        is_assigned = is_target or cursor.token.text == ":="
        self.draft.user_variables.append(
            UserVariableUse(
                name=variable_name(token),
                is_assigned=is_assigned,
                is_read=not is_assigned,
                offset=token.offset,
                length=len(token.text),
            )
        )

    def _system_variable(self) -> None:
        token = self.cursor.advance()
        scope, name = system_variable(token)
        self.draft.system_variables.append(
            SystemVariableUse(name=name, scope=scope, offset=token.offset, length=len(token.text))
        )

    def _value_for(self, word: str) -> None:
        """NEXT VALUE FOR and PREVIOUS VALUE FOR."""
        cursor = self.cursor
        first = cursor.advance()
        cursor.expect("VALUE", "FOR")
        start = cursor.index
        self._sequence(cursor.qualified_name(), start, advances=word == "NEXT")
        argument = cursor.since(start)
        self.draft.functions.append(
            FunctionUse(
                name="NEXTVAL" if word == "NEXT" else "LASTVAL",
                arguments=(self.draft.slice(argument),),
                argument_offsets=(argument[0].offset,),
                offset=first.offset,
                length=argument[-1].end - first.offset,
            )
        )

    def _sequence_argument(self, word: str) -> None:
        """Note the sequence that NEXTVAL, SETVAL or LASTVAL is called with; read nothing."""
        cursor = self.cursor
        start = cursor.index
        self._sequence(cursor.qualified_name(), start, advances=word != "LASTVAL")
        cursor.index = start

    def _sequence_member(self, start: int, member: Token) -> None:
        """`s.NEXTVAL` and `s.CURRVAL`; elsewhere than in sql_mode ORACLE they may be columns."""
        if not self.draft.is_oracle:
            raise self.cursor.stop("a function for the sequence")
        tokens = self.cursor.since(start)[:-2]
        names = [token.value for token in tokens if token.kind in NAME_KINDS]
        name = (None, names[0]) if len(names) == 1 else (names[0], names[1])
        advances = member.text.upper() == "NEXTVAL"
        self.draft.use(
            table_use(
                self.draft.resolve(name),
                tokens,
                changes=frozenset((RowChange.SEQUENCE,) if advances else ()),
                is_sequence=True,
            )
        )
        self.draft.functions.append(
            FunctionUse(
                name="NEXTVAL" if advances else "LASTVAL",
                arguments=(self.draft.slice(tokens),),
                argument_offsets=(tokens[0].offset,),
                offset=tokens[0].offset,
                length=member.end - tokens[0].offset,
            )
        )

    def _sequence(self, name: tuple[str | None, str], start: int, *, advances: bool) -> None:
        self.draft.use(
            table_use(
                self.draft.resolve(name),
                self.cursor.since(start),
                changes=frozenset((RowChange.SEQUENCE,) if advances else ()),
                is_sequence=True,
            )
        )


def table_use(
    name: TableName,
    tokens: list[Token],
    *,
    alias: str | None = None,
    changes: frozenset[RowChange] = frozenset(),
    is_outermost: bool = True,
    is_sequence: bool = False,
) -> TableUse:
    """A use of the table that `tokens` name."""
    return TableUse(
        name=name,
        alias=name.table if alias is None else alias,
        changes=changes,
        offset=tokens[0].offset,
        length=tokens[-1].end - tokens[0].offset,
        is_outermost=is_outermost,
        is_sequence=is_sequence,
    )


def variable_name(token: Token) -> str:
    """The name of a user variable, without `@` and quotes, in lower case."""
    name = token.text[1:]
    if name[:1] in ("`", "'", '"'):
        name = name[1:-1].replace(name[0] * 2, name[0])
    return name.lower()


def system_variable(token: Token) -> tuple[VariableScope, str]:
    """Scope and name of `@@name`, in lower case; a key cache or component before it stays."""
    name = token.text[2:].replace("`", "").lower()
    scope, dot, rest = name.partition(".")
    if dot and scope in _SCOPES:
        return _SCOPES[scope], rest
    return VariableScope.UNSAID, name
