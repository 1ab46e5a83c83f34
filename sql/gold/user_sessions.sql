/* gold
description: >
  Sessions of each user: clicks less than ten minutes apart belong to the same session. A late
  click can merge two sessions into one.
grain: [user_id, session_start]
owner: shop
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  session_start: Time of the first click.
  session_end: Ten minutes after the last click.
  events: Number of clicks.
*/
SELECT
  c.user_id,
  SESSION_WINDOW(c.event_time, '10 minutes').start AS session_start,
  SESSION_WINDOW(c.event_time, '10 minutes').end AS session_end, -- ten minutes after its last click
  COUNT(*) AS events
FROM silver.click_events AS c
GROUP BY c.user_id, SESSION_WINDOW(c.event_time, '10 minutes')
