/* gold
description: >
  Completed orders per user: how many, their sum and the latest. A deleted order lowers count and
  sum, and may lower the latest time; a user without completed orders has no row. The cast of
  total_spend raises an error above 9,999,999,999.99; it never wraps.
owner: analytics
contract: strict
refresh: continuous
freshness: 1 minute
tags: [shop]
columns:
  order_count: Completed orders.
  total_spend: What they come to.
  last_order_time: When the latest of them was placed.
sinks:
  - postgres: {table: serving.user_order_stats}
  - redis: {prefix: "user_order_stats:"}
*/
SELECT
  o.user_id,
  COUNT(*) AS order_count,
  CAST(SUM(o.amount) AS DECIMAL(12, 2)) AS total_spend,
  MAX(o.created_at) AS last_order_time
FROM silver.orders AS o
WHERE o.status = 'completed'
GROUP BY ALL
