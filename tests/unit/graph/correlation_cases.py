"""Subqueries that read columns of the query around them where Spark takes none, and relatives."""

from __future__ import annotations

_USERS = "FROM silver.users AS u WHERE u.customer = o.customer"
_SCALAR = f"(SELECT MAX(u.age) {_USERS})"
_GROUPS = "FROM silver.orders AS o GROUP BY o.customer"
_SHOPS = "(SELECT 1 FROM silver.shops AS s WHERE s.shop = {})"

# SQL, the condition, the line and column that it names.
REFUSED = {
    "a correlated subquery beside aggregates": (
        f"SELECT o.customer, COUNT(*) AS n,\n{_SCALAR} AS age {_GROUPS}",
        "CORRELATED_COLUMN",
        "2:62",
    ),
    "a correlated subquery of a group": (
        f"SELECT o.customer,\n1 + {_SCALAR} AS age {_GROUPS}",
        "CORRELATED_COLUMN",
        "2:66",
    ),
    "a correlated subquery in the condition of a join": (
        (
            "SELECT o.day FROM silver.orders AS o JOIN silver.shops AS s\n"
            f"ON s.shop = (SELECT MIN(u.segment) {_USERS})"
        ),
        "CORRELATED_COLUMN",
        "2:78",
    ),
    "the order of a correlated subquery": (
        f"SELECT o.day FROM silver.orders AS o\nORDER BY {_SCALAR}, o.order_id LIMIT 3",
        "CORRELATED_COLUMN",
        "2:71",
    ),
    "a column of the query around in GROUP BY": (
        (
            "SELECT o.day FROM silver.orders AS o WHERE EXISTS (SELECT u.age\n"
            f"{_USERS} GROUP BY u.age, o.day)"
        ),
        "CORRELATED_COLUMN",
        "2:70",
    ),
    "a column of the query around in ORDER BY": (
        (
            "SELECT o.day, (SELECT u.age\n"
            f"{_USERS} ORDER BY u.age + o.order_id LIMIT 1) AS age FROM silver.orders AS o"
        ),
        "CORRELATED_COLUMN",
        "2:71",
    ),
    "a column of the query around beside an aggregate": (
        f"SELECT o.day, (SELECT MAX(u.age) + o.order_id {_USERS}) AS n FROM silver.orders AS o",
        "CORRELATED_COLUMN",
        "1:36",
    ),
    "a column of the query around in an aggregate": (
        f"SELECT o.day, (SELECT MAX(u.age + o.order_id) {_USERS}) AS n FROM silver.orders AS o",
        "CORRELATED_COLUMN",
        "1:35",
    ),
    "a column of the query around in a window": (
        (
            "SELECT o.day, (SELECT RANK() OVER (ORDER BY o.day) AS r\n"
            f"{_USERS}) AS age FROM silver.orders AS o"
        ),
        "CORRELATED_COLUMN",
        "1:45",
    ),
    "a column of the query around the one around": (
        (
            f"SELECT o.day FROM silver.orders AS o WHERE EXISTS (SELECT 1 {_USERS}\n"
            f"AND EXISTS {_SHOPS.format('o.customer')})"
        ),
        "CORRELATED_COLUMN",
        "2:60",
    ),
    "an ungrouped column in EXISTS": (
        (
            f"SELECT o.customer, EXISTS {_SHOPS.format('o.customer')} AS a,\n"
            f"EXISTS {_SHOPS.format('CAST(o.day AS STRING)')} AS b {_GROUPS}"
        ),
        "UNGROUPED_COLUMN",
        "2:61",
    ),
    "an ungrouped column in a subquery of HAVING": (
        (
            f"SELECT o.customer {_GROUPS}\n"
            "HAVING COUNT(*) > (SELECT MAX(u.age) FROM silver.users AS u WHERE u.age = o.order_id)"
        ),
        "UNGROUPED_COLUMN",
        "2:75",
    ),
}
TAKEN = {
    "correlated subqueries of groups": (
        f"SELECT o.customer, MAX({_SCALAR}) AS a, EXISTS (SELECT 1 {_USERS}) AS b, "
        "o.customer IN (SELECT u.segment FROM silver.users AS u) AS c, "
        f"(SELECT MAX(u.age) FROM silver.users AS u) AS d {_GROUPS} "
        f"HAVING COUNT(*) > {_SCALAR} AND EXISTS (SELECT 1 {_USERS})"
    ),
    "correlated subqueries in GROUP BY": (
        f"SELECT o.day, {_SCALAR} AS age, COUNT(*) AS n FROM silver.orders AS o "
        f"GROUP BY o.day, {_SCALAR.replace('u.', 'v.').replace('AS u', 'AS v')}"
    ),
    "a correlated subquery of GROUP BY ALL": (
        f"SELECT o.day, {_SCALAR} AS age, COUNT(*) AS n FROM silver.orders AS o GROUP BY ALL"
    ),
    "columns of the query around in WHERE and HAVING": (
        f"SELECT o.day, (SELECT u.age + o.order_id {_USERS} AND u.age > o.order_id) AS age "
        "FROM silver.orders AS o WHERE o.customer IN (SELECT u.customer FROM silver.users AS u "
        "GROUP BY u.customer HAVING COUNT(*) > o.order_id)"
    ),
    "a column of the query around a subquery of FROM": (
        "SELECT o.day FROM silver.orders AS o WHERE EXISTS (SELECT 1 FROM (SELECT u.age "
        f"{_USERS}) AS x WHERE EXISTS (SELECT 1 FROM silver.users AS u WHERE u.age = x.age))"
    ),
    "EXISTS in the condition of a join": (
        "SELECT o.day FROM silver.orders AS o JOIN silver.shops AS s ON s.shop = o.customer "
        f"AND EXISTS (SELECT 1 {_USERS})"
    ),
    "a correlated subquery in a window": (
        f"SELECT SUM(o.amount) OVER (PARTITION BY {_SCALAR}) AS s FROM silver.orders AS o"
    ),
}
