"""The shared Spark session with our data source and sink registered."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def formats(spark):
    """Spark with the formats `dsms` and `dsms_load`."""
    import loadgen

    loadgen.register(spark)
    return spark
