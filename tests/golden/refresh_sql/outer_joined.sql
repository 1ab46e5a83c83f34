-- gold.outer_joined: incremental: bronze.orders@0→@1; affected-group recompute

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders_change AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- what changed below the next operator, without what cancels out
CREATE OR REPLACE TEMPORARY VIEW __refresh_change_1 AS
SELECT
  amount,
  user_id__2,
  __sum AS __w
FROM (
  SELECT
    amount,
    user_id__2,
    SUM(__w) AS __sum
  FROM (
    SELECT
      amount AS amount,
      user_id AS user_id__2,
      __w
    FROM __refresh_bronze_orders_change
  ) AS t
  GROUP BY
    amount,
    user_id__2
) AS t
WHERE
  __sum <> 0;

-- rows of a join's left side that changes of its right side touch
CREATE OR REPLACE TEMPORARY VIEW __refresh_touched_2 AS
SELECT
  l.user_id,
  1 AS __w
FROM (
  SELECT
    user_id AS user_id
  FROM delta.`PROJECT/data/users` VERSION AS OF 0
) AS l
LEFT SEMI JOIN __refresh_change_1 AS r
  ON user_id = user_id__2;

-- the rows to delete (-) from and insert (+) into gold.outer_joined@0
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT
  user_id,
  amount,
  __sum AS __w
FROM (
  SELECT
    user_id,
    amount,
    SUM(__w) AS __sum
  FROM (
    SELECT
      user_id__3 AS user_id,
      amount__2 AS amount,
      __w
    FROM (
      SELECT
        user_id AS user_id__3,
        amount AS amount__2,
        __w
      FROM (
        SELECT
          user_id,
          amount,
          user_id__2,
          __w
        FROM (
          SELECT
            user_id,
            __w
          FROM __refresh_touched_2
        ) AS l
        LEFT JOIN (
          SELECT
            __t.amount,
            __t.user_id__2
          FROM (
            SELECT
              amount AS amount,
              user_id AS user_id__2
            FROM delta.`PROJECT/data/orders` VERSION AS OF 1
          ) AS __t
          LEFT SEMI JOIN __refresh_touched_2 AS __k
            ON __t.user_id__2 IS NOT DISTINCT FROM __k.user_id
        ) AS r
          ON user_id = user_id__2
        UNION ALL
        SELECT
          user_id,
          amount,
          user_id__2,
          -__w AS __w
        FROM (
          SELECT
            user_id,
            amount,
            user_id__2,
            __w
          FROM (
            SELECT
              user_id,
              __w
            FROM __refresh_touched_2
          ) AS l
          LEFT JOIN (
            SELECT
              __t.amount,
              __t.user_id__2
            FROM (
              SELECT
                amount AS amount,
                user_id AS user_id__2
              FROM delta.`PROJECT/data/orders` VERSION AS OF 0
            ) AS __t
            LEFT SEMI JOIN __refresh_touched_2 AS __k
              ON __t.user_id__2 IS NOT DISTINCT FROM __k.user_id
          ) AS r
            ON user_id = user_id__2
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    user_id,
    amount
) AS t
WHERE
  __sum <> 0;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- delete and insert: all copies of a row are deleted, the remaining inserted
-- MERGE INTO delta.`PROJECT/state/lake/gold/outer_joined` AS t
-- USING (
--   SELECT `user_id`, `amount`, TRUE AS __leaves
--   FROM __refresh_result
--   WHERE __w < 0
--   UNION ALL
--   SELECT `user_id`, `amount`, FALSE AS __leaves
--   FROM (
--     SELECT `user_id`, `amount`, __w AS __copies
--     FROM __refresh_result
--     WHERE __w > 0
--     UNION ALL
--     SELECT r.`user_id`, r.`amount`, COUNT(*) + r.__w AS __copies
--     FROM __refresh_result AS r
--     JOIN delta.`PROJECT/state/lake/gold/outer_joined` VERSION AS OF 0 AS p
--       ON p.`user_id` <=> r.`user_id` AND p.`amount` <=> r.`amount`
--     WHERE r.__w < 0
--     GROUP BY r.`user_id`, r.`amount`, r.__w
--   ) AS remaining
--   LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(__copies AS INT))) e AS __copy
-- ) AS s
-- ON s.__leaves
--   AND t.`user_id` <=> s.`user_id`
--   AND t.`amount` <=> s.`amount`
-- WHEN MATCHED THEN DELETE
-- WHEN NOT MATCHED AND NOT s.__leaves THEN INSERT (`user_id`, `amount`)
--   VALUES (s.`user_id`, s.`amount`);
