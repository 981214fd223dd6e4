"""Processes that a command has started are found with their children, and killed without touching others."""

from __future__ import annotations

import subprocess

import psutil
import pytest

from actors.cluster.kill_descendants import find_descendants, kill_descendants

TWO = ["sh", "-c", "sleep 60 & echo $!; wait"]


@pytest.fixture
def others():
    """Processes that ran before, such as the Ray of other tests."""
    return find_descendants()


@pytest.fixture
def family(others):
    """A process and its child."""
    with subprocess.Popen(TWO, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        yield parent, child
        kill_descendants(others, {child})


def has_ended(process):
    """Whether a killed process ends; one that no parent waits for stays a zombie."""
    gone, _ = psutil.wait_procs([process], timeout=0.1)
    return bool(gone) or not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_children_and_theirs_are_found(family):
    parent, child = family
    assert {psutil.Process(parent.pid), child} <= find_descendants()


def test_all_are_ended(family, others):
    parent, child = family
    kill_descendants(others, ())
    assert parent.wait(10) < 0
    assert has_ended(child)


def test_those_that_were_there_before_are_spared(family):
    parent, child = family
    kill_descendants(find_descendants(), ())
    assert parent.poll() is None
    assert child.is_running()


def test_an_orphan_that_is_known_is_ended(family, others):
    parent, child = family
    known = find_descendants() - others
    parent.kill()
    parent.wait(10)
    assert child.is_running()
    kill_descendants(others, known)
    assert has_ended(child)
