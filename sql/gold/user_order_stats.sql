/* gold
description: >
  Number, total amount and latest time of completed orders per user. When an order is deleted,
  count and total decrease, and the latest time can become earlier. Users without completed
  orders have no row. The cast of total_spend raises an error above 9,999,999,999.99; it never
  wraps.
owner: analytics
contract: strict
refresh: continuous
freshness: 1 minute
tags: [shop]
columns:
  order_count: Number of completed orders.
  total_spend: Total amount of completed orders.
  last_order_time: Time at which the latest completed order was placed.
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
