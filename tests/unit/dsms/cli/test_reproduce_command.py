"""`dsms reproduce` as a command: it selects experiments, refuses wrong arguments, and reuses stored runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dsms.errors import DsmsError
from dsms.papers.registry import PAPERS, load_paper, select_experiments


def test_every_figure_of_every_paper_selects_its_experiment():
    for name in PAPERS:
        found = load_paper(name)
        assert found.name == name
        names = [each for experiment in found.experiments for each in dict.fromkeys(experiment.names)]
        assert len(names) == len(set(names))
        for each in names:
            [(_, [experiment])] = select_experiments(f"{name}/{each}")
            assert each in experiment.names
        claims = [f"{e.name}/{c.name}" for e in found.experiments for c in e.claims]
        assert len(claims) == len(set(claims))


def test_a_figure_of_several_pictures_is_selected_by_its_number():
    [(_, [experiment])] = select_experiments("raindrop/figure-6.2")
    assert {"figure-6.2-memory", "figure-6.2-delay"} < set(experiment.names)


@pytest.mark.parametrize(
    ("text", "message"),
    [("chian", "no paper 'chian' .did you mean 'chain'"), ("chain/figure-99", "'chain' has no figure or experiment")],
)
def test_an_unknown_name_is_refused_with_those_that_exist(text, message):
    with pytest.raises(DsmsError, match=message):
        select_experiments(text)


def call(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "dsms", "reproduce", *words], capture_output=True, text=True, **options
    )


def test_the_command_shows_the_table_and_can_be_called_again(tmp_path):
    done = call("chain/example", "--quick", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "chain/example" in done.stdout
    assert "reproduced" in done.stdout
    assert (tmp_path / "out" / "report.html").exists()
    again = call("chain/example", "--quick", "--out", str(tmp_path / "out"), "--json")
    claims = json.loads(again.stdout)["claims"]
    assert {claim["experiment"] for claim in claims} == {"chain/example"}
    assert claims[0]["paper"] == "1, 1.2, 1.4, 1.6, 1.8"


def test_a_missing_trace_is_refused_before_any_run(tmp_path):
    done = call("chain", "--trace", "nowhere.tcp", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "--trace 'nowhere.tcp': no such file" in done.stderr


def test_a_file_that_is_not_a_trace_is_refused_before_any_run(tmp_path):
    (tmp_path / "words").write_text("once upon a time\n")
    done = call("chain/example", "--trace", str(tmp_path / "words"), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "cannot be read as a packet trace" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_as_the_output_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    done = call("chain/example", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "is not a writable folder" in done.stderr
