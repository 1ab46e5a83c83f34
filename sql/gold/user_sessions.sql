/* gold
description: >
  Sessions of each user: clicks less than ten minutes apart belong together. A late click can make
  one session out of two.
grain: [user_id, session_start]
owner: shop
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  session_start: The first click.
  session_end: Ten minutes after the last click.
  events: How many clicks there were.
*/
SELECT
  c.user_id,
  SESSION_WINDOW(c.event_time, '10 minutes').start AS session_start,
  SESSION_WINDOW(c.event_time, '10 minutes').end AS session_end, -- ten minutes after its last click
  COUNT(*) AS events
FROM silver.click_events AS c
GROUP BY c.user_id, SESSION_WINDOW(c.event_time, '10 minutes')
