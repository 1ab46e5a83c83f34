/* gold
description: Local supplier volume.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  n.n_name,
  SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue
FROM bronze.customer AS c
JOIN bronze.orders AS o ON c.c_custkey = o.o_custkey
JOIN bronze.lineitem AS l ON l.l_orderkey = o.o_orderkey
JOIN bronze.supplier AS s ON l.l_suppkey = s.s_suppkey AND c.c_nationkey = s.s_nationkey
JOIN bronze.nation AS n ON s.s_nationkey = n.n_nationkey
JOIN bronze.region AS r ON n.n_regionkey = r.r_regionkey
WHERE r.r_name = 'ASIA'
  AND o.o_orderdate >= DATE '1994-01-01'
  AND o.o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY n.n_name
ORDER BY revenue DESC
