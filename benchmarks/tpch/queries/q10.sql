/* gold
description: Returned items; the customer's key breaks ties.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  c.c_custkey,
  c.c_name,
  SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
  c.c_acctbal,
  n.n_name,
  c.c_address,
  c.c_phone,
  c.c_comment
FROM bronze.customer AS c
JOIN bronze.orders AS o ON c.c_custkey = o.o_custkey
JOIN bronze.lineitem AS l ON l.l_orderkey = o.o_orderkey
JOIN bronze.nation AS n ON c.c_nationkey = n.n_nationkey
WHERE o.o_orderdate >= DATE '1993-10-01'
  AND o.o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH
  AND l.l_returnflag = 'R'
GROUP BY
  c.c_custkey, c.c_name, c.c_acctbal, c.c_phone, n.n_name, c.c_address, c.c_comment
ORDER BY revenue DESC, c.c_custkey
LIMIT 20
