/* gold
description: >
  Revenue per user over all active orders, for look-ups by user. A user is removed when their
  last order is deleted. The cast raises an error above 9,999,999,999.99; it never wraps.
owner: shop
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  total_revenue: Total amount of the active orders of the user.
*/
SELECT
  a.user_id,
  CAST(SUM(a.amount) AS DECIMAL(12, 2)) AS total_revenue
FROM gold.active_orders AS a
GROUP BY ALL
