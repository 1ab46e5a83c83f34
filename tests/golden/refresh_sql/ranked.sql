-- gold.ranked: incremental: bronze.orders@0→@1; affected-group recompute

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
      order_id AS order_id,
      user_id AS user_id,
      amount AS amount,
      __w
    FROM __refresh_bronze_orders_change
  ) AS t
  GROUP BY
    order_id,
    user_id,
    amount
) AS t
WHERE
  __sum <> 0;

-- the groups that the change touches
CREATE OR REPLACE TEMPORARY VIEW __refresh_groups_2 AS
SELECT DISTINCT
  user_id AS k0
FROM __refresh_change_1;

-- the rows to delete (-) from and insert (+) into gold.ranked@0
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT
  order_id,
  place,
  __sum AS __w
FROM (
  SELECT
    order_id,
    place,
    SUM(__w) AS __sum
  FROM (
    SELECT
      order_id__2 AS order_id,
      place AS place,
      __w
    FROM (
      SELECT
        order_id AS order_id__2,
        rank AS place,
        __w
      FROM (
        SELECT
          order_id,
          user_id,
          amount,
          rank,
          1 AS __w
        FROM (
          SELECT
            order_id,
            user_id,
            amount,
            RANK() OVER (PARTITION BY user_id ORDER BY amount) AS rank
          FROM (
            SELECT
              __t.order_id,
              __t.user_id,
              __t.amount
            FROM (
              SELECT
                order_id AS order_id,
                user_id AS user_id,
                amount AS amount
              FROM delta.`PROJECT/data/orders` VERSION AS OF 1
            ) AS __t
            LEFT SEMI JOIN __refresh_groups_2 AS __k
              ON __t.user_id IS NOT DISTINCT FROM __k.k0
          ) AS t
        ) AS t
        UNION ALL
        SELECT
          order_id,
          user_id,
          amount,
          rank,
          -1 AS __w
        FROM (
          SELECT
            order_id,
            user_id,
            amount,
            RANK() OVER (PARTITION BY user_id ORDER BY amount) AS rank
          FROM (
            SELECT
              __t.order_id,
              __t.user_id,
              __t.amount
            FROM (
              SELECT
                order_id AS order_id,
                user_id AS user_id,
                amount AS amount
              FROM delta.`PROJECT/data/orders` VERSION AS OF 0
            ) AS __t
            LEFT SEMI JOIN __refresh_groups_2 AS __k
              ON __t.user_id IS NOT DISTINCT FROM __k.k0
          ) AS t
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    order_id,
    place
) AS t
WHERE
  __sum <> 0;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- delete and insert: all copies of a row are deleted, the remaining inserted
-- MERGE INTO delta.`PROJECT/state/lake/gold/ranked` AS t
-- USING (
--   SELECT `order_id`, `place`, TRUE AS __leaves
--   FROM __refresh_result
--   WHERE __w < 0
--   UNION ALL
--   SELECT `order_id`, `place`, FALSE AS __leaves
--   FROM (
--     SELECT `order_id`, `place`, __w AS __copies
--     FROM __refresh_result
--     WHERE __w > 0
--     UNION ALL
--     SELECT r.`order_id`, r.`place`, COUNT(*) + r.__w AS __copies
--     FROM __refresh_result AS r
--     JOIN delta.`PROJECT/state/lake/gold/ranked` VERSION AS OF 0 AS p
--       ON p.`order_id` <=> r.`order_id` AND p.`place` <=> r.`place`
--     WHERE r.__w < 0
--     GROUP BY r.`order_id`, r.`place`, r.__w
--   ) AS remaining
--   LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(__copies AS INT))) e AS __copy
-- ) AS s
-- ON s.__leaves
--   AND t.`order_id` <=> s.`order_id`
--   AND t.`place` <=> s.`place`
-- WHEN MATCHED THEN DELETE
-- WHEN NOT MATCHED AND NOT s.__leaves THEN INSERT (`order_id`, `place`)
--   VALUES (s.`order_id`, s.`place`);
