/* gold
description: >
  How many orders are in each status now. A change of status takes one from a row and adds it to
  another; a status without orders has no row.
owner: shop
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
*/
SELECT
  o.status,
  COUNT(*) AS orders
FROM silver.orders AS o
GROUP BY o.status
