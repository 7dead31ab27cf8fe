"""What binlane has on a source for itself: a database with two procedures and a table.

`lane(number)` puts the session that calls it into a lane, `mark()` makes the source log a group in
the lane of the session that calls it, by changing that lane's row in `marks`. Both run as a locked
account that may do just that; whoever uses the port may call `lane`, binlane's own account both.

Here stands how the source is asked for all that and what is said of the answers; who asks and
mends is `service.setup`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.capture.source_facts import Finding, SourceFacts, Weight, quoted_account
from binlane.codec.types import Flavor
from binlane.names import quote
from binlane.port.lanes import (
    DATABASE,
    ENTER,
    MARK,
    MARKS,
    SERVER_ID_FIRST,
    SERVER_ID_LAST,
    Lanes,
)

VERSION: Final = 1
"""Of what binlane has on a source; stands in the comments of the procedures and the table."""
DEFINER: Final = "binlane_lane@localhost"
"""Who the procedures run as; nobody can log in as it."""
_DEFINING: Final = f"CREATE USER IF NOT EXISTS {quoted_account(DEFINER)} ACCOUNT LOCK"
_COMMENT: Final = "of binlane, version "
_OWN: Final = frozenset((("procedure", ENTER), ("procedure", MARK), ("table", MARKS.table)))
_TAGS_SINCE: Final = (8, 3)
_PUBLIC_SINCE: Final = (10, 11)

OBJECTS_STATEMENT: Final = (
    "SELECT 'table', TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = 'binlane'"
    " UNION ALL SELECT LOWER(ROUTINE_TYPE), ROUTINE_NAME, ROUTINE_COMMENT"
    " FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'binlane'"
)
_PUBLIC_CALLERS: Final = (
    "SELECT 'PUBLIC', '' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM mysql.procs_priv p"
    " WHERE p.User = 'PUBLIC' AND p.Host = '' AND p.Db = 'binlane' AND p.Routine_name = 'lane'"
    " AND p.Routine_type = 'PROCEDURE' AND FIND_IN_SET('Execute', p.Proc_priv))"
)
_EACH_CALLER: Final = """SELECT u.User, u.Host FROM mysql.user u
 WHERE {} AND u.Execute_priv = 'N' AND u.User <> 'binlane_lane'
 AND NOT EXISTS (SELECT 1 FROM mysql.procs_priv p
 WHERE p.User = u.User AND p.Host = u.Host AND p.Db = 'binlane' AND p.Routine_name = 'lane'
 AND p.Routine_type = 'PROCEDURE' AND FIND_IN_SET('Execute', p.Proc_priv))
 AND NOT EXISTS (SELECT 1 FROM mysql.db d
 WHERE d.User = u.User AND d.Host = u.Host AND d.Db = 'binlane' AND d.Execute_priv = 'Y')
 ORDER BY 1, 2"""


def wanted_privileges(flavor: Flavor) -> tuple[str, ...]:
    """What binlane's account needs to see all definitions, and which sessions there are."""
    common = ("PROCESS", "SELECT", "SHOW VIEW", "TRIGGER")
    return (*common, "SHOW_ROUTINE") if flavor is Flavor.MYSQL else common


def callers_statement(facts: SourceFacts) -> str:
    """What asks who may not call `lane` yet: users and hosts.

    MariaDB since 10.11 has PUBLIC, which is everybody; else each account needs a grant of its own,
    also those that are made later. MySQL's roles are of no use for that: they count only where a
    session, or the server for all of them, has made them active.
    """
    if facts.flavor is Flavor.MYSQL:
        return _EACH_CALLER.format("u.account_locked = 'N'")
    if facts.number >= _PUBLIC_SINCE:
        return _PUBLIC_CALLERS
    return _EACH_CALLER.format("u.is_role = 'N' AND u.User <> 'mariadb.sys'")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSchema:
    """What a source has of all that, as far as the account that asks may see it.

    Attributes:
        facts: Of the source, and the account that `serve` uses.
        objects: Of the database: kind (`table`, `procedure`, `function`), name and comment; None
            where they are not to be seen.
        definer_grants: Of `DEFINER`; nothing where it is not there, None where that is not to be
            seen.
        lacking_callers: User and host of those that may not call `lane`; None where that is not
            to be seen.
    """

    facts: SourceFacts
    objects: Sequence[tuple[str, ...]] | None
    definer_grants: Sequence[str] | None
    lacking_callers: Sequence[tuple[str, ...]] | None

    def findings(self) -> Iterator[Finding]:
        """What was looked at, judged; what mends the first is run before the next is asked for."""
        yield self._catalog()
        if self.facts.flavor is Flavor.MYSQL and self.facts.number < _TAGS_SINCE:
            yield Finding(
                key="lanes",
                value="none",
                weight=Weight.WARNING,
                reason=f"MySQL {self.facts.version} has no tags of GTIDs (8.3 has): through the port"
                " all binlogs get rows",
            )
            return
        yield self._server_id()
        made = self._made()
        yield made
        if made.weight is Weight.FINE or made.mend:
            yield self._definer(is_made_anew=bool(made.mend))
            yield from self._callers(is_made_anew=bool(made.mend))

    def _catalog(self) -> Finding:
        """Whether the account that `serve` uses sees all definitions."""
        facts = self.facts
        wanted = wanted_privileges(facts.flavor)
        lacking = [name for name in wanted if not facts.has_privilege(name)]
        key, value = "definitions", ", ".join(sorted(facts.privileges))
        if not lacking:
            return Finding(key=key, value=value, wanted=", ".join(wanted))
        names = ", ".join(lacking)
        return Finding(
            key=key,
            value=value,
            wanted=", ".join(wanted),
            weight=Weight.WARNING,
            reason=f"the account {facts.account} lacks {names}, so it does not see all definitions"
            " and sessions: statements at the port are not judged, and all binlogs get rows",
            mend=(f"GRANT {names} ON *.* TO {quoted_account(facts.account)}",),
        )

    def _server_id(self) -> Finding:
        value = self.facts.server_id
        if not SERVER_ID_FIRST <= value <= SERVER_ID_LAST or self.facts.flavor is Flavor.MYSQL:
            return Finding(key="server_id", value=str(value))
        return Finding(
            key="server_id",
            value=str(value),
            weight=Weight.WARNING,
            reason=f"the source has server_id = {value}: {SERVER_ID_FIRST} to {SERVER_ID_LAST} are"
            " what binlane gives to sessions, so that a replica may take their groups for its own",
            note="give the source another server_id",
        )

    def _made(self) -> Finding:
        """Whether the database holds what it should, of the version that it should have."""
        if self.objects is None:
            return Finding(
                key="lanes",
                value="",
                weight=Weight.WARNING,
                reason=f"the account does not see whether the source has the database {DATABASE} that"
                " the port's sessions need",
            )
        comments = {(kind, name): comment for kind, name, comment in self.objects}
        value = ", ".join(sorted(name for _, name in comments)) or "none"
        theirs = sorted(
            name
            for (kind, name), comment in comments.items()
            if (kind, name) in _OWN and not comment.startswith(_COMMENT)
        )
        if theirs or (comments and not _OWN & comments.keys()):
            return Finding(
                key="lanes",
                value=value,
                weight=Weight.WARNING,
                reason=f"the source has a database {DATABASE} that is not binlane's: it holds"
                f" {', '.join(theirs) or value}",
                note=f"{DATABASE} is where binlane has what its port needs: rename what is there;"
                " without that the port works, and all binlogs get rows",
            )
        versions = {
            int(number) if (number := comments[each].removeprefix(_COMMENT)).isdigit() else 0
            for each in _OWN & comments.keys()
        }
        if len(comments.keys() & _OWN) == len(_OWN) and min(versions) >= VERSION:
            return Finding(key="lanes", value=value)
        return Finding(
            key="lanes",
            value=value,
            weight=Weight.WARNING,
            reason="the source has nothing that tells the port's sessions by: all binlogs get rows"
            if not comments
            else f"the source's database {DATABASE} is incomplete, or of an older binlane",
            mend=tuple(self._making()),
        )

    def _making(self) -> Iterator[str]:
        """The statements that make all anew; rights to call the procedures go with the old ones."""
        comment = f"COMMENT '{_COMMENT}{VERSION}'"
        own = "@@SESSION.server_id" if self._is_mariadb else "@@SESSION.gtid_next"
        # A procedure keeps the sql_mode that it was made in.
        yield "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"
        yield f"CREATE DATABASE IF NOT EXISTS {DATABASE}"
        yield _DEFINING
        yield f"DROP TABLE IF EXISTS {MARKS.plain}"
        yield (
            f"CREATE TABLE {MARKS.plain} (lane VARCHAR(64) CHARACTER SET ascii NOT NULL PRIMARY KEY,"
            f" number BIGINT UNSIGNED NOT NULL) ENGINE = InnoDB {comment}"
        )
        marking = (
            f"INSERT INTO {MARKS.plain} (lane, number) VALUES ({own}, 1)"  # noqa: S608  # our names
            " ON DUPLICATE KEY UPDATE number = number + 1"
        )
        for name, parameters, body in (
            (ENTER, "IN number TINYINT UNSIGNED", self._setting),
            (MARK, "", marking),
        ):
            yield f"DROP PROCEDURE IF EXISTS {DATABASE}.{name}"
            yield (
                f"CREATE DEFINER = {quoted_account(DEFINER)} PROCEDURE {DATABASE}.{name}"
                f"({parameters}) MODIFIES SQL DATA SQL SECURITY DEFINER {comment} {body}"
            )

    @property
    def _is_mariadb(self) -> bool:
        return self.facts.flavor is Flavor.MARIADB

    @property
    def _setting(self) -> str:
        return Lanes(self.facts.flavor, self.facts.server_id).setting

    def _definer(self, *, is_made_anew: bool) -> Finding:
        """Whether the account that the procedures run as may do what they do."""
        account = quoted_account(DEFINER)
        names = (
            ("BINLOG REPLAY",)
            if self._is_mariadb
            else ("SESSION_VARIABLES_ADMIN", "TRANSACTION_GTID_TAG")
        )
        told = " ".join(self.definer_grants or ())
        value = "; ".join(self.definer_grants or ()) or "none"
        is_seen = self.definer_grants is not None
        procedures = [f"PROCEDURE {quote(DATABASE)}.{quote(name)}" for name in (ENTER, MARK)]
        is_enough = all(part in told for part in (*names, str(MARKS), *procedures))
        if not is_seen or (is_enough and not is_made_anew):
            return Finding(key="lanes.definer", value=value)
        return Finding(
            key="lanes.definer",
            value=value,
            weight=Weight.WARNING,
            reason=f"{DEFINER}, who the procedures run as, may not do what they do",
            mend=(
                *(() if is_made_anew or self.definer_grants else (_DEFINING,)),
                f"GRANT {', '.join(names)} ON *.* TO {account}",
                f"GRANT SELECT (lane, number), INSERT, UPDATE ON {MARKS.plain} TO {account}",
                # Servers ask for it of the caller and of the definer.
                *(f"GRANT EXECUTE ON {procedure} TO {account}" for procedure in procedures),
            ),
        )

    def _callers(self, *, is_made_anew: bool) -> Iterator[Finding]:
        """Whether those who use the port may call `lane`, and binlane's account also `mark`."""
        callers = self.lacking_callers
        procedure = f"PROCEDURE {DATABASE}.{ENTER}"
        if callers:
            names = [
                "PUBLIC" if user == "PUBLIC" and not host else quoted_account(f"{user}@{host}")
                for user, host in callers
            ]
            yield Finding(
                key="lanes.callers",
                value=str(len(callers)),
                weight=Weight.WARNING,
                reason=f"nobody may call {DATABASE}.{ENTER}: what goes through the port is logged as"
                " rows"
                if names == ["PUBLIC"]
                else f"accounts that may not call {DATABASE}.{ENTER}: {len(names)}; what they write"
                " through the port is logged as rows. So it is for accounts that are made later,"
                " until setup is run again",
                mend=tuple(f"GRANT EXECUTE ON {procedure} TO {name}" for name in names),
            )
        yield from self._marking(is_made_anew=is_made_anew)

    def _marking(self, *, is_made_anew: bool) -> Iterator[Finding]:
        facts = self.facts
        name = f"PROCEDURE `{DATABASE}`.`{MARK}`"
        may = any(name in grant and "EXECUTE" in grant for grant in facts.grants)
        if facts.has_privilege("EXECUTE") or (may and not is_made_anew):
            return
        yield Finding(
            key="lanes.mark",
            value="",
            weight=Weight.WARNING,
            reason=f"the account {facts.account} may not call {DATABASE}.{MARK}: binlogs get nothing"
            " of what only temporary tables hold",
            mend=(
                f"GRANT EXECUTE ON PROCEDURE {DATABASE}.{MARK} TO {quoted_account(facts.account)}",
            ),
        )
