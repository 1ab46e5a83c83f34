/* gold
description: >
  Number of orders and revenue per day (UTC) and user segment. Cancelled orders do not count.
  When an order is corrected or cancelled later, only the rows of its own day change. The cast
  of revenue raises an error above 9,999,999,999.99; it never wraps.
owner: analytics
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
verify: 1 day
tags: [shop]
columns:
  order_date: Day on which the order was placed, in UTC.
  user_segment: Current segment of the user, not the segment on that day.
  revenue: Total amount of the orders, without cancelled ones.
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
