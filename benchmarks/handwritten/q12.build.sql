SELECT
  l.l_shipmode,
  SUM(IF(o.o_orderpriority IN ('1-URGENT', '2-HIGH'), 1, 0)) AS high_line_count,
  SUM(IF(o.o_orderpriority IN ('1-URGENT', '2-HIGH'), 0, 1)) AS low_line_count
FROM {orders} AS o
JOIN {lineitem} AS l ON o.o_orderkey = l.l_orderkey
WHERE l.l_shipmode IN ('MAIL', 'SHIP')
  AND l.l_commitdate < l.l_receiptdate
  AND l.l_shipdate < l.l_commitdate
  AND l.l_receiptdate >= DATE '1994-01-01'
  AND l.l_receiptdate < DATE '1995-01-01'
GROUP BY l.l_shipmode
