/* gold
description: >
  Views, watch time and viewers per week (starting on Monday, UTC), title and country; refreshed
  on demand. The viewers of the days cannot be summed, because a user who watches on two days of
  a week counts once.
partition_by: week
owner: video
refresh: bulk
freshness: 8 days
tags: [video]
columns:
  week: Monday of the week of the event time, in UTC.
  views: Number of events.
  watch_seconds: Total seconds watched.
  viewers: Number of distinct users in the week.
*/
SELECT
  CAST(DATE_TRUNC('WEEK', v.event_time) AS DATE) AS week,
  v.title_id,
  v.country,
  COUNT(*) AS views,
  SUM(v.watch_seconds) AS watch_seconds,
  COUNT(DISTINCT v.user_id) AS viewers
FROM silver.view_events AS v
GROUP BY ALL
