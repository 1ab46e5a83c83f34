/* gold
description: Volume shipping.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  shipping.supp_nation,
  shipping.cust_nation,
  shipping.l_year,
  SUM(shipping.volume) AS revenue
FROM (
  SELECT
    n1.n_name AS supp_nation,
    n2.n_name AS cust_nation,
    EXTRACT(YEAR FROM l.l_shipdate) AS l_year,
    l.l_extendedprice * (1 - l.l_discount) AS volume
  FROM bronze.supplier AS s
  JOIN bronze.lineitem AS l ON s.s_suppkey = l.l_suppkey
  JOIN bronze.orders AS o ON o.o_orderkey = l.l_orderkey
  JOIN bronze.customer AS c ON c.c_custkey = o.o_custkey
  JOIN bronze.nation AS n1 ON s.s_nationkey = n1.n_nationkey
  JOIN bronze.nation AS n2 ON c.c_nationkey = n2.n_nationkey
  WHERE (
      (n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
      OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')
    )
    AND l.l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
) AS shipping
GROUP BY shipping.supp_nation, shipping.cust_nation, shipping.l_year
ORDER BY shipping.supp_nation, shipping.cust_nation, shipping.l_year
