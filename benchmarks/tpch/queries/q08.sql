/* gold
description: National market share.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  all_nations.o_year,
  SUM(CASE WHEN all_nations.nation = 'BRAZIL' THEN all_nations.volume ELSE 0 END)
    / SUM(all_nations.volume) AS mkt_share
FROM (
  SELECT
    EXTRACT(YEAR FROM o.o_orderdate) AS o_year,
    l.l_extendedprice * (1 - l.l_discount) AS volume,
    n2.n_name AS nation
  FROM bronze.part AS p
  JOIN bronze.lineitem AS l ON p.p_partkey = l.l_partkey
  JOIN bronze.supplier AS s ON s.s_suppkey = l.l_suppkey
  JOIN bronze.orders AS o ON l.l_orderkey = o.o_orderkey
  JOIN bronze.customer AS c ON o.o_custkey = c.c_custkey
  JOIN bronze.nation AS n1 ON c.c_nationkey = n1.n_nationkey
  JOIN bronze.region AS r ON n1.n_regionkey = r.r_regionkey
  JOIN bronze.nation AS n2 ON s.s_nationkey = n2.n_nationkey
  WHERE r.r_name = 'AMERICA'
    AND o.o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
    AND p.p_type = 'ECONOMY ANODIZED STEEL'
) AS all_nations
GROUP BY all_nations.o_year
ORDER BY all_nations.o_year
