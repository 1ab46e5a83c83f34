/* silver
description: The shop's products as they are now.
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
