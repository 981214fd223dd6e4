"""Checkpoints: whole or not there, three of them, and a damaged one is passed over for the one before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.live.dying_process import kill_after
from support.strategies import DETERMINISTIC

from dsms.errors import DsmsError
from dsms.storage import CheckpointFolder


def content(number):
    return {"whole": b"%d" % number * 50, "domain/0": bytes(range(256)) * number}


def saved(folder, count):
    store = CheckpointFolder(folder)
    for number in range(1, count + 1):
        assert store.save(content(number)) == number
    return store


def test_the_last_three_are_kept_and_the_newest_is_read(tmp_path):
    store = saved(tmp_path / "c", 5)
    assert store.numbers() == [3, 4, 5]
    latest = store.latest()
    assert (latest.number, latest.sections, latest.damaged) == (5, content(5), [])
    assert CheckpointFolder(tmp_path / "c").save({}) == 6
    assert CheckpointFolder(tmp_path / "none").latest() is None


@settings(DETERMINISTIC, max_examples=60)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7), cut=st.booleans())
def test_a_file_that_is_cut_or_has_one_bit_changed_is_passed_over_and_that_is_said(tmp_path_factory, place, bit, cut):
    store = saved(tmp_path_factory.mktemp("checkpoints"), 3)
    path = store.folder / "checkpoint-000000000003"
    data = bytearray(path.read_bytes())
    place %= len(data)
    data[place] ^= 1 << bit
    path.write_bytes(data[:place] if cut else data)
    latest = store.latest()
    assert (latest.number, latest.sections) == (2, content(2))
    [said] = latest.damaged
    assert "checkpoint-000000000003' is damaged: " in said


def test_if_none_can_be_read_each_is_named(tmp_path):
    store = saved(tmp_path, 2)
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with pytest.raises(DsmsError, match=r"(?s)no checkpoint can be read: .*000002' is damaged: .*000001' is damaged: "):
        store.latest()


def test_a_folder_that_cannot_be_written_to_is_said_and_leaves_the_last_one(tmp_path):
    store = saved(tmp_path / "c", 1)
    (tmp_path / "c" / "checkpoint-000000000002.part").mkdir()
    with pytest.raises(DsmsError, match=r"checkpoint-000000000002' cannot be written: Is a directory"):
        store.save(content(2))
    assert store.latest().sections == content(1)


def test_killed_at_any_moment_the_last_one_that_was_saved_can_be_read(tmp_path):
    """Forty processes, one after the other, each killed a little later than the last."""

    def write(tell):
        store = CheckpointFolder(tmp_path)
        while True:
            number = max(store.numbers(), default=0) + 1
            tell(store.save({"whole": b"%d" % number * 100_000}))

    for moment in range(40):
        last = kill_after(write, moment / 2000)
        latest = CheckpointFolder(tmp_path).latest()
        assert latest.number >= last
        assert latest.sections == {"whole": b"%d" % latest.number * 100_000}
        assert latest.damaged == []
