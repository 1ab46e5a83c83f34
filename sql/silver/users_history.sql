/* silver
description: What the shop's users were and when, one row for each span of time.
owner: shop
tags: [shop]
stored_as_scd_type: 2
*/
SELECT
  s.user_id,
  s.name,
  s.country,
  s.segment,
  s.tier
FROM bronze.users AS s
