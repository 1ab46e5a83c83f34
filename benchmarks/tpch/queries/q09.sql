/* gold
description: Product type profit measure.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  profit.nation,
  profit.o_year,
  SUM(profit.amount) AS sum_profit
FROM (
  SELECT
    n.n_name AS nation,
    EXTRACT(YEAR FROM o.o_orderdate) AS o_year,
    l.l_extendedprice * (1 - l.l_discount) - ps.ps_supplycost * l.l_quantity AS amount
  FROM bronze.part AS p
  JOIN bronze.lineitem AS l ON p.p_partkey = l.l_partkey
  JOIN bronze.supplier AS s ON s.s_suppkey = l.l_suppkey
  JOIN bronze.partsupp AS ps ON ps.ps_suppkey = l.l_suppkey AND ps.ps_partkey = l.l_partkey
  JOIN bronze.orders AS o ON o.o_orderkey = l.l_orderkey
  JOIN bronze.nation AS n ON s.s_nationkey = n.n_nationkey
  WHERE p.p_name LIKE '%green%'
) AS profit
GROUP BY profit.nation, profit.o_year
ORDER BY profit.nation, profit.o_year DESC
