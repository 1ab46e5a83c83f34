/* gold
description: >
  Number of views per title and country in hopping windows of five minutes that start every
  minute. An event counts in the five windows that contain its time, even if it arrives late.
grain: [window_start, country, title_id]
owner: video
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [video]
columns:
  window_start: Start of the five-minute window.
  window_end: End of the window, exclusive.
  views: Number of events in the window.
*/
SELECT
  WINDOW(v.event_time, '5 minutes', '1 minute').start AS window_start,
  WINDOW(v.event_time, '5 minutes', '1 minute').end AS window_end,
  v.country,
  v.title_id,
  COUNT(*) AS views
FROM silver.view_events AS v
GROUP BY WINDOW(v.event_time, '5 minutes', '1 minute'), v.country, v.title_id
