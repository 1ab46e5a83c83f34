/* gold
description: >
  The orders of each user as an array in order of time; a deleted order leaves the array, and a
  user without orders has no row.
owner: shop
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  order_ids: In the order in which they were placed.
*/
SELECT
  o.user_id,
  TRANSFORM(
    ARRAY_SORT(COLLECT_LIST(STRUCT(o.created_at, o.order_id))), placed -> placed.order_id
  ) AS order_ids,
  COUNT(*) AS orders
FROM silver.orders AS o
GROUP BY o.user_id
