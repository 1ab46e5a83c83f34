-- gold.united: incremental: bronze.orders@0→@1; row deltas

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders_change AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- the rows to delete (-) from and insert (+) into gold.united@0
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT
  user_id,
  __sum AS __w
FROM (
  SELECT
    user_id,
    SUM(__w) AS __sum
  FROM (
    SELECT
      user_id__2 AS user_id,
      __w
    FROM (
      SELECT
        user_id__2 AS user_id__2,
        __w
      FROM (
        SELECT
          user_id AS user_id__2,
          __w
        FROM (
          SELECT
            user_id AS user_id,
            __w
          FROM __refresh_bronze_orders_change
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    user_id
) AS t
WHERE
  __sum <> 0;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- delete and insert: all copies of a row are deleted, the remaining inserted
-- MERGE INTO delta.`PROJECT/state/lake/gold/united` AS t
-- USING (
--   SELECT `user_id`, TRUE AS __leaves
--   FROM __refresh_result
--   WHERE __w < 0
--   UNION ALL
--   SELECT `user_id`, FALSE AS __leaves
--   FROM (
--     SELECT `user_id`, __w AS __copies
--     FROM __refresh_result
--     WHERE __w > 0
--     UNION ALL
--     SELECT r.`user_id`, COUNT(*) + r.__w AS __copies
--     FROM __refresh_result AS r
--     JOIN delta.`PROJECT/state/lake/gold/united` VERSION AS OF 0 AS p
--       ON p.`user_id` <=> r.`user_id`
--     WHERE r.__w < 0
--     GROUP BY r.`user_id`, r.__w
--   ) AS remaining
--   LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(__copies AS INT))) e AS __copy
-- ) AS s
-- ON s.__leaves
--   AND t.`user_id` <=> s.`user_id`
-- WHEN MATCHED THEN DELETE
-- WHEN NOT MATCHED AND NOT s.__leaves THEN INSERT (`user_id`)
--   VALUES (s.`user_id`);
