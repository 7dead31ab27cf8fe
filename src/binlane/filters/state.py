"""What a filter wants where a log stands: its rules, and what became of the tables that they name.

Theory (seed 003, sections 4 to 6): with rules to do, a statement passes only if all its tables are
wanted; with rules to ignore it is left out if it involves an ignored one. So in both cases all its
tables must be wanted. A table whose CREATE was left out, since it is made of one that is not wanted,
is not wanted itself. Where renames are followed, a table stays what it was by its first name; a
RENAME or DROP of several tables is then done to those of them that are wanted, and that is noted.
Where only names count, such a statement is left out like any other, and a wanted table that was
renamed is traced, so that it can be named back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self

from binlane.filters.concern import Concern
from binlane.filters.terms import FilterTerms, RenameMode
from binlane.names import TableName
from binlane.sql.facts import TABLE_DROPPING_KINDS, StatementKind

_SHOWN: Final = 3
_NOTHING: Final[Mapping[TableName, bool]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a statement.

    Attributes:
        passes: Whether it is printed, as it is or with another text.
        text: The text that it has then; None for its own.
        tables: What `text` is about.
        note: What a user should know of it; empty if the rules plainly say it.
    """

    passes: bool
    text: str | None = None
    tables: tuple[TableName, ...] = ()
    note: str = ""


_PASSES: Final = Verdict(passes=True)
_LEFT_OUT: Final = Verdict(passes=False)


class FilterState:
    """The tables that are wanted, at one place of a log.

    Args:
        terms: What was asked for.

    Attributes:
        terms: Likewise.
        version: Grows whenever what is wanted changes.
        empty_xa: XA transactions that are prepared of which nothing is wanted.
    """

    def __init__(
        self,
        terms: FilterTerms,
        followed: Mapping[TableName, bool] = _NOTHING,
        away: Iterable[TableName] = (),
    ) -> None:
        self.terms = terms
        self.version = 0
        self.empty_xa: set[str] = set()
        # What is said of a name that its rules say otherwise.
        self._followed = dict(followed)
        # With RenameMode.NAME: what wanted tables are called that were renamed.
        self._away = set(away)

    @classmethod
    def restored(cls, terms: FilterTerms, saved: Iterable[tuple[str, str, bool]]) -> Self:
        """The state that `saved` told of."""
        return cls(terms, {TableName(*name): is_wanted for *name, is_wanted in saved})

    @property
    def saved(self) -> list[tuple[str, str, bool]]:
        """What is remembered of names, for who goes on here another time."""
        return sorted(
            (name.database, name.table, is_wanted) for name, is_wanted in self._followed.items()
        )

    def copy(self) -> Self:
        """The same, which changes by itself."""
        other = type(self)(self.terms, self._followed, self._away)
        other.empty_xa = set(self.empty_xa)
        return other

    def includes(self, table: TableName) -> bool:
        """Whether changes of a table are wanted."""
        found = self._followed.get(table)
        return self.terms.rules.includes(table) if found is None else found

    def includes_database(self, database: str) -> bool:
        """Whether changes of a database as such are wanted."""
        return self.terms.rules.includes_database(database)

    def take(self, concern: Concern) -> Verdict:
        """Judge the next statement of the log, and remember what it does to tables."""
        verdict = self._judge(concern)
        if not verdict.passes and concern.made is not None and self._is_mixed(concern):
            self._say(concern.made, is_wanted=False)
        self._remember(concern, verdict)
        kinds = self.terms.statements
        if verdict.passes and self.terms.has_kinds and concern.kind not in kinds:
            return _LEFT_OUT
        return verdict

    def _judge(self, concern: Concern) -> Verdict:
        rules = self.terms.rules
        if rules.is_everything:
            return _PASSES
        if concern.is_open_ended:
            note = "what a statement writes cannot be told; it is left out"
            return Verdict(passes=False, note=note)
        if not (concern.tables or concern.databases):
            return _PASSES if rules.does_all else _LEFT_OUT
        if self._passes_whole(concern):
            missing = [table for table in concern.referred if not self.includes(table)]
            if not missing:
                return _PASSES
            note = f"a table refers to others that are not wanted ({_shown(missing)}): they must be there"
            return Verdict(passes=True, note=note)
        if concern.kind is StatementKind.DROP_DATABASE:
            return self._judge_drop_database(concern.databases)
        if not self._is_mixed(concern):
            return _LEFT_OUT
        if self.terms.rename is RenameMode.FOLLOW and concern.is_list:
            return self._part(concern)
        outside = [table for table in concern.tables if not self._wants(concern, table)]
        return Verdict(
            passes=False,
            note=f"a statement also concerns other tables ({_shown(outside)}); it is left out",
        )

    def _passes_whole(self, concern: Concern) -> bool:
        return all(self._wants(concern, table) for table in concern.tables) and all(
            map(self.includes_database, concern.databases)
        )

    def _is_mixed(self, concern: Concern) -> bool:
        return any(self._wants(concern, table) for table in concern.tables) and not (
            self._passes_whole(concern)
        )

    def _wants(self, concern: Concern, table: TableName) -> bool:
        """Whether a table is wanted, as a statement concerns it.

        A table that was renamed away is where its rename took it, and can be renamed and dropped.
        """
        if table in self._away and (concern.renames or table in concern.drops):
            return True
        return self.includes(table)

    def _judge_drop_database(self, databases: Iterable[str]) -> Verdict:
        """Its tables are gone at the source, and stay where the log is replayed."""
        inside = [
            *(table for name in databases for table in self.terms.rules.names_in(name)),
            *(table for table, wanted in self._followed.items() if wanted),
        ]
        gone = sorted({table for table in inside if table.database in databases})
        if not gone:
            return _LEFT_OUT
        return Verdict(
            passes=False,
            note=f"a database is dropped, and {_shown(gone)} with it; that is left out",
        )

    def _part(self, concern: Concern) -> Verdict:
        """What a RENAME or DROP of several tables does to those that are wanted."""
        exists = " IF EXISTS" if concern.if_exists else ""
        if concern.kind in TABLE_DROPPING_KINDS:
            kept = [table for table in concern.drops if self.includes(table)]
            what = "SEQUENCE" if concern.kind is StatementKind.DROP_SEQUENCE else "TABLE"
            temporary = " TEMPORARY" if concern.is_temporary else ""
            text = f"DROP{temporary} {what}{exists} {', '.join(map(str, kept))}"
        else:
            pairs = self._pairs_of_wanted(concern)
            kept = [old for old, _ in concern.renames if self.includes(old)]
            text = f"RENAME TABLE{exists} " + ", ".join(f"{old} TO {new}" for old, new in pairs)
        note = f"of a statement about several tables, the part of {_shown(kept)} is taken: {text}"
        return Verdict(passes=True, text=text, tables=tuple(kept), note=note)

    def _pairs_of_wanted(self, concern: Concern) -> list[tuple[TableName, TableName]]:
        names: dict[TableName, bool] = {}
        pairs = []
        for old, new in concern.pairs:
            is_wanted = names.pop(old, None)
            if is_wanted is None:
                is_wanted = self.includes(old)
            names[new] = is_wanted
            if is_wanted:
                pairs.append((old, new))
        return pairs

    def _remember(self, concern: Concern, verdict: Verdict) -> None:
        """Follow the tables that a statement renames or drops."""
        if concern.is_temporary:
            return  # what is beside it by the same name stays
        for table in concern.drops:
            self._forget(table)
        if concern.kind is StatementKind.DROP_DATABASE:
            for table in (*self._followed, *self._away):
                if table.database in concern.databases:
                    self._forget(table)
        if self.terms.rename is RenameMode.FOLLOW:
            self._follow(concern.renames)
        elif verdict.passes:
            self._trace(concern.renames)

    def _forget(self, table: TableName) -> None:
        self._away.discard(table)
        if self._followed.pop(table, None) is not None:
            self.version += 1

    def _follow(self, renames: Iterable[tuple[TableName, TableName]]) -> None:
        moved = [(old, new, self.includes(old)) for old, new in renames]
        for old, _, _ in moved:
            self._forget(old)
        for _, new, is_wanted in moved:
            self._say(new, is_wanted=is_wanted)

    def _trace(self, renames: Iterable[tuple[TableName, TableName]]) -> None:
        away = self._away
        moved = [(old, new, old in away, self.includes(old)) for old, new in renames]
        away.difference_update(old for old, _, _, _ in moved)
        away.update(
            new
            for _, new, was_away, was_in in moved
            if (was_away or was_in) and not self.includes(new)
        )

    def _say(self, table: TableName, *, is_wanted: bool) -> None:
        """Say of a name whether it is wanted, whatever the rules say of it."""
        before = self.includes(table)
        self._followed.pop(table, None)
        if self.terms.rules.includes(table) != is_wanted:
            self._followed[table] = is_wanted
        self.version += before != is_wanted


def _shown(tables: Iterable[TableName]) -> str:
    names = [table.plain for table in tables]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
