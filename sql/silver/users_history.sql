/* silver
description: History of the shop's users, one row for each period of validity.
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
