/* silver
description: Views of titles, one row per event, even if it was sent more than once.
owner: video
tags: [video]
*/
SELECT
  s.event_id,
  s.user_id,
  s.title_id,
  s.country,
  s.watch_seconds,
  s.event_time
FROM bronze.view_events AS s
