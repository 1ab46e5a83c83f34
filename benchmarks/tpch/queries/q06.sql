/* gold
description: Forecasting revenue change.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  SUM(l.l_extendedprice * l.l_discount) AS revenue
FROM bronze.lineitem AS l
WHERE l.l_shipdate >= DATE '1994-01-01'
  AND l.l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
  AND l.l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01
  AND l.l_quantity < 24
