/* gold
description: >
  Orders of each user as an array, sorted by time. Deleted orders are removed from the array.
  Users without orders have no row.
owner: shop
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  order_ids: Order ids, sorted by the time at which the orders were placed.
*/
SELECT
  o.user_id,
  TRANSFORM(
    ARRAY_SORT(COLLECT_LIST(STRUCT(o.created_at, o.order_id))), placed -> placed.order_id
  ) AS order_ids,
  COUNT(*) AS orders
FROM silver.orders AS o
GROUP BY o.user_id
