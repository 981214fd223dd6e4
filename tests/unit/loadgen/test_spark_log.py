"""What py4j logs: an interruption, which is also raised, is not shown; everything else is."""

from __future__ import annotations

import logging

import pytest

from loadgen.spark.session import hide_interruptions


@pytest.mark.parametrize(
    ("logger", "message", "is_shown"),
    [
        ("", "KeyboardInterrupt while sending command.", False),
        ("py4j.clientserver", "Exception occurred while shutting down connection", False),
        ("py4j.clientserver", "Could not authenticate connection.", True),
        ("", "a task has failed", True),
    ],
)
def test_only_interruptions_are_hidden(logger, message, is_shown, caplog):
    hide_interruptions()
    logging.getLogger(logger).error(message)
    assert (message in caplog.messages) is is_shown
