from __future__ import annotations

import pytest

from spark_jobs.demo.database import connect, statement
from spark_jobs.demo.errors import ShopUnreachableError
from spark_jobs.demo.operations import Change, delete, insert, update

KEY = {"order_id": 1, "line": 2}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            insert("order_items", KEY, {"quantity": 3}),
            'INSERT INTO "order_items" ("quantity", "order_id", "line") VALUES (%s, %s, %s)',
        ),
        (
            update("order_items", KEY, {"quantity": 3}),
            'UPDATE "order_items" SET "quantity" = %s WHERE "order_id" = %s AND "line" = %s',
        ),
        (
            delete("order_items", KEY),
            'DELETE FROM "order_items" WHERE "order_id" = %s AND "line" = %s',
        ),
    ],
)
def test_statements(change: Change, text: str):
    assert statement(change).as_string(None) == text


def test_a_database_that_does_not_answer():
    with pytest.raises(ShopUnreachableError) as caught:
        connect("host=127.0.0.1 port=1 dbname=shop")
    assert "refused" in caught.value.render()
