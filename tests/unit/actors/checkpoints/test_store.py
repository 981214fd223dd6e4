"""Which deployments can resume from a folder's checkpoints, and which are refused with a reason."""

from __future__ import annotations

import pytest

from actors.checkpoints.checkpoint import DeploymentCheckpoint, DomainCheckpoints
from actors.checkpoints.plan_diff import diff_plans, diff_with_checkpoint
from actors.checkpoints.store import CheckpointStore
from actors.deployment.launch import check_durable
from actors.scheduler.scheduler import DomainCheckpoint
from dsms.config.live import LiveConfig
from dsms.errors import DsmsError
from dsms.live.query_set import QuerySet
from dsms.storage import LogEntry, SqliteLog

TABLE = {"streams": {"s": {"schema": {"n": "int64"}}}, "queries": {"all": {"cql": "SELECT n FROM s"}}}


@pytest.mark.parametrize(
    ("domains", "gateways", "match"),
    [
        (1, 2, None),
        (1, 3, None),
        (2, 2, "the plan has 2 domains, the checkpoint 1: their number cannot change"),
        (1, 1, "the plan has 1 gateways, but 2 have stored rows: give at least as many"),
    ],
)
def test_a_checkpoint_of_two_gateways_and_one_domain_needs_as_many(tmp_path, domains, gateways, match):
    query_set = QuerySet(TABLE)
    archive = CheckpointStore(tmp_path)
    saved = DeploymentCheckpoint(0.0, TABLE, query_set, {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    archive.save(saved, DomainCheckpoints({"0": DomainCheckpoint(b"", {}, {}, 0, 0.0)}, {"0": []}))
    for place in range(2):
        (tmp_path / f"gateway-{place}.log").touch()
    setup = LiveConfig(domains=domains, gateways=gateways, durable=str(tmp_path))
    if match is None:
        check_durable(setup, query_set.plan, "", True)
    else:
        with pytest.raises(DsmsError, match=match):
            check_durable(setup, query_set.plan, "", True)


def test_a_checkpoint_of_an_older_format_is_refused_in_plain_words(tmp_path):
    store = CheckpointStore(tmp_path)
    saved = DeploymentCheckpoint(0.0, TABLE, QuerySet(TABLE), {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    store.save(saved, DomainCheckpoints({"0": DomainCheckpoint(b"", {}, {}, 0, 0.0)}, {"0": []}))
    [file] = (tmp_path / "checkpoints").iterdir()
    file.write_bytes(file.read_bytes().replace(b"dsms checkpoint 4\n", b"dsms checkpoint 3\n"))
    message = r"checkpoint-000000000001' has format 3, this version of dsms reads format 4: resume with the version"
    with pytest.raises(DsmsError, match=message):
        store.latest()
    with pytest.raises(DsmsError, match=message):
        check_durable(LiveConfig(durable=str(tmp_path)), QuerySet(TABLE).plan, "", resume=True)
    with pytest.raises(DsmsError, match="holds what an earlier deployment has stored"):
        check_durable(LiveConfig(durable=str(tmp_path)), QuerySet(TABLE).plan, "", resume=False)


def stored(path, count, truncated_offset=0):
    log = SqliteLog(path)
    log.append([LogEntry("p", number, b"frame") for number in range(1, count + 1)])
    log.truncate(truncated_offset)
    assert log.truncated_offset() == truncated_offset
    log.close()


@pytest.mark.parametrize(
    ("count", "truncated_offset", "match"),
    [
        (7, 0, None),
        (7, 5, None),
        (9, 5, None),
        (7, 6, "has entries 7 to 7, but checkpoint 1 covers entries up to 7, in some domains up to 5"),
        (7, 7, "has entries 8 to 7, but"),  # all of it is truncated
        (6, 0, "has entries 1 to 6, but checkpoint 1 covers entries up to 7"),
        (0, 0, "does not exist, but checkpoint 1 covers entries up to 7"),
    ],
)
def test_a_log_that_does_not_continue_a_checkpoint_is_refused(tmp_path, count, truncated_offset, match):
    """Else new rows would get offsets that domains have applied: acknowledged, and never read."""
    archive = CheckpointStore(tmp_path)
    saved = DeploymentCheckpoint(0.0, TABLE, QuerySet(TABLE), {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    domain_checkpoint = {
        str(domain): DomainCheckpoint(b"", {}, {"gateway-0": upto}, 0, 0.0) for domain, upto in enumerate((7, 5))
    }
    archive.save(saved, DomainCheckpoints(domain_checkpoint, {"0": [], "1": []}))
    if count:
        stored(tmp_path / "gateway-0.log", count, truncated_offset)
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
            r"other columns than its file 'a.csv': \['ts', 'n', 'm'\], not",
        ),
        ("SELECT n FROM s [ROWS 1]", {"csv": "a.csv"}, r"\['ts', 'sign', 'n'\], not \['ts', 'n'\]"),
        ("SELECT n FROM s", {"csv": "b.csv"}, "has its results in 'a.csv', not in 'b.csv': .* cannot change"),
    ],
)
def test_a_query_continues_its_own_file_with_the_same_columns(cql, sink, match):
    queries = {"all": {"cql": "SELECT n FROM s", "sink": {"csv": "a.csv"}}}
    other = {"all": {"cql": cql, **({} if sink is None else {"sink": sink})}}
    before, after = (QuerySet({**TABLE, "queries": each}).plan for each in (queries, other))
    if match is None:
        diff_plans(before, after)
    else:
        with pytest.raises(DsmsError, match=match):
            diff_plans(before, after)


def test_an_existing_file_that_would_be_overwritten_is_named(tmp_path):
    """That of a query that was removed and is in the plan again."""
    queries = {"all": {"cql": "SELECT n FROM s"}}
    again = {**queries, "again": {"cql": "SELECT n FROM s", "sink": {"jsonl": "again.jsonl"}}}
    archive = CheckpointStore(tmp_path / "d")
    before = QuerySet({**TABLE, "queries": queries})
    saved = DeploymentCheckpoint(0.0, before.table, before, {"all": "0"}, {"all": ""}, [], {}, {}, 1, 0)
    archive.save(saved, DomainCheckpoints({"0": DomainCheckpoint(b"", {}, {}, 0, 0.0)}, {"0": []}))
    table = {**TABLE, "queries": again}
    assert "is lost" not in str(diff_with_checkpoint("d", table, str(tmp_path), "p.toml"))
    (tmp_path / "again.jsonl").write_text("{}")
    assert str(diff_with_checkpoint("d", table, str(tmp_path), "p.toml")).endswith("again.jsonl is lost")


def test_a_durable_folder_that_is_a_file_is_refused_before_anything_is_started(tmp_path):
    (tmp_path / "d").write_text("")
    with pytest.raises(DsmsError, match="d' is a file; it must be a folder"):
        check_durable(LiveConfig(durable="d"), QuerySet(TABLE).plan, str(tmp_path), False)
