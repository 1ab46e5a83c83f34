/* gold
description: >
  Views, watch time and viewers per day (UTC), title and country. A late event changes the rows
  of the day on which it happened.
owner: video
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [video]
columns:
  day: Day of the event time, in UTC.
  views: Number of events.
  watch_seconds: Total seconds watched.
  viewers: Number of distinct users.
*/
SELECT
  CAST(v.event_time AS DATE) AS day,
  v.title_id,
  v.country,
  COUNT(*) AS views,
  SUM(v.watch_seconds) AS watch_seconds,
  COUNT(DISTINCT v.user_id) AS viewers
FROM silver.view_events AS v
GROUP BY ALL
