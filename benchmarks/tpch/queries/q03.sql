/* gold
description: Shipping priority; the order's key breaks ties.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  l.l_orderkey,
  SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
  o.o_orderdate,
  o.o_shippriority
FROM bronze.customer AS c
JOIN bronze.orders AS o ON c.c_custkey = o.o_custkey
JOIN bronze.lineitem AS l ON l.l_orderkey = o.o_orderkey
WHERE c.c_mktsegment = 'BUILDING'
  AND o.o_orderdate < DATE '1995-03-15'
  AND l.l_shipdate > DATE '1995-03-15'
GROUP BY l.l_orderkey, o.o_orderdate, o.o_shippriority
ORDER BY revenue DESC, o.o_orderdate, l.l_orderkey
LIMIT 10
