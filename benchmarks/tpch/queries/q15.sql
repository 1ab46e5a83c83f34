/* gold
description: Top supplier.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
WITH revenue AS (
  SELECT
    l.l_suppkey AS supplier_no,
    SUM(l.l_extendedprice * (1 - l.l_discount)) AS total_revenue
  FROM bronze.lineitem AS l
  WHERE l.l_shipdate >= DATE '1996-01-01'
    AND l.l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
  GROUP BY l.l_suppkey
)
SELECT
  s.s_suppkey,
  s.s_name,
  s.s_address,
  s.s_phone,
  r.total_revenue
FROM bronze.supplier AS s
JOIN revenue AS r ON s.s_suppkey = r.supplier_no
WHERE r.total_revenue = (SELECT MAX(r2.total_revenue) FROM revenue AS r2)
ORDER BY s.s_suppkey
