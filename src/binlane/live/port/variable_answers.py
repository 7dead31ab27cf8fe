"""Statements on the binlogs' variables and on warnings: their answers, and their other words.

The source has other values of the binlogs' variables than the client, and lacks warnings that the client has.
So a statement that reads or sets them is answered here, or runs at the source in other words.
"""

from __future__ import annotations

import asyncio

from binlane.client.prepared_texts import question as question_of_text
from binlane.client.prepared_texts import with_text
from binlane.errors import StatementError, StoreError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.judge import Give, Refuse
from binlane.live.port.binlog_variables import (
    Known,
    Rewritten,
    concerns,
    known_of,
    question,
    rewrite,
    shown,
    shows,
)
from binlane.live.port.followed_session import FollowedSession
from binlane.live.port.statement_refusals import may_take_rows
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.results import ResultSet
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tree.statements import Prepare


class VariableAnswers:
    """Answers statements on the binlogs' variables and on warnings in one session.

    Args:
        session: The client's session, as it is followed.
    """

    def __init__(self, session: FollowedSession) -> None:
        self._session = session

    def _known(self, notes: int = 0) -> Known:
        session = self._session
        return known_of(session.model.session, notes, session.tracking.client_value)

    def concern(self, facts: StatementFacts) -> bool:
        """True if a statement is on the binlogs' variables or on warnings, so that it is no other's."""
        return bool(concerns(facts) or shows(facts) or self._session.warnings.questions(facts))

    async def answer(self, facts: StatementFacts) -> RowsAnswer | None:
        """The rows of a statement that asks for the binlogs' variables, or for warnings."""
        session = self._session
        ask = session.client.query_source
        questions = session.warnings.questions(facts)
        if questions:
            errors_max = session.model.session.system_variable("max_error_count")
            return session.warnings.answer(
                facts,
                [await ask(each) for each in questions],
                errors_max if isinstance(errors_max, int) else None,
            )
        if shows(facts):
            known = self._known()
            return shown(facts, await ask(session.as_sent(facts.text)), known)
        return None

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """The rows of a statement that shows variables, as the binlogs have them."""
        facts = await self._session.known_facts(statement)
        if shows(facts):
            return shown(facts, result, self._known())
        return RowsAnswer(result.heads, result.rows)

    async def learn_prepared(self, facts: StatementFacts) -> None:
        """Ask for the text that PREPARE takes from a variable, if its EXECUTE may be refused without."""
        tree, session = facts.tree, self._session
        if (
            isinstance(tree, Prepare)
            and tree.verb == "PREPARE"
            and not may_take_rows(session.model.session)
        ):
            await session.learn_variables(facts)

    async def with_prepared_text(self, facts: StatementFacts) -> Rewritten | None:
        """A statement with the text that an expression gives; None for others."""
        asked, session = question_of_text(facts), self._session
        values = session.reader.values
        if asked is None or values is None or may_take_rows(session.model.session):
            return None
        answer = await session.client.query_source(session.as_sent(asked))
        texts = with_text(facts, answer, values.client_charset)
        return None if texts is None else Rewritten(source=texts[0], model=texts[1])

    async def rewrite(self, facts: StatementFacts) -> Rewritten:
        """Give the texts for the source and for the model of a statement on the binlogs' variables.

        Raises:
            StatementError: If the source has to be asked for a value, and may run stored functions for it.
        """
        session = self._session
        known = self._known(session.warnings.count)
        asked = question(facts, known)
        if asked is not None and not runs_nothing_stored(facts):
            raise StatementError(
                "binlane doesn't yet support 'stored functions and tables in the value of a variable"
                " of the binlogs'",
                errno=1235,
                sqlstate="42000",
                hint="SET a user variable to it before",
            )
        return rewrite(
            facts,
            known,
            None if asked is None else await session.client.query_source(asked),
            flavor=flavor_of(session.client.server_version),
            has_temporary_tables=bool(session.model.session.objects.temporary_tables()),
        )

    async def rewrite_in_turn(self, facts: StatementFacts) -> Rewritten:
        """Rewrite one of several statements.

        Raises:
            StatementError: If the source would have to be asked before its turn comes.
        """
        what = "an expression"
        if question(facts, self._known()) is None:
            rewritten = await self.rewrite(facts)
            if not rewritten.global_values:
                return rewritten
            what = "SET GLOBAL"
        raise StatementError(
            f"binlane doesn't yet support '{what} for a variable of the binlogs in a packet of several"
            " statements'",
            errno=1235,
            sqlstate="42000",
            hint="send the SET by itself",
        )

    async def set_global(self, rewritten: Rewritten) -> Give | Refuse:
        """Run a SET that holds for later sessions, from the moment when the client is answered.

        Raises:
            StatementError: If the source refuses it, or the values cannot be kept.
        """
        session = self._session
        model, shared = session.model, session.shared
        facts = await session.known_facts(rewritten.model)
        refusal = await session.refusal(model.preview(rewritten.model).result, facts)
        if refusal is not None:
            return Refuse(refusal)
        reply = await session.client.run_at_source(session.as_sent(rewritten.source))
        try:
            await asyncio.to_thread(shared.set_global_values, rewritten.global_values)
        except StoreError as error:
            raise StatementError(f"the values were not kept: {error}", hint=error.hint) from None
        planned = model.execute(rewritten.model)
        # A value that is taken back is the one of the settings again.
        model.session.know_global(shared.global_values())
        session.reader.ran(facts, None)
        session.warnings.follow(facts, [reply], planned.result.notes)
        return Give(OkAnswer(warnings=reply.warnings))
