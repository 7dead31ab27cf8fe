"""Messages on groups that the kernel puts together and sends, beside those of the sessions of its process."""

from __future__ import annotations

import asyncio
from typing import Any

from binlane.live.gateway.judge import GroupMessages
from binlane.log.kernels.passing_layout import SAID_HEAD, SAID_LENGTH, SAID_SIZE, SAID_TO


class KernelMessages:
    """The room in which the kernel puts messages together, and the connection that takes them.

    Attributes:
        said: The room, as in `passing_layout`.
    """

    def __init__(self) -> None:
        """Begin without a connection."""
        import numpy as np  # noqa: PLC0415 - only kernels need it

        self.said: Any = np.zeros(SAID_SIZE, np.uint8)
        self._numbers = self.said.data.cast("l")
        self._messages: GroupMessages | None = None

    def go_to(self, messages: GroupMessages) -> None:
        """Have the kernel send its messages where the sessions send theirs."""
        if self._messages is not messages:
            self._messages = messages
            self._numbers[SAID_TO // 8] = messages.fileno()

    def begin_turn(self) -> None:
        """Send what sessions have said, since the kernel may now say more of them."""
        if self._messages is not None:
            self._messages.send_held()

    def end_turn(self) -> None:
        """Send what the kernel has not sent, before sessions say more."""
        length = self._numbers[SAID_LENGTH]
        if not length or self._messages is None:
            return
        self._numbers[SAID_LENGTH] = 0
        try:
            self._messages.send_rest(bytes(self.said.data[SAID_HEAD : SAID_HEAD + length]))
        except OSError as error:
            # The process that routes is gone; this one ends, too.
            asyncio.get_running_loop().call_exception_handler(
                {"message": "what was said of groups is lost", "exception": error}
            )
