/* gold
description: >
  Orders that exist at the source, in any status. Orders deleted at the source are removed.
owner: shop
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
*/
SELECT
  o.order_id,
  o.user_id,
  o.amount,
  o.created_at
FROM silver.orders AS o
