"""The papers by name."""

from __future__ import annotations

from importlib import import_module

from dsms.errors import DsmsError, existing
from dsms.papers.experiment import Experiment, Paper

PAPERS = ("chain", "bai-zaniolo", "fas-mcq", "raindrop", "getta-vossough")


def paper(name: str) -> Paper:
    """The paper of this name; its module is loaded only now."""
    if name not in PAPERS:
        raise DsmsError(f"no paper {name!r}{existing(name, PAPERS)}")
    found: Paper = import_module(f"dsms.papers.{name.replace('-', '_')}").PAPER
    return found


def chosen(text: str | None) -> list[tuple[Paper, tuple[Experiment, ...]]]:
    """What `PAPER[/FIGURE]` asks for: all papers, one, or what draws one figure of it."""
    if text is None:
        return [(each, each.experiments) for each in map(paper, PAPERS)]
    name, slash, figure = text.partition("/")
    found = paper(name)
    if not slash:
        return [(found, found.experiments)]
    wanted = tuple(each for each in found.experiments if figure in each.names)
    if not wanted:  # one of several pictures
        wanted = tuple(e for e in found.experiments if any(name.startswith(f"{figure}-") for name in e.names))
    if not wanted:
        names = [each for experiment in found.experiments for each in experiment.names]
        raise DsmsError(f"{name!r} has no figure or experiment {figure!r}{existing(figure, names)}")
    return [(found, wanted)]
