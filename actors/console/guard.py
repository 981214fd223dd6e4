"""Checks the console's tokens: which roles a viewer has; wrong tokens are answered slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dsms.net.tokens import CONTROL, READ, Permission, Tokens

FIRST_DELAY_S, MAX_DELAY_S = 0.5, 4.0  # delay after the first wrong token, and the longest

Sleep = Callable[[float], Awaitable[object]]


class Guard:
    """Checks one attempt at a time, of all viewers together."""

    def __init__(self, tokens: Tokens | None, sleep: Sleep = asyncio.sleep) -> None:
        self._tokens = tokens
        self._roles = set() if tokens is None else tokens.roles
        self._sleep, self._delay = sleep, FIRST_DELAY_S
        self._one = asyncio.Lock()

    @property
    def is_read_only(self) -> bool:
        """Whether no token allows changes."""
        return CONTROL not in self._roles

    @property
    def is_login_required(self) -> bool:
        """Whether viewers need a token to look."""
        return READ in self._roles

    async def authenticate(self, token: str) -> Permission | None:
        """The permission of a token; None for a wrong one, after a delay that doubles up to a limit."""
        if self._tokens is None:
            return None
        async with self._one:
            permission = self._tokens.find_permission(token)
            if permission is not None:
                self._delay = FIRST_DELAY_S
            else:
                delay, self._delay = self._delay, min(2 * self._delay, MAX_DELAY_S)
                await self._sleep(delay)
            return permission
