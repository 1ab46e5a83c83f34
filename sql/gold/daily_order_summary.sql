/* gold
description: >
  Orders and revenue per day (UTC) and user segment. Cancelled orders do not count, so an order
  that is corrected or cancelled later changes its own day only. The cast of revenue raises an
  error above 9,999,999,999.99; it never wraps.
owner: analytics
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
verify: 1 day
tags: [shop]
columns:
  order_date: The day on which the customer ordered, in UTC.
  user_segment: The segment that the order's user has now, not on that day.
  revenue: What the orders come to, without those that are cancelled.
*/
SELECT
  CAST(o.created_at AS DATE) AS order_date, -- the day on which the customer ordered
  u.segment AS user_segment, -- as it is now, not as it was on that day
  COUNT(*) AS orders,
  CAST(SUM(o.amount) AS DECIMAL(12, 2)) AS revenue
FROM silver.orders AS o
JOIN silver.users AS u ON u.user_id = o.user_id
WHERE o.status <> 'cancelled'
GROUP BY ALL
