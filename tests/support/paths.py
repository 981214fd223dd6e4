"""Folders of the repository that tests read."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
PLANS = TESTS / "plans"
