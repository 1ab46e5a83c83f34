/* gold
description: >
  Number of clicks per user in tumbling windows of five minutes. A click that is sent twice
  counts once. A late click counts in the window of its event time.
grain: [user_id, window_start]
owner: shop
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  window_start: Start of the five-minute window.
*/
SELECT
  c.user_id,
  WINDOW(c.event_time, '5 minutes').start AS window_start,
  COUNT(*) AS clicks
FROM silver.click_events AS c
GROUP BY c.user_id, WINDOW(c.event_time, '5 minutes')
