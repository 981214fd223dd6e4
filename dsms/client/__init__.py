"""What a program uses to push rows into a live system and to get results out of it."""

from __future__ import annotations

from dsms.client.client import Client, RefusedError
from dsms.client.connect import connect
from dsms.client.subscription import Received, Subscription

__all__ = ["Client", "Received", "RefusedError", "Subscription", "connect"]
