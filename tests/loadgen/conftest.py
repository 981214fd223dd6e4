"""What tests of the data pipeline share: the session, with our formats."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def formats(spark):
    """Spark with `dsms` and `dsms_load`."""
    import loadgen

    loadgen.register(spark)
    return spark
