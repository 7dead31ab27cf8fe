"""What a client's session on the source is asked of objects: what it has locked from all others.

Whoever holds an exclusive lock of a table reads its definition; binlane's own connections would wait
for the lock, and the client for them. And who has to wait for somebody else's lock waits in his own
session, as long as that is set to, and as he would without the port.

Asking takes away what the statement before has left (`context_reader`): so nothing is asked before a
statement that reads that.
"""

from __future__ import annotations

from typing import Final

from binlane.client.questions import Answer, Asked, Question, Topic
from binlane.client.source_objects import ClientSession, Source
from binlane.live.port.context_reader import reads_diagnostics
from binlane.statements.session.session import Session
from binlane.statements.sql.facts import StatementFacts

_LOCKED: Final = frozenset((Topic.TABLE, Topic.TRIGGERS))
"""What is asked of a table itself."""


class OwnQuestions:
    """The questions of one statement.

    Args:
        client: The session on the source.
        session: The model of it.
    """

    def __init__(self, client: ClientSession, session: Session) -> None:
        self._client = client
        self._session = session

    def may_have_locked(self, question: Question) -> bool:
        """Whether the session may have locked what is asked about."""
        locked = self._session.state.locked_tables
        if locked is None or question.topic not in _LOCKED:
            return False
        return any(name == question.name for name, _, _ in locked.locks)

    async def answer(self, question: Question, asked: Asked) -> Answer:
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
    """What a session may be asked before a statement; None where that would show.

    Args:
        client: The session on the source.
        session: The model of it.
        facts: Of the statement.
    """
    return None if reads_diagnostics(facts) else OwnQuestions(client, session)
