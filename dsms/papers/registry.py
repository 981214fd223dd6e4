"""The papers by name, and the experiments that `PAPER[/FIGURE]` selects."""

from __future__ import annotations

from importlib import import_module

from dsms.errors import DsmsError, existing
from dsms.papers.experiment import Experiment, Paper

PAPERS = ("chain", "bai-zaniolo", "fas-mcq", "raindrop", "getta-vossough")


def load_paper(name: str) -> Paper:
    """Import and return the paper of this name."""
    if name not in PAPERS:
        raise DsmsError(f"no paper {name!r}{existing(name, PAPERS)}")
    paper: Paper = import_module(f"dsms.papers.{name.replace('-', '_')}").PAPER
    return paper


def select_experiments(text: str | None) -> list[tuple[Paper, tuple[Experiment, ...]]]:
    """The experiments of all papers (None), of one paper, or of one figure of a paper."""
    if text is None:
        return [(each, each.experiments) for each in map(load_paper, PAPERS)]
    name, slash, figure = text.partition("/")
    paper = load_paper(name)
    if not slash:
        return [(paper, paper.experiments)]
    selected = tuple(each for each in paper.experiments if figure in each.names)
    if not selected:  # a figure that is drawn as several plots, figure-6.3-delay and so on
        selected = tuple(e for e in paper.experiments if any(name.startswith(f"{figure}-") for name in e.names))
    if not selected:
        names = [each for experiment in paper.experiments for each in experiment.names]
        raise DsmsError(f"{name!r} has no figure or experiment {figure!r}{existing(figure, names)}")
    return [(paper, selected)]
