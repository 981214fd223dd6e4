"""What Spark writes comes in once, whatever becomes of its tasks and of Spark itself; real Spark, a real gateway."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from certificates import certificate
from live_parts import Domain, plan_of, routes_of, running, serving

from dsms import DsmsError
from dsms.live.terms import Terms
from dsms.tokens import Tokens

pytestmark = pytest.mark.spark

PLAN = plan_of({"s": {"n": "int64"}, "t": {"x": "float64"}}, all="SELECT n FROM s", other="SELECT x FROM t")


def numbers(domain: Domain, query: str = "all", column: str = "n") -> list[Any]:
    return sorted(row[column] for row in domain.records(query))


def write(frame: Any, address: str, **options: Any) -> None:
    frame.write.format("dsms").options(address=address, **options).mode("append").save()


def test_a_data_frame_is_written_with_every_row_once_and_ends_the_stream_if_asked(formats: Any) -> None:
    with running(PLAN) as (domain, gateway, address):
        write(formats.range(0, 10_000, 1, 3).withColumnRenamed("id", "n"), address, stream="s", rows=999, end=True)
        assert numbers(domain) == list(range(10_000))
        assert gateway.status()["rows"] == 10_000
        assert domain.calls[-1] != "end"  # the other stream has not ended
        write(formats.sql("select 0.5D as x"), address, stream="t", end=True)
        assert domain.calls[-1] == "end"
        assert numbers(domain, "other", "x") == [0.5]


def test_spark_shows_its_token_by_tls_and_nothing_goes_without(formats: Any, tmp_path: Path) -> None:
    made, file = certificate(tmp_path), tmp_path / "token"
    file.write_text("push a-secret-of-spark spark\n")
    file.chmod(0o600)
    rows = formats.range(0, 1000, 1, 2).withColumnRenamed("id", "n")
    with running(PLAN, terms=Terms(Tokens.read(file), made)) as (domain, _, address):
        write(rows, address, stream="s", producer="spark", tokenfile=str(file), ca=made.chain)
        assert numbers(domain) == list(range(1000))
        for lacking in ({"ca": made.chain}, {"tokenfile": str(file)}):
            with pytest.raises(Exception, match="cannot connect"):
                write(rows, address, stream="s", producer="spark", **lacking)
        assert numbers(domain) == list(range(1000))


def test_a_task_that_is_killed_is_tried_again_and_nothing_comes_twice(formats: Any) -> None:
    def killed_once(parts: Any) -> Any:  # here, so that it goes to Spark's workers by value
        from pyspark import TaskContext

        task = TaskContext.get()
        for place, part in enumerate(parts):
            if place == 4 and task.partitionId() == 1 and task.attemptNumber() == 0:  # half of it has passed
                os.kill(os.getpid(), signal.SIGKILL)
            yield part

    with running(PLAN) as (domain, gateway, address):
        formats.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
        try:
            rows = formats.range(0, 10_000, 1, 2).withColumnRenamed("id", "n").mapInArrow(killed_once, "n long")
            write(rows, address, stream="s", rows=250)
        finally:
            formats.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 65_536)
        assert numbers(domain) == list(range(10_000))
        assert gateway.status()["rows"] == 10_000  # what was sent again was not taken again


def test_two_writes_under_one_name_are_two_writes_and_only_streams_with_rows_are_ended(formats: Any) -> None:
    with running(PLAN) as (domain, _gateway, address):
        rows = formats.sql("select 's' as _stream, 1L as n, 1.0D as x")
        write(rows, address, producer="mine")
        write(rows, address, producer="mine", end=True)
        assert numbers(domain) == [1, 1]
        write(formats.sql("select 2.0D as x"), address, stream="t")
        assert numbers(domain, "other", "x") == [2.0]


def test_rows_are_sent_to_the_stream_that_a_column_names(formats: Any) -> None:
    with running(PLAN) as (domain, _, address):
        rows = "select if(id % 2 = 0, 's', 't') as _stream, id as n, cast(id as double) as x from range(10)"
        write(formats.sql(rows), address)
        assert numbers(domain) == [0, 2, 4, 6, 8]
        assert numbers(domain, "other", "x") == [1.0, 3.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("select 1L as n", {"stream": "u"}, "no stream 'u'"),
        ("select 1L as m", {"stream": "s"}, "rows for 's': no column 'n'"),
        ("select 'a' as n", {"stream": "s"}, "column 'n' is string; tinyint or smallint or int or bigint is wanted"),
        ("select 1L as n", {}, "neither an option 'stream' nor a column '_stream'"),
        ("select 1L as n", {"stream": "s", "pace": True}, "rows can be paced only where a column says when"),
        ("select 1L as n", {"stream": "s", "strem": "s"}, "no option 'strem'"),
        ("select 1L as n", {"stream": "s", "rows": 0}, "option 'rows' is '0'; a whole number from 1 is wanted"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_row_is(formats: Any, query: str, options: Any, said: str) -> None:
    with running(PLAN) as (_, gateway, address), pytest.raises(Exception, match=said):
        write(formats.sql(query), address, **options)
    assert gateway is not None


def test_what_the_system_refuses_fails_the_write_also_when_tasks_are_tried_again(formats: Any) -> None:
    class Full(Domain):
        def arrived(self, parcels: Any) -> int:
            raise DsmsError("no room")

    with serving(routes_of(PLAN, Full(PLAN))) as (_, address), pytest.raises(Exception, match="refused: no room"):
        write(formats.sql("select 1L as n"), address, stream="s")


def test_a_stream_that_is_started_anew_from_its_checkpoint_goes_on_without_loss_or_doubles(
    formats: Any, tmp_path: Path
) -> None:
    """Once with a micro-batch that was sent, but of which Spark has not written down that it was done."""
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

    with running(PLAN) as (domain, gateway, address):
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
