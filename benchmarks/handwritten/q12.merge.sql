MERGE INTO {target} AS t
USING (
  WITH touched AS (
    SELECT o.o_orderkey AS orderkey FROM {orders_changes} AS o
    UNION
    SELECT l.l_orderkey FROM {lineitem_changes} AS l
  ),
  counted AS (
    SELECT l.l_shipmode, o.o_orderpriority, 1 AS w
    FROM {orders} AS o
    JOIN {lineitem} AS l ON o.o_orderkey = l.l_orderkey
    WHERE o.o_orderkey IN (SELECT t.orderkey FROM touched AS t)
      AND l.l_shipmode IN ('MAIL', 'SHIP')
      AND l.l_commitdate < l.l_receiptdate
      AND l.l_shipdate < l.l_commitdate
      AND l.l_receiptdate >= DATE '1994-01-01'
      AND l.l_receiptdate < DATE '1995-01-01'
    UNION ALL
    SELECT l.l_shipmode, o.o_orderpriority, -1 AS w
    FROM {orders_before} AS o
    JOIN {lineitem_before} AS l ON o.o_orderkey = l.l_orderkey
    WHERE o.o_orderkey IN (SELECT t.orderkey FROM touched AS t)
      AND l.l_shipmode IN ('MAIL', 'SHIP')
      AND l.l_commitdate < l.l_receiptdate
      AND l.l_shipdate < l.l_commitdate
      AND l.l_receiptdate >= DATE '1994-01-01'
      AND l.l_receiptdate < DATE '1995-01-01'
  )
  SELECT
    c.l_shipmode,
    SUM(IF(c.o_orderpriority IN ('1-URGENT', '2-HIGH'), c.w, 0)) AS high,
    SUM(IF(c.o_orderpriority IN ('1-URGENT', '2-HIGH'), 0, c.w)) AS low
  FROM counted AS c
  GROUP BY c.l_shipmode
) AS d
ON t.l_shipmode = d.l_shipmode
WHEN MATCHED AND t.high_line_count + d.high = 0 AND t.low_line_count + d.low = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET
  t.high_line_count = t.high_line_count + d.high,
  t.low_line_count = t.low_line_count + d.low
WHEN NOT MATCHED AND d.high + d.low > 0 THEN INSERT (l_shipmode, high_line_count, low_line_count)
  VALUES (d.l_shipmode, d.high, d.low)
