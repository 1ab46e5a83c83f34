MERGE INTO {target} AS t
USING (
  WITH touched AS (
    SELECT o.o_orderkey AS orderkey FROM {orders_changes} AS o
    UNION
    SELECT l.l_orderkey FROM {lineitem_changes} AS l
  ),
  counted AS (
    SELECT o.o_orderpriority, 1 AS w
    FROM {orders} AS o
    WHERE o.o_orderkey IN (SELECT t.orderkey FROM touched AS t)
      AND o.o_orderdate >= DATE '1993-07-01'
      AND o.o_orderdate < DATE '1993-10-01'
      AND EXISTS (
        SELECT 1
        FROM {lineitem} AS l
        WHERE l.l_orderkey = o.o_orderkey AND l.l_commitdate < l.l_receiptdate
      )
    UNION ALL
    SELECT o.o_orderpriority, -1 AS w
    FROM {orders_before} AS o
    WHERE o.o_orderkey IN (SELECT t.orderkey FROM touched AS t)
      AND o.o_orderdate >= DATE '1993-07-01'
      AND o.o_orderdate < DATE '1993-10-01'
      AND EXISTS (
        SELECT 1
        FROM {lineitem_before} AS l
        WHERE l.l_orderkey = o.o_orderkey AND l.l_commitdate < l.l_receiptdate
      )
  )
  SELECT c.o_orderpriority, SUM(c.w) AS n FROM counted AS c GROUP BY c.o_orderpriority
) AS d
ON t.o_orderpriority = d.o_orderpriority
WHEN MATCHED AND t.order_count + d.n = 0 THEN DELETE
WHEN MATCHED AND d.n <> 0 THEN UPDATE SET t.order_count = t.order_count + d.n
WHEN NOT MATCHED AND d.n > 0 THEN
  INSERT (o_orderpriority, order_count) VALUES (d.o_orderpriority, d.n)
