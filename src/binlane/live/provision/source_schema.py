"""Binlane's own table on a source, for the sake of binlogs that hold statements.

The source logs nothing of temporary tables; where a binlog is to hold a statement on them, binlane's
account changes the one row of `binlane.marks`, so that the source's log has a group for it. Nothing
else of binlane's is on the source, and nothing in its log.

Here stands how the source is asked for that and what is said of the answers; who asks and mends is
`service.setup`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.binlogs.routing.cut_group import MARKS
from binlane.live.capture.source_facts import SourceFacts, SourceFinding, Weight, quoted_account
from binlane.log.codec.types import Flavor

VERSION: Final = 2
"""The version of the table; it stands in the table's comment."""
_DATABASE: Final = MARKS.database
_COMMENT: Final = "of binlane, version "
_OLD_PROCEDURES: Final = ("lane", "mark")
_OLD_ACCOUNT: Final = "binlane_lane@localhost"
"""The account that an earlier binlane had beside the table."""
_OWN: Final = frozenset(
    (("table", MARKS.table), *(("procedure", name) for name in _OLD_PROCEDURES))
)
_THREADS_SINCE: Final = (11, 5)
"""MariaDB names the thread of a session in each GTID event since then."""
_RIGHTS: Final = ("SELECT", "INSERT", "UPDATE")

ANNOTATES_STATEMENT: Final = "SHOW GLOBAL VARIABLES LIKE 'binlog_annotate_row_events'"
OBJECTS_STATEMENT: Final = (
    "SELECT 'table', TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = 'binlane'"
    " UNION ALL SELECT LOWER(ROUTINE_TYPE), ROUTINE_NAME, ROUTINE_COMMENT"
    " FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'binlane'"
)


def wanted_privileges(flavor: Flavor) -> tuple[str, ...]:
    """Return the privileges with which binlane's account sees all definitions."""
    common = ("SELECT", "SHOW VIEW", "TRIGGER")
    return (*common, "SHOW_ROUTINE") if flavor is Flavor.MYSQL else common


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSchema:
    """The marks, and what they need, on a source, as far as the account that asks may see it.

    Attributes:
        facts: The facts of the source, and of the account that `serve` uses.
        objects: The objects of the database: kind (`table`, `procedure`, `function`), name and
            comment; None where they are not to be seen.
        has_marks: True if marks are wanted.
        annotates: True if the source writes texts before the rows of statements; None where it does
            not say so.
    """

    facts: SourceFacts
    objects: Sequence[tuple[str, ...]] | None
    has_marks: bool = True
    annotates: bool | None = None

    def findings(self) -> Iterator[SourceFinding]:
        """Give the findings in order: what mends one is run before the next is asked for."""
        yield self._catalog()
        yield self._annotating()
        if not self.has_marks:
            return
        made = self._made()
        yield made
        if made.weight is Weight.FINE or made.mend:
            yield self._rights(is_made_anew=bool(made.mend))

    def _catalog(self) -> SourceFinding:
        """Judge if the account that `serve` uses sees all definitions."""
        facts = self.facts
        wanted = wanted_privileges(facts.flavor)
        lacking = [name for name in wanted if not facts.has_privilege(name)]
        key, value = "definitions", ", ".join(sorted(facts.privileges))
        if not lacking:
            return SourceFinding(key=key, value=value, wanted=", ".join(wanted))
        names = ", ".join(lacking)
        return SourceFinding(
            key=key,
            value=value,
            wanted=", ".join(wanted),
            weight=Weight.WARNING,
            reason=f"the account {facts.account} lacks {names}, so it does not see all definitions:"
            " statements at the port are not judged, and all binlogs get rows",
            mend=(f"GRANT {names} ON *.* TO {quoted_account(facts.account)}",),
        )

    def _annotating(self) -> SourceFinding:
        """Judge if a text tells the sessions of groups for which the log names no thread."""
        key = "binlog_annotate_row_events"
        is_needed = self.facts.flavor is Flavor.MARIADB and self.facts.number < _THREADS_SINCE
        if not is_needed or self.annotates is not False:
            return SourceFinding(key=key, value="", wanted="ON" if is_needed else "")
        return SourceFinding(
            key=key,
            value="OFF",
            wanted="ON",
            weight=Weight.WARNING,
            reason=f"{key} is off: binlogs of statements wait for replies that tell nothing of what"
            " they wait with",
            mend=(f"SET GLOBAL {key} = ON",),
        )

    def _made(self) -> SourceFinding:
        """Judge if the database holds what it should, of the version that it should have."""
        if self.objects is None:
            return SourceFinding(
                key="marks",
                value="",
                weight=Weight.WARNING,
                reason=f"the account does not see whether the source has the table {MARKS.plain},"
                " which binlogs of statements need for temporary tables",
            )
        comments = {(kind, name): comment for kind, name, comment in self.objects}
        value = ", ".join(sorted(name for _, name in comments)) or "none"
        theirs = sorted(
            name
            for (kind, name), comment in comments.items()
            if (kind, name) in _OWN and not comment.startswith(_COMMENT)
        )
        if theirs or (comments and not _OWN & comments.keys()):
            return SourceFinding(
                key="marks",
                value=value,
                weight=Weight.WARNING,
                reason=f"the source has a database {_DATABASE} that is not binlane's: it holds"
                f" {', '.join(theirs) or value}",
                note=f"{_DATABASE} is where binlogs of statements have what they need for temporary"
                " tables: rename what is there; without that such statements are not in them",
            )
        old = sorted(name for kind, name in comments.keys() & _OWN if kind == "procedure")
        number = comments.get(("table", MARKS.table), "").removeprefix(_COMMENT)
        if not old and number.isdigit() and int(number) >= VERSION:
            return SourceFinding(key="marks", value=value)
        return SourceFinding(
            key="marks",
            value=value,
            weight=Weight.WARNING,
            reason=f"what the source's database {_DATABASE} holds is of an older binlane"
            if comments
            else f"binlogs of statements lack temporary tables without the table {MARKS.plain}: its"
            " one row changes, in the source's log too, for each statement on temporary tables that"
            " such a binlog gets, and for nothing else (--no-marks does without)",
            mend=tuple(self._making(old)),
        )

    @staticmethod
    def _making(old: Sequence[str]) -> Iterator[str]:
        """The statements that make the table anew, and take away what was needed before."""
        yield f"CREATE DATABASE IF NOT EXISTS {_DATABASE}"
        for name in old:
            yield f"DROP PROCEDURE {_DATABASE}.{name}"
        if old:
            yield f"DROP USER IF EXISTS {quoted_account(_OLD_ACCOUNT)}"
        yield f"DROP TABLE IF EXISTS {MARKS.plain}"
        # `routing.makers` finds the thread in a row of just this form.
        yield (
            f"CREATE TABLE {MARKS.plain} (id TINYINT UNSIGNED NOT NULL PRIMARY KEY,"
            " thread BIGINT UNSIGNED NOT NULL, number BIGINT UNSIGNED NOT NULL)"
            f" ENGINE = InnoDB COMMENT '{_COMMENT}{VERSION}'"
        )

    def _rights(self, *, is_made_anew: bool) -> SourceFinding:
        """Judge if the account that `serve` uses may change the table."""
        facts = self.facts
        told = [grant for grant in facts.grants if f" ON {MARKS} TO " in grant]
        lacking = [
            name
            for name in _RIGHTS
            if not facts.has_privilege(name) and not any(name in grant for grant in told)
        ]
        if not lacking and not (is_made_anew and told):
            return SourceFinding(key="marks.rights", value="")
        return SourceFinding(
            key="marks.rights",
            value="; ".join(told),
            weight=Weight.WARNING,
            reason=f"the account {facts.account} may not change {MARKS.plain}",
            mend=(
                f"GRANT {', '.join(_RIGHTS)} ON {MARKS.plain} TO {quoted_account(facts.account)}",
            ),
        )
