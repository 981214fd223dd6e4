"""The Spark sink `dsms` pushes every row once, also if tasks are killed or Spark restarts; with a real gateway."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.live.certificates import make_certificate
from support.live.in_process_domain import FakeDomain, make_plan, make_routes, run_gateway, run_plan

from dsms.net.access import AccessPolicy
from dsms.net.tokens import Tokens

pytestmark = pytest.mark.spark

PLAN = make_plan({"s": {"n": "int64"}, "t": {"x": "float64"}}, all="SELECT n FROM s", other="SELECT x FROM t")


def numbers(domain: FakeDomain, query: str = "all", column: str = "n") -> list[Any]:
    return sorted(row[column] for row in domain.records(query))


def write(frame: Any, address: str, **options: Any) -> None:
    frame.write.format("dsms").options(address=address, **options).mode("append").save()


def test_a_data_frame_is_pushed_with_every_row_once_and_option_end_ends_the_stream(formats: Any) -> None:
    with run_plan(PLAN) as (domain, gateway, address):
        write(formats.range(0, 10_000, 1, 3).withColumnRenamed("id", "n"), address, stream="s", rows=999, end=True)
        assert numbers(domain) == list(range(10_000))
        assert gateway.status()["rows"] == 10_000
        assert domain.calls[-1] != "end"  # the other stream has not ended
        write(formats.sql("select 0.5D as x"), address, stream="t", end=True)
        assert domain.calls[-1] == "end"
        assert numbers(domain, "other", "x") == [0.5]


def test_spark_authenticates_by_token_over_tls_and_needs_both(formats: Any, tmp_path: Path) -> None:
    certificate, file = make_certificate(tmp_path), tmp_path / "token"
    file.write_text("push a-secret-of-spark spark\n")
    file.chmod(0o600)
    rows = formats.range(0, 1000, 1, 2).withColumnRenamed("id", "n")
    with run_plan(PLAN, terms=AccessPolicy(Tokens.read(file), certificate)) as (domain, _, address):
        write(rows, address, stream="s", producer="spark", tokenfile=str(file), ca=certificate.chain)
        assert numbers(domain) == list(range(1000))
        for incomplete in ({"ca": certificate.chain}, {"tokenfile": str(file)}):
            with pytest.raises(Exception, match="cannot connect"):
                write(rows, address, stream="s", producer="spark", **incomplete)
        assert numbers(domain) == list(range(1000))


def test_a_killed_task_is_repeated_and_no_row_arrives_twice(formats: Any) -> None:
    def kill_once(parts: Any) -> Any:  # a local function: Spark pickles it by value for its workers
        from pyspark import TaskContext

        task = TaskContext.get()
        for place, part in enumerate(parts):
            if place == 4 and task.partitionId() == 1 and task.attemptNumber() == 0:  # halfway
                os.kill(os.getpid(), signal.SIGKILL)
            yield part

    with run_plan(PLAN) as (domain, gateway, address):
        formats.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
        try:
            rows = formats.range(0, 10_000, 1, 2).withColumnRenamed("id", "n").mapInArrow(kill_once, "n long")
            write(rows, address, stream="s", rows=250)
        finally:
            formats.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 65_536)
        assert numbers(domain) == list(range(10_000))
        assert gateway.status()["rows"] == 10_000  # repeated frames were not accepted twice


def test_two_writes_under_one_name_are_two_writes_and_only_streams_with_rows_are_ended(formats: Any) -> None:
    with run_plan(PLAN) as (domain, _gateway, address):
        rows = formats.sql("select 's' as _stream, 1L as n, 1.0D as x")
        write(rows, address, producer="mine")
        write(rows, address, producer="mine", end=True)
        assert numbers(domain) == [1, 1]
        write(formats.sql("select 2.0D as x"), address, stream="t")
        assert numbers(domain, "other", "x") == [2.0]


def test_rows_are_sent_to_the_stream_that_a_column_names(formats: Any) -> None:
    with run_plan(PLAN) as (domain, _, address):
        rows = "select if(id % 2 = 0, 's', 't') as _stream, id as n, cast(id as double) as x from range(10)"
        write(formats.sql(rows), address)
        assert numbers(domain) == [0, 2, 4, 6, 8]
        assert numbers(domain, "other", "x") == [1.0, 3.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("select 1L as n", {"stream": "u"}, "no stream 'u'"),
        ("select 1L as m", {"stream": "s"}, "rows for 's': no column 'n'"),
        ("select 'a' as n", {"stream": "s"}, "column 'n' is string; expected tinyint or smallint or int or bigint"),
        ("select 1L as n", {}, "neither an option 'stream' nor a column '_stream'"),
        ("select 1L as n", {"stream": "s", "pace": True}, "rows can be paced only if a column has their due times"),
        ("select 1L as n", {"stream": "s", "strem": "s"}, "no option 'strem'"),
        ("select 1L as n", {"stream": "s", "rows": 0}, "option 'rows': '0' is not a whole number from 1"),
    ],
)
def test_a_wrong_write_is_refused_before_any_row_is_sent(formats: Any, query: str, options: Any, message: str) -> None:
    with run_plan(PLAN) as (_, gateway, address), pytest.raises(Exception, match=message):
        write(formats.sql(query), address, **options)
    assert gateway is not None


def test_rows_that_the_system_refuses_fail_the_write_also_when_tasks_are_repeated(formats: Any) -> None:
    domain = FakeDomain(PLAN)
    domain.error = "no room"
    with (
        run_gateway(make_routes(PLAN, domain)) as (_, address),
        pytest.raises(Exception, match="refused: no room"),
    ):
        write(formats.sql("select 1L as n"), address, stream="s")


def test_a_streaming_query_restarted_from_its_checkpoint_loses_and_doubles_no_row(formats: Any, tmp_path: Path) -> None:
    """The third start repeats a micro-batch that was sent, but whose commit Spark has lost."""
    inputs, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    inputs.mkdir()

    def more(first: int) -> None:
        lines = "".join(f'{{"n": {n}}}\n' for n in range(first, first + 500))
        (inputs / f"{first:05}.json").write_text(lines)

    def stream(address: str) -> None:
        rows = formats.readStream.schema("n long").json(str(inputs))
        options = {"address": address, "stream": "s", "rows": 100, "checkpointLocation": str(checkpoint)}
        query = rows.writeStream.format("dsms").options(**options).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    with run_plan(PLAN) as (domain, gateway, address):
        more(0)
        stream(address)
        more(500)
        stream(address)
        for file in ("1", ".1.crc"):
            (checkpoint / "commits" / file).unlink()
        stream(address)
        more(1000)
        stream(address)
        assert numbers(domain) == list(range(1500))
        assert gateway.status()["rows"] == 1500
        assert max(Counter(numbers(domain)).values()) == 1
