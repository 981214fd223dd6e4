"""A deployment's checkpoints as they are found again: by whom they can be gone on with."""

from __future__ import annotations

import pytest

from actors.archive import Archive
from actors.durable_scheduler import Stood
from actors.launch import check_durable
from actors.saved import Domains, Saved
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
