/* gold
description: >
  Clicks per user in windows of five minutes that do not overlap. A click that is sent twice counts
  once; a late one counts in its own window.
grain: [user_id, window_start]
owner: shop
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  window_start: The window is the five minutes from here on.
*/
SELECT
  c.user_id,
  WINDOW(c.event_time, '5 minutes').start AS window_start,
  COUNT(*) AS clicks
FROM silver.click_events AS c
GROUP BY c.user_id, WINDOW(c.event_time, '5 minutes')
