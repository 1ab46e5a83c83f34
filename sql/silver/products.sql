/* silver
description: Products of the shop in their current state.
owner: shop
tags: [shop]
*/
SELECT
  s.product_id,
  s.name,
  s.category,
  s.price,
  s.updated_at
FROM bronze.products AS s
