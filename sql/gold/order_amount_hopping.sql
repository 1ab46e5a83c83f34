/* gold
description: >
  Orders and their mean amount in windows of one hour that begin every quarter of an hour. An
  order counts in the four windows around the time at which it was placed.
grain: [window_start]
owner: analytics
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  window_start: The window is the hour from here on.
  window_end: The first moment after the window.
  avg_amount: The mean, rounded to two places.
*/
SELECT
  WINDOW(o.created_at, '1 hour', '15 minutes').start AS window_start,
  WINDOW(o.created_at, '1 hour', '15 minutes').end AS window_end,
  CAST(AVG(o.amount) AS DECIMAL(12, 2)) AS avg_amount,
  COUNT(*) AS orders
FROM silver.orders AS o
GROUP BY WINDOW(o.created_at, '1 hour', '15 minutes')
