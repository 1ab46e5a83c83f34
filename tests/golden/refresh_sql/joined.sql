-- gold.joined: incremental: bronze.orders@0→@1; row deltas

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders_change AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- what changed below the next operator, without what cancels out
CREATE OR REPLACE TEMPORARY VIEW __refresh_change_1 AS
SELECT
  order_id,
  user_id,
  amount,
  __sum AS __w
FROM (
  SELECT
    order_id,
    user_id,
    amount,
    SUM(__w) AS __sum
  FROM (
    SELECT
      order_id,
      user_id,
      amount,
      __w
    FROM (
      SELECT
        order_id AS order_id,
        user_id AS user_id,
        amount AS amount,
        __w
      FROM __refresh_bronze_orders_change
    ) AS t
    WHERE
      amount > 5
  ) AS t
  GROUP BY
    order_id,
    user_id,
    amount
) AS t
WHERE
  __sum <> 0;

-- the rows to delete (-) from and insert (+) into gold.joined@0
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT
  order_id,
  segment,
  __sum AS __w
FROM (
  SELECT
    order_id,
    segment,
    SUM(__w) AS __sum
  FROM (
    SELECT
      order_id__2 AS order_id,
      segment__2 AS segment,
      __w
    FROM (
      SELECT
        order_id AS order_id__2,
        segment AS segment__2,
        __w
      FROM (
        SELECT
          order_id,
          user_id,
          amount,
          segment,
          user_id__2,
          __w
        FROM (
          SELECT
            order_id,
            user_id,
            amount,
            __w,
            segment,
            user_id__2
          FROM (
            SELECT
              order_id,
              user_id,
              amount,
              __w
            FROM __refresh_change_1
          ) AS t1
          INNER JOIN (
            SELECT
              segment AS segment,
              user_id AS user_id__2
            FROM delta.`PROJECT/data/users` VERSION AS OF 0
          ) AS t2
            ON user_id__2 = user_id
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    order_id,
    segment
) AS t
WHERE
  __sum <> 0;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- delete and insert: all copies of a row are deleted, the remaining inserted
-- MERGE INTO delta.`PROJECT/state/lake/gold/joined` AS t
-- USING (
--   SELECT `order_id`, `segment`, TRUE AS __leaves
--   FROM __refresh_result
--   WHERE __w < 0
--   UNION ALL
--   SELECT `order_id`, `segment`, FALSE AS __leaves
--   FROM (
--     SELECT `order_id`, `segment`, __w AS __copies
--     FROM __refresh_result
--     WHERE __w > 0
--     UNION ALL
--     SELECT r.`order_id`, r.`segment`, COUNT(*) + r.__w AS __copies
--     FROM __refresh_result AS r
--     JOIN delta.`PROJECT/state/lake/gold/joined` VERSION AS OF 0 AS p
--       ON p.`order_id` <=> r.`order_id` AND p.`segment` <=> r.`segment`
--     WHERE r.__w < 0
--     GROUP BY r.`order_id`, r.`segment`, r.__w
--   ) AS remaining
--   LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(__copies AS INT))) e AS __copy
-- ) AS s
-- ON s.__leaves
--   AND t.`order_id` <=> s.`order_id`
--   AND t.`segment` <=> s.`segment`
-- WHEN MATCHED THEN DELETE
-- WHEN NOT MATCHED AND NOT s.__leaves THEN INSERT (`order_id`, `segment`)
--   VALUES (s.`order_id`, s.`segment`);
