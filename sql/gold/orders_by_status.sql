/* gold
description: >
  Current number of orders per status. A change of status moves an order from one row to
  another. A status without orders has no row.
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
