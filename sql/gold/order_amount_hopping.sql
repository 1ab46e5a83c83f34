/* gold
description: >
  Number and average amount of orders in hopping windows of one hour that start every 15
  minutes. An order counts in the four windows that contain the time at which it was placed.
grain: [window_start]
owner: analytics
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  window_start: Start of the one-hour window.
  window_end: End of the window, exclusive.
  avg_amount: Average amount, rounded to two decimal places.
*/
SELECT
  WINDOW(o.created_at, '1 hour', '15 minutes').start AS window_start,
  WINDOW(o.created_at, '1 hour', '15 minutes').end AS window_end,
  CAST(AVG(o.amount) AS DECIMAL(12, 2)) AS avg_amount,
  COUNT(*) AS orders
FROM silver.orders AS o
GROUP BY WINDOW(o.created_at, '1 hour', '15 minutes')
