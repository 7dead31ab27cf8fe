"""Errors that a server gives to a statement, as a session may predict them before the statement runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.resolution import Opening
from binlane.statements.policy.server import Server
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Routine, Table, Trigger


class Identity(NamedTuple):
    """The account and roles whose privileges hold.

    Attributes:
        account: A user; of MariaDB's programs a role, too.
        roles: The account's roles that are active.
    """

    account: AccountName
    roles: frozenset[AccountName] = frozenset()


class ServerErrors:
    """Predicts no error: for a session that goes along with a source, which gives its errors itself.

    `predicted_errors.PredictedErrors` predicts those that are sure. Each method returns the error, or None.

    Attributes:
        predicts: True if errors are predicted at all: else no method needs to be called.
    """

    predicts: ClassVar = False

    def denied(self, facts: StatementFacts, opening: Opening, identity: Identity) -> Refusal | None:
        """Return the error of privileges that are missing before a statement's tables are opened."""

    def denied_inside(
        self, facts: StatementFacts, opening: Opening, identity: Identity
    ) -> Refusal | None:
        """Return the error of privileges on columns, views and functions, once the tables are open."""

    def wrong_definer(
        self,
        program: Routine | Trigger,
        opening: Opening,
        identity: Identity,
        *,
        knows_accounts: bool,
    ) -> Refusal | None:
        """Return the error of a program whose definer does not exist, or may not run it.

        Args:
            program: A program that runs as its definer or as its caller.
            opening: View of the objects with which the program runs.
            identity: Account as which the program runs.
            knows_accounts: True if there are no accounts beside those that are known.
        """

    def wrong_roles(
        self,
        roles: frozenset[AccountName],
        account: AccountName,
        opening: Opening,
        *,
        knows_accounts: bool,
    ) -> Refusal | None:
        """Return the error of SET ROLE for roles that were not granted to an account."""

    def unknown_column(
        self,
        facts: StatementFacts,
        opening: Opening,
        is_local: Callable[[str], bool] | None = None,
    ) -> Refusal | None:
        """Return the error of columns that a statement names and that do not exist.

        Args:
            facts: Facts of the statement's text.
            opening: View of the objects that the statement names.
            is_local: True for names that are declared around the statement; None: there are none.
        """

    def lacking_value(
        self, facts: StatementFacts, table: Table, server: Server, *, is_strict: bool, is_kept: bool
    ) -> Refusal | None:
        """Return the error of an INSERT whose rows surely lack a value.

        Args:
            facts: Facts of the INSERT or REPLACE.
            table: Table that gets the rows; it has no BEFORE trigger.
            server: Server whose rules decide on values.
            is_strict: True if sql_mode is strict for the table.
            is_kept: True if the table keeps rows that come before a wrong one.
        """

    def unknown_variable(self, name: str) -> Refusal | None:
        """Return the error of a system variable that no server has; `name` in small letters."""
