"""Who may look, and who may change what runs: whoever shows a token for it; guessing one is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dsms.tokens import CONTROL, READ, Pass, Tokens

FIRST, LONGEST = 0.5, 4.0  # seconds that a wrong token costs: the first, and at most

Sleep = Callable[[float], Awaitable[object]]


class Guard:
    """Knows the tokens, and looks at one attempt at a time, whoever's it is."""

    def __init__(self, tokens: Tokens | None, sleep: Sleep = asyncio.sleep) -> None:
        self._tokens = tokens
        self._roles = set() if tokens is None else tokens.roles
        self._sleep, self._delay = sleep, FIRST
        self._one = asyncio.Lock()

    @property
    def strict(self) -> bool:
        """Whether nobody may change anything: there is no token to show."""
        return CONTROL not in self._roles

    @property
    def veiled(self) -> bool:
        """Whether a token has to be shown to look: there are some for just that."""
        return READ in self._roles

    async def admits(self, shown: str) -> Pass | None:
        """What this token lets its viewer do; each wrong one takes twice as long as the one before, up to a limit."""
        if self._tokens is None:
            return None
        async with self._one:
            granted = self._tokens.shown(shown)
            if granted is not None:
                self._delay = FIRST
            else:
                delay, self._delay = self._delay, min(2 * self._delay, LONGEST)
                await self._sleep(delay)
            return granted
