"""Who may change what runs: whoever shows the token; guessing it is slow."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable

FIRST, LONGEST = 0.5, 4.0  # seconds that a wrong token costs: the first, and at most

Sleep = Callable[[float], Awaitable[object]]


class Guard:
    """Knows the token, and looks at one attempt at a time, whoever's it is."""

    def __init__(self, token: str | None, sleep: Sleep = asyncio.sleep) -> None:
        self._token = None if token is None else _digest(token)
        self._sleep, self._delay = sleep, FIRST
        self._one = asyncio.Lock()

    @property
    def strict(self) -> bool:
        """Whether nobody may: there is no token to show."""
        return self._token is None

    async def admits(self, shown: str) -> bool:
        """Whether this is the token; each wrong one takes twice as long as the one before, up to a limit."""
        if self._token is None:
            return False
        async with self._one:
            right = hmac.compare_digest(self._token, _digest(shown))
            if right:
                self._delay = FIRST
            else:
                delay, self._delay = self._delay, min(2 * self._delay, LONGEST)
                await self._sleep(delay)
            return right


def _digest(text: str) -> bytes:
    """Of one length whatever the text, so that comparing two tells nothing of that either."""
    return hashlib.sha256(text.strip().encode()).digest()
