"""Questions to a client's session on the source about objects that it has locked from all others.

Whoever holds an exclusive lock of a table reads its definition; binlane's own connections would wait
for the lock, and the client for them. A session that has to wait for somebody else's lock waits as long as
its own settings say, as it would without the port.

Asking takes away the diagnostics that the statement before has left (`context_reader`): so nothing is asked
before a statement that reads those.
"""

from __future__ import annotations

from typing import Final

from binlane.client.needed_objects import Question, Topic
from binlane.client.questions import Answer, AskingContext
from binlane.client.source_objects import ClientSession, Source
from binlane.live.port.context_reader import reads_diagnostics
from binlane.statements.session.session import Session
from binlane.statements.sql.facts import StatementFacts

_LOCKED: Final = frozenset((Topic.TABLE, Topic.TRIGGERS))
"""Topics of questions on a table itself."""


class OwnQuestions:
    """The questions of one statement.

    Args:
        client: Client's session on the source.
        session: Model of the client's session.
    """

    def __init__(self, client: ClientSession, session: Session) -> None:
        self._client = client
        self._session = session

    def may_have_locked(self, question: Question) -> bool:
        """True if the session may have locked the object of a question."""
        locked = self._session.state.locked_tables
        if locked is None or question.topic not in _LOCKED:
            return False
        return any(name == question.name for name, _, _ in locked.locks)

    async def answer(self, question: Question, asked: AskingContext) -> Answer:
        """The answer to a question.

        Raises:
            StatementError: If the source refuses to tell the session, or is not understood.
            PeerError: If it goes away.
        """
        variables = self._session.state.variables
        source = Source(self._client, sql_mode=variables.text("sql_mode"), is_patient=True)
        return await source.answer(question, asked)


def own_questions(
    client: ClientSession, session: Session, facts: StatementFacts
) -> OwnQuestions | None:
    """Give the questions that a session may be asked before a statement; None where that would show.

    Args:
        client: Client's session on the source.
        session: Model of the client's session.
        facts: Parsed facts of the statement's text.
    """
    return None if reads_diagnostics(facts) else OwnQuestions(client, session)
