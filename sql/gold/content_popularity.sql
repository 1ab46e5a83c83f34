/* gold
description: >
  How often each title was watched per country, in windows of five minutes that begin every
  minute. An event counts in the five windows around its time, however late it arrives.
grain: [window_start, country, title_id]
owner: video
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [video]
columns:
  window_start: The window is the five minutes from here on.
  window_end: The first moment after the window.
  views: How many events lie in the window.
*/
SELECT
  WINDOW(v.event_time, '5 minutes', '1 minute').start AS window_start,
  WINDOW(v.event_time, '5 minutes', '1 minute').end AS window_end,
  v.country,
  v.title_id,
  COUNT(*) AS views
FROM silver.view_events AS v
GROUP BY WINDOW(v.event_time, '5 minutes', '1 minute'), v.country, v.title_id
