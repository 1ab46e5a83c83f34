/* gold
description: >
  Revenue per user over all active orders, for look-ups by user. A user whose last order is
  deleted leaves. The cast raises an error above 9,999,999,999.99; it never wraps.
owner: shop
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  total_revenue: What all active orders of the user come to.
*/
SELECT
  a.user_id,
  CAST(SUM(a.amount) AS DECIMAL(12, 2)) AS total_revenue
FROM gold.active_orders AS a
GROUP BY ALL
