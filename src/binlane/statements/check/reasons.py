"""Names for the findings of `check`, and the choice of those that count: `--deny` and `--allow`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from binlane.errors import ConfigError
from binlane.statements.check.findings import UNANALYSED, Finding, Kind
from binlane.statements.policy.reasons import Reason
from binlane.statements.policy.reasons import symbol as unsafe_symbol

SAFETY_REASONS: Final = MappingProxyType(
    {
        "BINLANE_PARTIAL_WRITE": "A statement writes inside and outside of a binlog's scope.",
        "BINLANE_DEPENDENCY": "A binlog logs a statement and not what the statement reads.",
        "BINLANE_PARTIAL_TRANSACTION": "A transaction writes inside and outside of a scope.",
        "BINLANE_TABLE_SCOPE_TRIGGER": "A trigger runs, and a scope of tables logs statements.",
        "BINLANE_LOAD_DATA": "A scoped binlog logs LOAD DATA as a statement.",
        "BINLANE_DEFINITION": "A definition of a binlog that cannot be.",
    }
)
"""Refusals of statements that some binlog's scope splits."""

REFUSALS: Final = MappingProxyType(
    {
        "ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE": "No logging format fits all engines involved.",
        "ER_BINLOG_ROW_MODE_AND_STMT_ENGINE": "BINLOG_FORMAT = ROW, and an engine cannot log rows.",
        "ER_BINLOG_UNSAFE_AND_STMT_ENGINE": "Unsafe, and an engine can log statements only.",
        "ER_BINLOG_ROW_INJECTION_AND_STMT_ENGINE": "BINLOG writes where rows cannot be logged.",
        "ER_BINLOG_STMT_MODE_AND_ROW_ENGINE": (
            "BINLOG_FORMAT = STATEMENT, and an engine can log rows only."
        ),
        "ER_BINLOG_ROW_INJECTION_AND_STMT_MODE": "BINLOG writes under BINLOG_FORMAT = STATEMENT.",
        "ER_BINLOG_MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE": "Several engines, one logs itself.",
        "ER_BINLOG_STMT_MODE_AND_NO_REPL_TABLES": (
            "BINLOG_FORMAT = STATEMENT, and tables with and without replication are written."
        ),
        "ER_BINLOG_NON_SUPPORTED_BULK": "An array-bound statement needs rows.",
        "ER_BINLOG_UNSAFE_ROUTINE": "A function does not say that it is deterministic.",
        "ER_BINLOG_CREATE_ROUTINE_NEED_SUPER": "Creating routines needs SUPER with a binary log.",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR": "binlog_format with open temporary tables.",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT": (
            "binlog_format with open temporary tables."
        ),
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT": "binlog_format in a function.",
        "ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_BINLOG_FORMAT": "binlog_format in a transaction.",
        "ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_BINLOG_DIRECT": "Direct flag in a transaction.",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT": "Direct flag in a function.",
        "ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_SQL_LOG_BIN": "sql_log_bin in a transaction.",
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN": "sql_log_bin in a function.",
        "ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE": "GTID consistency: mixed engines.",
        "ER_GTID_UNSAFE_CREATE_SELECT": "GTID consistency: CREATE TABLE … SELECT.",
        "ER_CLIENT_GTID_UNSAFE_CREATE_DROP_TEMP_TABLE_IN_TRX_IN_SBR": (
            "GTID consistency: temporary tables in a transaction."
        ),
    }
)
"""Refusals of the servers that bear on logging. Others, such as 1054, are told all the same."""

_UNSAFE: Final = MappingProxyType(
    {
        unsafe_symbol(reason): f"Unsafe to log as a statement: {reason.name.replace('_', ' ')}."
        for reason in Reason
    }
)
DESCRIPTIONS: Final = MappingProxyType({**_UNSAFE, **REFUSALS, **SAFETY_REASONS})
"""All reasons that are known by name: symbol → its description, in a sentence."""

_PREFIXES: Final = ("ER_BINLOG_", "ER_", "BINLANE_")
_GROUPS: Final = MappingProxyType(
    {
        "unsafe": frozenset(_UNSAFE),
        "refused": frozenset((*REFUSALS, *SAFETY_REASONS)),
        "scope": frozenset(SAFETY_REASONS),
        "all": frozenset(DESCRIPTIONS),
    }
)
_NEAR_MAX: Final = 4
_PART_MIN: Final = 3
GROUPS: Final = tuple(_GROUPS)
"""Names that stand for several reasons."""


def short_name(symbol: str) -> str:
    """The name that people type and read: `unsafe-system-function`, `partial-write`."""
    for prefix in _PREFIXES:
        if symbol.startswith(prefix):
            symbol = symbol.removeprefix(prefix)
            break
    return symbol.lower().replace("_", "-")


SHORT_NAMES: Final = MappingProxyType({short_name(symbol): symbol for symbol in DESCRIPTIONS})
"""Short name → symbol."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The choice of findings that count.

    A reason that is itself named weighs more than its group; denied weighs more than allowed.

    Attributes:
        denied: Symbols and groups given to `--deny`.
        allowed: Symbols and groups given to `--allow`.
    """

    denied: frozenset[str] = field(default_factory=frozenset)
    allowed: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, *, deny: Iterable[str] = (), allow: Iterable[str] = ()) -> Judgement:
        """Read the names of reasons.

        Raises:
            ConfigError: If there is no such reason.
        """
        return cls(
            frozenset(_named(name, "--deny") for name in deny),
            frozenset(_named(name, "--allow") for name in allow),
        )

    def counts(self, finding: Finding) -> bool:
        """True if a finding makes the check fail; a gap in knowledge always does."""
        if finding.kind is Kind.UNANALYSED or finding.symbol == UNANALYSED:
            return True
        for names in ({finding.symbol}, _groups_of(finding)):
            if names & self.denied:
                return True
            if names & self.allowed:
                return False
        return finding.kind is not Kind.ALLOWED_UNSAFE

    def is_shown(self, finding: Finding) -> bool:
        """True if a report shows a finding: not those that are safe because rows are logged."""
        return finding.kind is not Kind.ALLOWED_UNSAFE or self.counts(finding)


def _groups_of(finding: Finding) -> set[str]:
    groups = {name for name, symbols in _GROUPS.items() if finding.symbol in symbols}
    groups.add("all")
    # An error that no list has, such as an unknown column, is a refusal too.
    groups.add("refused" if finding.kind is Kind.REFUSED else "unsafe")
    return groups


def _named(name: str, option: str) -> str:
    wanted = name.strip()
    if wanted.lower() in _GROUPS:
        return wanted.lower()
    for symbol in (wanted.upper(), SHORT_NAMES.get(wanted.lower().replace("_", "-"), "")):
        if symbol in DESCRIPTIONS:
            return symbol
    near = _near(wanted.lower().replace("_", "-"))
    hint = f"did you mean {' or '.join(near)}?" if near else f"reasons: {', '.join(_NAMES)}"
    raise ConfigError(f"there is no reason {name!r}", key=option, hint=hint)


_NAMES: Final = (*GROUPS, *SHORT_NAMES)


def _near(wanted: str) -> list[str]:
    """Names that somebody who typed another one may have meant, the nearest first."""
    for prefix in _PREFIXES:
        wanted = wanted.removeprefix(prefix.lower().replace("_", "-"))
    # A name is known without what many begin with, too.
    shorter = {name.removeprefix("unsafe-"): name for name in _NAMES}
    holding = [
        name
        for short, name in shorter.items()
        if len(wanted) >= _PART_MIN and (wanted in name or short in wanted)
    ]
    close = get_close_matches(wanted, (*_NAMES, *shorter), n=3, cutoff=0.7)
    return list(dict.fromkeys(shorter.get(name, name) for name in (*close, *holding)))[:_NEAR_MAX]
