/* silver
description: The video catalogue in its current state; titles that are taken down are removed.
owner: video
tags: [video]
*/
SELECT
  s.title_id,
  s.name,
  s.kind,
  s.genre,
  s.duration_seconds,
  s.updated_at
FROM bronze.titles AS s
