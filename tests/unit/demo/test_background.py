from __future__ import annotations

import pytest

from spark_jobs.demo.background import BackgroundLoad
from spark_jobs.demo.errors import ShopUnreachableError
from spark_jobs.demo.load import LoadOrder


def test_finish_raises_the_error_of_the_load():
    nowhere = "host=127.0.0.1 port=1 dbname=shop"
    with BackgroundLoad(LoadOrder(1, 1, 1), shop_dsn=nowhere, kafka="127.0.0.1:1") as load:
        with pytest.raises(ShopUnreachableError):
            load.finish()
        assert not load.running
        assert load.done == 0


def test_a_load_that_never_started_ends_quietly():
    with BackgroundLoad(LoadOrder(1, 1, 1), shop_dsn="", kafka="") as load:
        assert not load.running
