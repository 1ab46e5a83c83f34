/* gold
description: Global sales opportunity.
owner: benchmarks
refresh: bulk
tags: [tpch]
*/
SELECT
  custsale.cntrycode,
  COUNT(*) AS numcust,
  SUM(custsale.c_acctbal) AS totacctbal
FROM (
  SELECT
    SUBSTRING(c.c_phone FROM 1 FOR 2) AS cntrycode,
    c.c_acctbal
  FROM bronze.customer AS c
  WHERE SUBSTRING(c.c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    AND c.c_acctbal > (
      SELECT AVG(c2.c_acctbal)
      FROM bronze.customer AS c2
      WHERE c2.c_acctbal > 0.00
        AND SUBSTRING(c2.c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    )
    AND NOT EXISTS (
      SELECT 1
      FROM bronze.orders AS o
      WHERE o.o_custkey = c.c_custkey
    )
) AS custsale
GROUP BY custsale.cntrycode
ORDER BY custsale.cntrycode
