/* silver
description: Clicks, one row per event however often it was sent.
owner: shop
tags: [shop]
*/
SELECT
  s.event_id,
  s.user_id,
  s.page,
  s.element,
  s.event_time
FROM bronze.click_events AS s
