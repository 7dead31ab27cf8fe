"""News of sessions on their statements, in order, until the state of the attribution is to know them.

What one session says bears on that session alone. So where something else is said of a session, that it is over or
another one's place, only its own statements are to be known before; those of the others wait on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from binlane.live.port.heard_messages import HeardMessages, News


class StatementNews:
    """Statements that were sent or answered, in order.

    Those who say something add it without a lock; whoever takes something out holds the one of the attributions.

    Attributes:
        add: Adds what was said, in no more time than a list would take.
    """

    def __init__(self) -> None:
        """Begin with nothing that was said."""
        self._waiting: deque[News] = deque()
        self.add: Callable[[News], None] = self._waiting.append

    def __len__(self) -> int:
        return len(self._waiting)

    def all(self) -> tuple[News, ...]:
        """Give all that was said by now, and leave it here."""
        return tuple(self._waiting)

    def threads(self) -> set[int]:
        """Give the threads of the sessions that have said something, and may be of some that were taken out."""
        return threads_of(self.all())

    def files(self) -> set[int]:
        """Give the numbers of the journal's files that hold the statements' plans."""
        files: set[int] = set()
        for each in self.all():
            if isinstance(each, HeardMessages):
                files.add(each.file)
            elif each[1].place is not None:
                files.add(each[1].place.file)
        return files

    def take(self) -> list[News]:
        """Take all that was said by now."""
        # More may be said meanwhile.
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def take_of(self, thread_id: int) -> list[News]:
        """Take what one session has said by now, and leave the rest in its order."""
        if thread_id not in self.threads():
            return []
        taken: list[News] = []
        left: list[News] = []
        for each in self.take():
            if not isinstance(each, HeardMessages):
                (taken if each[0] == thread_id else left).append(each)
                continue
            own = each.take_of(thread_id)
            if own:
                taken.append(own)
            if len(each):
                left.append(each)
        self._waiting.extendleft(reversed(left))
        return taken

    def drop_empty(self, news: Collection[News]) -> None:
        """Let go of messages of which nothing is left, among all that `all` gave."""
        for _ in news:
            self._waiting.popleft()
        left = [each for each in news if not isinstance(each, HeardMessages) or len(each)]
        self._waiting.extendleft(reversed(left))

    def is_any_unanswered(self, thread_id: int) -> bool:
        """True if a statement of a session was sent, and by what was said since is not answered."""
        unanswered: set[int] = set()
        for each in self.all():
            if isinstance(each, HeardMessages):
                for number, is_answer in each.numbers_of(thread_id):
                    (unanswered.discard if is_answer else unanswered.add)(number)
            elif each[0] == thread_id:
                _, statement, answer = each
                if answer is None:
                    unanswered.add(statement.number)
                else:
                    unanswered.discard(statement.number)
        return bool(unanswered)


def threads_of(news: Iterable[News]) -> set[int]:
    """Give the threads of the sessions that have said some news, and may be of some that were taken out."""
    threads: set[int] = set()
    for each in news:
        threads |= each.threads if isinstance(each, HeardMessages) else {each[0]}
    return threads
