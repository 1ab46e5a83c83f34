/* gold
description: Minimum cost supplier.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  s.s_acctbal,
  s.s_name,
  n.n_name,
  p.p_partkey,
  p.p_mfgr,
  s.s_address,
  s.s_phone,
  s.s_comment
FROM bronze.part AS p
CROSS JOIN bronze.supplier AS s
CROSS JOIN bronze.partsupp AS ps
CROSS JOIN bronze.nation AS n
CROSS JOIN bronze.region AS r
WHERE p.p_partkey = ps.ps_partkey
  AND s.s_suppkey = ps.ps_suppkey
  AND p.p_size = 15
  AND p.p_type LIKE '%BRASS'
  AND s.s_nationkey = n.n_nationkey
  AND n.n_regionkey = r.r_regionkey
  AND r.r_name = 'EUROPE'
  AND ps.ps_supplycost = (
    SELECT MIN(ps2.ps_supplycost)
    FROM bronze.partsupp AS ps2
    CROSS JOIN bronze.supplier AS s2
    CROSS JOIN bronze.nation AS n2
    CROSS JOIN bronze.region AS r2
    WHERE p.p_partkey = ps2.ps_partkey
      AND s2.s_suppkey = ps2.ps_suppkey
      AND s2.s_nationkey = n2.n_nationkey
      AND n2.n_regionkey = r2.r_regionkey
      AND r2.r_name = 'EUROPE'
  )
ORDER BY s.s_acctbal DESC, n.n_name, s.s_name, p.p_partkey
LIMIT 100
