/* gold
description: Important stock identification; the fraction depends on the scale.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  ps.ps_partkey,
  SUM(ps.ps_supplycost * ps.ps_availqty) AS value
FROM bronze.partsupp AS ps
JOIN bronze.supplier AS s ON ps.ps_suppkey = s.s_suppkey
JOIN bronze.nation AS n ON s.s_nationkey = n.n_nationkey
WHERE n.n_name = 'GERMANY'
GROUP BY ps.ps_partkey
HAVING SUM(ps.ps_supplycost * ps.ps_availqty) > (
  SELECT SUM(ps2.ps_supplycost * ps2.ps_availqty) * :fraction
  FROM bronze.partsupp AS ps2
  JOIN bronze.supplier AS s2 ON ps2.ps_suppkey = s2.s_suppkey
  JOIN bronze.nation AS n2 ON s2.s_nationkey = n2.n_nationkey
  WHERE n2.n_name = 'GERMANY'
)
ORDER BY value DESC
