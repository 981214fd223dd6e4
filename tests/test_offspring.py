"""Processes that a command has started: found with what they started, and ended without touching others."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from actors.cli.offspring import born, end, offspring

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel does not tell")
TWO = ["sh", "-c", "sleep 60 & echo $!; wait"]


@pytest.fixture
def others():
    """What ran before, such as the Ray of other tests."""
    return offspring()


@pytest.fixture
def family(others):
    """A process, and one that it has started."""
    with subprocess.Popen(TWO, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        yield parent, child
        end(others, {child: born(child)})


def ended(pid, within=10.0):
    """Whether a process that was killed, which takes the kernel a moment, is gone."""
    until = time.monotonic() + within
    while born(pid) is not None and time.monotonic() < until:
        time.sleep(0.01)
    return born(pid) is None


def test_children_and_theirs_are_found(family):
    parent, child = family
    assert {parent.pid, child} <= offspring().keys()


def test_all_are_ended(family, others):
    parent, child = family
    end(others, {})
    assert parent.wait(10) < 0
    assert ended(child)


def test_those_that_were_there_before_are_spared(family):
    parent, child = family
    end(offspring(), {})
    assert None not in (born(parent.pid), born(child))


def test_an_orphan_that_is_known_is_ended(family, others):
    parent, child = family
    known = {pid: since for pid, since in offspring().items() if pid not in others}
    parent.kill()
    parent.wait(10)
    assert born(child) is not None
    end(others, known)
    assert ended(child)


def test_a_number_that_now_belongs_to_another_is_left_alone(family):
    parent, _ = family
    end(offspring(), {parent.pid: "some other time"})
    assert born(parent.pid) is not None


def test_a_process_that_never_was_has_no_beginning():
    assert born(2**22 + 1) is None
    assert born(os.getpid()) is not None
