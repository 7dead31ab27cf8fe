"""The tables that a filter wants at a place of a log: its rules, and the fate of the tables that they name.

Theory (seed 003, sections 4 to 6): with rules to do, a statement passes only if all its tables are
wanted; with rules to ignore it is left out if it involves an ignored one. So in both cases all its
tables must be wanted. A table or view whose making was left out, since it is made of tables that
are not wanted, is not wanted itself. Where renames are followed, a table stays what it was by its
first name; a RENAME or DROP of several tables is then done to those of them that are wanted, and
that is noted. Where only names count, such a statement is left out like any other, and a wanted
table that was renamed is traced, so that it can be named back.

A change of a table that the rules name is never left out without a note, and is counted. Where the
log does not tell whether a statement did anything, as IF EXISTS does not, what the rules name stays
wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from binlane.binlogs.filters.losses import Losses
from binlane.binlogs.filters.statement_concern import Concern
from binlane.binlogs.filters.terms import FilterTerms, RenameMode
from binlane.names import TableName, nearest
from binlane.statements.sql.statement_kinds import TABLE_DROPPING_KINDS, VIEW_KINDS, StatementKind

_SHOWN: Final = 3
_WHY_LOST: Final = "another table has this name now, or it was left out when it was made"
_OTHERS_MAX: Final = 1000
_OF_PROGRAMS: Final = frozenset(
    {
        *(StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER),
        *(StatementKind.CREATE_ROUTINE, StatementKind.DROP_ROUTINE),
    }
)
_REMEMBERED_MAX: Final = 1 << 14
"""Names of which it is known whether they are there; behind so many nothing of them is."""
Saved = Mapping[str, Sequence[Sequence[Any]]]
"""The memory of names, as JSON has it; a list where only renames were once."""


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """The judgement on a statement.

    Attributes:
        passes: True if the statement is printed, as it is or with another text.
        text: The text that replaces the statement's own; None to keep its own.
        tables: Tables that `text` is about.
        note: Remark for the user on the statement; empty if the rules plainly say it.
        lost: Tables that the rules name, and of which a change is left out.
    """

    passes: bool
    text: str | None = None
    tables: tuple[TableName, ...] = ()
    note: str = ""
    lost: tuple[TableName, ...] = ()

    @property
    def row_note(self) -> str:
        """The remark for readers of rows alone: `note`, but not that a part is taken of a statement."""
        return "" if self.passes and not self.lost else self.note


_PASSES: Final = FilterVerdict(passes=True)
_LEFT_OUT: Final = FilterVerdict(passes=False)


@dataclass(slots=True)
class _Memory:
    """Facts that the log told of names.

    Attributes:
        followed: Tables whose state differs from the rules on their names: True if the table is
            wanted.
        away: With RenameMode.NAME: present names of wanted tables that were renamed.
        there: By name, True if there is such a table, where a statement of the log told it.
        temporary: By session and name, True if the making of a temporary table passed.
        programs: By name, True if the making of a trigger passed, and False for routines whose
            making was left out.
        told: Tables of which it was noted that their changes are left out.
    """

    followed: dict[TableName, bool] = field(default_factory=dict)
    away: set[TableName] = field(default_factory=set)
    there: dict[TableName, bool] = field(default_factory=dict)
    temporary: dict[tuple[int, TableName], bool] = field(default_factory=dict)
    programs: dict[TableName, bool] = field(default_factory=dict)
    told: set[TableName] = field(default_factory=set)

    def copy(self) -> _Memory:
        return _Memory(*(getattr(self, one.name).copy() for one in fields(self)))


class FilterState:
    """The tables that are wanted, at one place of a log.

    Args:
        terms: The filter that was asked for.

    Attributes:
        terms: The filter that was asked for.
        version: Number that grows whenever the wanted tables change.
        empty_xa: Prepared XA transactions without any wanted change.
        left_out: Counts of changes left out of tables that the rules name.
        has_matched: True if the log is about something that is wanted.
        notes: Remarks on statements that `events.judged` took, each with a place.
    """

    def __init__(self, terms: FilterTerms) -> None:
        self.terms = terms
        self.version = 0
        self.empty_xa: set[str] = set()
        self.left_out = Losses()
        self.has_matched = False
        self.notes: list[str] = []
        self._others: set[TableName] = set()
        self._memory = _Memory()

    @classmethod
    def restored(cls, terms: FilterTerms, saved: Saved | Sequence[Sequence[Any]]) -> Self:
        """The state that `saved` told of."""
        state = cls(terms)
        memory = state._memory
        if not isinstance(saved, Mapping):
            saved = {"followed": saved}
        for name in ("followed", "there", "programs"):
            rows = saved.get(name, ())
            getattr(memory, name).update((TableName(*parts), value) for *parts, value in rows)
        for name in ("away", "told"):
            getattr(memory, name).update(TableName(*parts) for parts in saved.get(name, ()))
        memory.temporary.update(
            ((thread_id, TableName(*parts)), value)
            for thread_id, *parts, value in saved.get("temporary", ())
        )
        return state

    @property
    def saved(self) -> Saved:
        """The memory of names, for a reader who goes on here another time."""
        memory = self._memory
        saved: dict[str, list[list[Any]]] = {
            "followed": _rows(memory.followed),
            "there": _rows(memory.there),
            "programs": _rows(memory.programs),
            "away": sorted(map(_parts, memory.away)),
            "told": sorted(map(_parts, memory.told)),
            "temporary": sorted(
                [thread_id, *_parts(table), value]
                for (thread_id, table), value in memory.temporary.items()
            ),
        }
        return {name: rows for name, rows in saved.items() if rows}

    def copy(self) -> Self:
        """Copy the state, so that each changes by itself; losses are counted anew, and noted anew."""
        other = type(self)(self.terms)
        other.empty_xa = set(self.empty_xa)
        other.has_matched = self.has_matched
        other._others = self._others  # noqa: SLF001 - likewise; they only grow
        other._memory = self._memory.copy()  # noqa: SLF001 - of its own class
        return other

    def includes(self, table: TableName) -> bool:
        """True if changes of a table are wanted."""
        found = self._memory.followed.get(table)
        if found is None:
            found = self.terms.rules.includes(table)
        if found:
            self.has_matched = True
        elif not self.has_matched and len(self._others) < _OTHERS_MAX:
            self._others.add(table)
        return found

    def summary(self, *, is_whole: bool = True) -> list[str]:
        """Remarks for the user on a log as a whole, at its end.

        Args:
            is_whole: True if the log was looked at from its beginning.
        """
        return self.left_out.texts + [self.unmatched] * (is_whole and self.is_unmatched)

    @property
    def unmatched(self) -> str:
        """Remark for the user on a log that `is_unmatched`."""
        return f"the log has nothing of what the filter names; {self._nearest()}"

    @property
    def is_unmatched(self) -> bool:
        """True if the rules name something to be done, and the log has nothing of it."""
        return not (self.has_matched or self.terms.rules.does_all)

    def _nearest(self) -> str:
        if not self._others:
            return "it has no tables"
        wanted = sorted(self.terms.rules.do_tables)
        near = [found.plain for table in wanted if (found := nearest(table, self._others))]
        if near:
            return f"did you mean {' or '.join(near)}?"
        return f"it has {_shown(sorted(self._others))}"

    def includes_database(self, database: str) -> bool:
        """True if changes of a database as such are wanted."""
        found = self.terms.rules.includes_database(database)
        self.has_matched |= found
        return found

    def is_lost(self, table: TableName) -> bool:
        """True if the rules name a table whose changes are not wanted all the same."""
        return self.terms.rules.includes(table) and not self.includes(table)

    def lose(self, table: TableName, images: int, place: str) -> str:
        """Count row images of a table that `is_lost`.

        Args:
            table: The table that loses them.
            images: Number of row images lost.
            place: Place of the first one, as FILE:POSITION.

        Returns:
            The remark for the user; empty where it was given before.
        """
        self.left_out.lose(table, place, images=images)
        if table in self._memory.told:
            return ""
        self._memory.told.add(table)
        return f"changes of {table.plain} are left out from here on: {_WHY_LOST}"

    def restarted(self) -> None:
        """The server was started anew: its sessions, and their temporary tables, are gone."""
        self._memory.temporary.clear()

    def take(self, concern: Concern, place: str | None) -> FilterVerdict:
        """Judge the next statement of the log, and remember what it does to tables.

        Args:
            concern: Tables and objects of the statement.
            place: Place of the statement, as FILE:POSITION; None if it is of no interest itself, so
                that nothing is counted.
        """
        verdict = self._judge(concern)
        if concern.is_undone:
            return self._of_kinds(concern, replace(verdict, note="", lost=()))
        if place is not None:
            for table in verdict.lost:
                self.left_out.lose(table, place, statements=1)
                if self.is_lost(table):
                    self._memory.told.add(table)
        note = self._remember(concern, verdict)
        if note:
            verdict = replace(verdict, note="; ".join(filter(None, (verdict.note, note))))
        return self._of_kinds(concern, verdict)

    def judge(self, concern: Concern) -> FilterVerdict:
        """Judge the next statement of the log; nothing is remembered."""
        return self._of_kinds(concern, self._judge(concern))

    def _of_kinds(self, concern: Concern, verdict: FilterVerdict) -> FilterVerdict:
        terms = self.terms
        if verdict.passes and terms.has_kinds and concern.kind not in terms.statements:
            return _LEFT_OUT
        return verdict

    @property
    def goes_by_session(self) -> bool:
        """True if the session that ran a statement matters: some have temporary tables."""
        return bool(self._memory.temporary)

    # Judgements on statements.

    def _judge(self, concern: Concern) -> FilterVerdict:
        rules = self.terms.rules
        if rules.is_everything:
            return _PASSES
        if concern.is_open_ended:
            note = "what a statement writes cannot be told; it is left out"
            return FilterVerdict(passes=False, note=note)
        if concern.kind is StatementKind.DROP_TRIGGER and concern.effects.objects:
            return self._judge_drop_trigger(concern.effects.objects[0])
        if not (concern.tables or concern.databases):
            return _PASSES if rules.does_all else _LEFT_OUT
        return self._passed(concern) if self._passes_whole(concern) else self._parted(concern)

    def _parted(self, concern: Concern) -> FilterVerdict:
        """Judge a statement that does not pass as it is."""
        effects = concern.effects
        if effects.dropped_databases:
            return self._judge_drop_database(effects.dropped_databases)
        replaces = effects.is_or_replace or concern.kind is StatementKind.ALTER_VIEW
        made = effects.made if replaces and not effects.is_temporary else None
        if made is not None and self.includes(made):
            return self._drop_instead(concern, made)
        if not self._is_mixed(concern):
            return self._judge_unwanted(concern)
        if self.terms.rename is RenameMode.FOLLOW and concern.is_list:
            return self._part(concern)
        wanted = [table for table in concern.tables if self._wants(concern, table)]
        outside = [table for table in concern.tables if table not in wanted]
        return FilterVerdict(
            passes=False,
            note=f"a statement also concerns other tables ({_shown(outside)}); it is left out",
            lost=tuple(
                table
                for table in wanted
                if table in concern.changed and self.terms.rules.includes(table)
            ),
        )

    def _passed(self, concern: Concern) -> FilterVerdict:
        """Judge a statement that is wanted; note the objects that it needs."""
        notes = []
        missing = [table for table in concern.effects.referred_tables if not self.includes(table)]
        if missing:
            notes.append(
                f"a table refers to others that are not wanted ({_shown(missing)}): they must be there"
            )
        programs = self._memory.programs
        lacking = [name for name in concern.calls if programs.get(name) is False]
        if lacking:
            notes.append(
                f"it calls what was left out when it was made ({_shown(lacking)}): that must be there"
            )
        return FilterVerdict(passes=True, note="; ".join(notes)) if notes else _PASSES

    def _judge_unwanted(self, concern: Concern) -> FilterVerdict:
        """Judge a statement about nothing that is wanted."""
        if concern.drops or concern.effects.is_temporary:
            return _LEFT_OUT  # what the rules name is not there, or another table
        lost = tuple(
            table
            for table in concern.changed
            if self.is_lost(table) and not self._is_temporary(concern, table)
        )
        if not lost:
            return _LEFT_OUT
        new = [table for table in lost if table not in self._memory.told]
        note = f"a change of {_shown(new)} is left out: {_WHY_LOST}" if new else ""
        return FilterVerdict(passes=False, note=note, lost=lost)

    def _judge_drop_trigger(self, trigger: TableName) -> FilterVerdict:
        passed = self._memory.programs.get(trigger)
        if passed is not None:
            return _PASSES if passed else _LEFT_OUT
        rules = self.terms.rules
        if not rules.may_include_of(trigger.database):
            return _LEFT_OUT
        if rules.includes_whole(trigger.database):
            return _PASSES
        text = f"DROP TRIGGER IF EXISTS {trigger}"
        note = f"whose trigger {trigger.plain} is the log does not tell; this is taken: {text}"
        return FilterVerdict(passes=True, text=text, note=note)

    def _passes_whole(self, concern: Concern) -> bool:
        return all(self._wants(concern, table) for table in concern.tables) and all(
            map(self.includes_database, concern.databases)
        )

    def _is_mixed(self, concern: Concern) -> bool:
        return any(self._wants(concern, table) for table in concern.tables) and not (
            self._passes_whole(concern)
        )

    def _wants(self, concern: Concern, table: TableName) -> bool:
        """True if a table is wanted, as a statement concerns it.

        A temporary table stands before another table of its name. A table that was renamed away is
        where its rename took it, and can be renamed and dropped.
        """
        memory, effects = self._memory, concern.effects
        if memory.temporary and self._is_temporary(concern, table):
            return memory.temporary[concern.thread_id, table]
        is_other = effects.is_temporary and table in (effects.made, *effects.drops)
        if is_other or self._is_made_anew(concern, table):
            return self.terms.rules.includes(table)
        if table in memory.away and (effects.renames or table in concern.drops):
            return True
        return self.includes(table)

    def _is_made_anew(self, concern: Concern, table: TableName) -> bool:
        """True if a statement makes a table or view on whose name no statement before it bears."""
        effects = concern.effects
        if table != effects.made or effects.kind is StatementKind.ALTER_VIEW:
            return False
        return not effects.if_exists or self._memory.there.get(table) is False

    def _is_temporary(self, concern: Concern, table: TableName) -> bool:
        """True if a statement means a temporary table of its session by a name."""
        return (
            concern.effects.made != table and (concern.thread_id, table) in self._memory.temporary
        )

    def _judge_drop_database(self, databases: Iterable[str]) -> FilterVerdict:
        """Judge DROP DATABASE: its tables are gone at the source, and stay where the log is replayed."""
        inside = [
            *(table for name in databases for table in self.terms.rules.names_in(name)),
            *(table for table, wanted in self._memory.followed.items() if wanted),
        ]
        gone = sorted({table for table in inside if table.database in databases})
        if not gone:
            return _LEFT_OUT
        return FilterVerdict(
            passes=False,
            note=f"a database is dropped, and {_shown(gone)} with it; that is left out",
            lost=tuple(filter(self.terms.rules.includes, gone)),
        )

    def _part(self, concern: Concern) -> FilterVerdict:
        """Judge a RENAME or DROP of several tables: its part for the wanted tables is taken."""
        effects = concern.effects
        exists = " IF EXISTS" if effects.if_exists else ""
        if concern.kind in TABLE_DROPPING_KINDS:
            kept = [table for table in effects.drops if self._wants(concern, table)]
            what = "SEQUENCE" if concern.kind is StatementKind.DROP_SEQUENCE else "TABLE"
            temporary = " TEMPORARY" if effects.is_temporary else ""
            text = f"DROP{temporary} {what}{exists} {', '.join(map(str, kept))}"
        else:
            pairs = self._pairs_of_wanted(concern)
            kept = [old for old, _ in effects.net_renames if self._wants(concern, old)]
            text = f"RENAME TABLE{exists} " + ", ".join(f"{old} TO {new}" for old, new in pairs)
        note = f"of a statement about several tables, the part of {_shown(kept)} is taken: {text}"
        return FilterVerdict(passes=True, text=text, tables=tuple(kept), note=note)

    def _drop_instead(self, concern: Concern, table: TableName) -> FilterVerdict:
        """Drop a wanted table or view that an unwanted one replaces."""
        what = "VIEW" if concern.kind in VIEW_KINDS else "TABLE"
        text = f"DROP {what} IF EXISTS {table}"
        note = f"{table.plain} is replaced by what is not wanted; this is taken: {text}"
        lost = (table,) if self.terms.rules.includes(table) else ()
        return FilterVerdict(passes=True, text=text, tables=(table,), note=note, lost=lost)

    def _pairs_of_wanted(self, concern: Concern) -> list[tuple[TableName, TableName]]:
        names: dict[TableName, bool] = {}
        pairs = []
        for old, new in concern.effects.renames:
            names[new] = names.pop(old) if old in names else self._wants(concern, old)
            if names[new]:
                pairs.append((old, new))
        return pairs

    # Effects of statements on names.

    def _remember(self, concern: Concern, verdict: FilterVerdict) -> str:
        """Follow what a statement makes, renames and drops.

        Returns:
            The remark for the user on these; empty if there is none.
        """
        self._remember_program(concern, verdict)
        effects = concern.effects
        made, drops, renames = effects.made, concern.drops, effects.net_renames
        if effects.is_temporary or self._memory.temporary:
            made, drops, renames = self._remember_temporary(concern, verdict)
        note = "" if made is None else self._make(concern, made, verdict)
        for table in drops:
            self._forget(table)
            self._know(table, is_there=False)
        if effects.dropped_databases:
            self._drop_databases(effects.dropped_databases)
        if self.terms.rename is RenameMode.NAME:
            if verdict.passes:
                self._trace(renames)
            return note
        return note or self._follow(renames, if_exists=effects.if_exists)

    def _remember_program(self, concern: Concern, verdict: FilterVerdict) -> None:
        programs = self._memory.programs
        if concern.kind not in _OF_PROGRAMS or not concern.effects.objects:
            return
        program = concern.effects.objects[0]
        programs.pop(program, None)
        is_dropped = concern.kind in (StatementKind.DROP_TRIGGER, StatementKind.DROP_ROUTINE)
        if not is_dropped and (concern.kind is StatementKind.CREATE_TRIGGER or not verdict.passes):
            programs[program] = verdict.passes

    def _remember_temporary(
        self, concern: Concern, verdict: FilterVerdict
    ) -> tuple[TableName | None, tuple[TableName, ...], tuple[tuple[TableName, TableName], ...]]:
        """Follow temporary tables; give the other tables that a statement makes, drops and renames."""
        temporary, thread_id = self._memory.temporary, concern.thread_id
        effects = concern.effects
        self.version += 1
        if effects.is_temporary and effects.made is not None and thread_id:
            temporary[thread_id, effects.made] = verdict.passes
        own = {table for table in concern.drops if (thread_id, table) in temporary}
        for table in own:
            del temporary[thread_id, table]
        if effects.is_temporary:
            return None, (), ()
        moved = {old: new for old, new in effects.net_renames if (thread_id, old) in temporary}
        passed = {new: temporary.pop((thread_id, old)) for old, new in moved.items()}
        temporary.update({(thread_id, new): value for new, value in passed.items()})
        return (
            effects.made,
            tuple(table for table in concern.drops if table not in own),
            tuple(pair for pair in effects.net_renames if pair[0] not in moved),
        )

    def _make(self, concern: Concern, table: TableName, verdict: FilterVerdict) -> str:
        """Follow that a table or view was made."""
        is_kept = verdict.passes and verdict.text is None
        is_left_out = not is_kept and self._is_mixed(concern)
        if concern.effects.if_exists:
            is_there = self._memory.there.get(table)
            if is_there is None and is_left_out and self.includes(table):
                return f"whether {table.plain} was there before is not known: its changes are taken"
            if is_there is not False:
                self._know(table, is_there=True)
                return ""
        self._forget(table)
        self._know(table, is_there=True)
        if not (is_left_out and self.terms.rules.includes(table)):
            return ""
        self._say(table, is_wanted=False)
        self._memory.told.add(table)
        return f"{table.plain} is not there then, and its changes are left out"

    def _drop_databases(self, databases: Iterable[str]) -> None:
        memory = self._memory
        for table in {*memory.followed, *memory.away, *memory.there, *memory.told}:
            if table.database in databases:
                self._forget(table)
                self._know(table, is_there=False)
        for program in [name for name in memory.programs if name.database in databases]:
            del memory.programs[program]

    def _forget(self, table: TableName) -> None:
        self._memory.away.discard(table)
        self._memory.told.discard(table)
        if self._memory.followed.pop(table, None) is not None:
            self.version += 1

    def _know(self, table: TableName, *, is_there: bool) -> None:
        there = self._memory.there
        if len(there) >= _REMEMBERED_MAX:
            there.clear()
        there[table] = is_there

    def _follow(self, renames: Sequence[tuple[TableName, TableName]], *, if_exists: bool) -> str:
        doubted, moved, there = [], [], self._memory.there
        olds = {old for old, _ in renames}
        for old, new in renames:
            is_taken = there.get(new) is True and new not in olds
            if if_exists and (there.get(old) is False or is_taken):
                continue  # it did nothing
            if if_exists and there.get(old) is None:
                doubted.append((old, new))
            else:
                moved.append((old, new, self.includes(old)))
        for old, _, _ in moved:
            self._forget(old)
            self._know(old, is_there=False)
        for _, new, is_wanted in moved:
            self._forget(new)
            self._know(new, is_there=True)
            self._say(new, is_wanted=is_wanted)
        return "; ".join(filter(None, (self._doubt(old, new) for old, new in doubted)))

    def _doubt(self, old: TableName, new: TableName) -> str:
        """Take both names for wanted that are, as the log does not tell whether a rename was done."""
        if self.includes(old) == self.includes(new):
            return ""
        self._say(new, is_wanted=True)
        return (
            f"whether {old.plain} was there to be renamed is not known: changes of {new.plain} are"
            " taken"
        )

    def _trace(self, renames: Iterable[tuple[TableName, TableName]]) -> None:
        away = self._memory.away
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
        self._memory.followed.pop(table, None)
        if self.terms.rules.includes(table) != is_wanted:
            self._memory.followed[table] = is_wanted
        self.version += before != is_wanted


def _rows(names: Mapping[TableName, bool]) -> list[list[Any]]:
    return sorted([*_parts(name), value] for name, value in names.items())


def _parts(name: TableName) -> list[Any]:
    return [name.database, name.table]


def _shown(tables: Iterable[TableName]) -> str:
    names = [table.plain for table in tables]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
