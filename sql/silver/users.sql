/* silver
description: Users of the shop in their current state.
owner: shop
tags: [shop]
*/
SELECT
  s.user_id,
  s.name,
  s.email,
  s.country,
  s.segment,
  s.tier,
  s.signed_up_at,
  s.updated_at
FROM bronze.users AS s
