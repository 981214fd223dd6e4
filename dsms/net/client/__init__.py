"""The Python client: pushes rows into a live system and receives the results of its queries."""

from __future__ import annotations

from dsms.net.client.client import Client, RefusedError
from dsms.net.client.connect import connect
from dsms.net.client.subscription import Received, Subscription

__all__ = ["Client", "Received", "RefusedError", "Subscription", "connect"]
