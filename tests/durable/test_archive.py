"""A deployment's checkpoints as they are found again: by whom they can be gone on with."""

from __future__ import annotations

import pytest

from actors.archive import Archive
from actors.durable_scheduler import Stood
from actors.launch import check_durable
from actors.saved import Domains, Saved
from actors.succession import changes, succession
from dsms.durable import Entry, SqliteLog
from dsms.errors import DsmsError
from dsms.live.roster import Roster
from dsms.live.setup import Setup

TABLE = {"streams": {"s": {"schema": {"n": "int64"}}}, "queries": {"all": {"cql": "SELECT n FROM s"}}}


@pytest.mark.parametrize(
    ("domains", "gateways", "match"),
    [
        (1, 2, None),
        (1, 3, None),
        (2, 2, "2 domains are wanted, 1 were saved: their number cannot change"),
        (1, 1, "1 gateways are wanted, 2 have stored rows: there must be as many"),
    ],
)
def test_what_was_stored_by_two_gateways_for_one_domain_is_gone_on_with_by_as_many(tmp_path, domains, gateways, match):
    roster = Roster(TABLE)
    archive = Archive(tmp_path)
    saved = Saved(0.0, TABLE, roster, {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    archive.save(saved, Domains({"0": Stood(b"", {}, {}, 0, 0.0)}, {"0": []}))
    for place in range(2):
        (tmp_path / f"gateway-{place}.log").touch()
    setup = Setup(domains=domains, gateways=gateways, durable=str(tmp_path))
    if match is None:
        check_durable(setup, roster.plan, "", True)
    else:
        with pytest.raises(DsmsError, match=match):
            check_durable(setup, roster.plan, "", True)


def stored(path, count, forgotten=0):
    log = SqliteLog(path)
    log.append([Entry("p", number, b"frame") for number in range(1, count + 1)])
    log.forget(forgotten)
    assert log.forgotten() == forgotten
    log.close()


@pytest.mark.parametrize(
    ("count", "forgotten", "match"),
    [
        (7, 0, None),
        (7, 5, None),
        (9, 5, None),
        (7, 6, "has what came from 7 to 7, and checkpoint 1 was made of all up to 7, of some domains up to 5"),
        (7, 7, "has what came from 8 to 7, and"),  # all of it is forgotten
        (6, 0, "has what came from 1 to 6, and checkpoint 1 was made of all up to 7"),
        (0, 0, "is not there, and checkpoint 1 was made of all up to 7"),
    ],
)
def test_a_log_that_a_checkpoint_cannot_be_gone_on_with_by_is_refused(tmp_path, count, forgotten, match):
    """Else rows would be numbered as others that were taken in, acknowledged, and never looked at."""
    archive = Archive(tmp_path)
    saved = Saved(0.0, TABLE, Roster(TABLE), {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    stood = {str(domain): Stood(b"", {}, {"gateway-0": upto}, 0, 0.0) for domain, upto in enumerate((7, 5))}
    archive.save(saved, Domains(stood, {"0": [], "1": []}))
    if count:
        stored(tmp_path / "gateway-0.log", count, forgotten)
    if match is None:
        archive.latest()
    else:
        with pytest.raises(DsmsError, match=match):
            archive.latest()
    assert (tmp_path / "gateway-0.log").exists() == bool(count)


@pytest.mark.parametrize(
    ("cql", "sink", "match"),
    [
        ("SELECT n FROM s WHERE n > 1", {"csv": "a.csv"}, None),
        ("SELECT n FROM s WHERE n > 1", None, None),
        (
            "SELECT n, n + 1 AS m FROM s",
            {"csv": "a.csv"},
            r"other columns than its file 'a.csv', \['ts', 'n', 'm'\] inst",
        ),
        ("SELECT n FROM s [ROWS 1]", {"csv": "a.csv"}, r"\['ts', 'sign', 'n'\] instead of \['ts', 'n'\]"),
        ("SELECT n FROM s", {"csv": "b.csv"}, "has its results in 'a.csv' and 'b.csv' is wanted: .* cannot change"),
    ],
)
def test_a_query_goes_on_in_its_own_file_with_the_columns_that_are_there(cql, sink, match):
    queries = {"all": {"cql": "SELECT n FROM s", "sink": {"csv": "a.csv"}}}
    other = {"all": {"cql": cql, **({} if sink is None else {"sink": sink})}}
    before, after = (Roster({**TABLE, "queries": each}).plan for each in (queries, other))
    if match is None:
        succession(before, after)
    else:
        with pytest.raises(DsmsError, match=match):
            succession(before, after)


def test_a_file_that_is_begun_anew_though_something_is_in_it_is_named(tmp_path):
    """As that of a query that was removed, and is in the plan again."""
    queries = {"all": {"cql": "SELECT n FROM s"}}
    again = {**queries, "again": {"cql": "SELECT n FROM s", "sink": {"jsonl": "again.jsonl"}}}
    archive = Archive(tmp_path / "d")
    before = Roster({**TABLE, "queries": queries})
    saved = Saved(0.0, before.table, before, {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    archive.save(saved, Domains({"0": Stood(b"", {}, {}, 0, 0.0)}, {"0": []}))
    table = {**TABLE, "queries": again}
    assert "is lost" not in str(changes("d", table, str(tmp_path), "p.toml"))
    (tmp_path / "again.jsonl").write_text("{}")
    assert str(changes("d", table, str(tmp_path), "p.toml")).endswith("again.jsonl is lost")


def test_a_durable_folder_that_is_a_file_is_refused_before_anything_is_started(tmp_path):
    (tmp_path / "d").write_text("")
    with pytest.raises(DsmsError, match="d' is a file; a folder is wanted"):
        check_durable(Setup(durable="d"), Roster(TABLE).plan, str(tmp_path), False)
