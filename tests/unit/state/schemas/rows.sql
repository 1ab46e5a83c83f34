INSERT INTO attempts (
  attempt_id, view, tick, status, decision, reason_code, reason, sequence, epoch, fingerprint,
  vector, verdict, published_version, started_at, updated_at
) VALUES (
  'a1', 'daily', '2024-05-02T12:30', 'published', 'full', 'FIRST_BUILD', 'no published version',
  7, 2, 'abc', '{"silver.orders": {"table_id": "x", "version": 3}}', '{"passed": true}', 12,
  '2024-05-02 12:30:15.123456', '2024-05-02 12:31:00.000000'
);
INSERT INTO ticks (tick, table_name, table_id, version, pinned_at)
VALUES ('2024-05-02T12:30', 'silver.orders', 'x', 3, '2024-05-02 12:30:15.000000');
INSERT INTO leases (resource, owner, fencing, acquired_at, expires_at)
VALUES ('gold.daily', NULL, 41, '2024-05-02 12:30:15.000000', '2024-05-02 12:31:15.000000');
INSERT INTO epochs (table_name, epoch, reason, bumped_at)
VALUES ('gold.daily', 2, 'rolled back', '2024-05-02 12:00:00.000000');
INSERT INTO silver_batches (
  silver, epoch, batch_id, records, applied, superseded, quarantined, duplicate, ignored,
  first_bronze_version, last_bronze_version, at
) VALUES ('orders', 1, 5, 10, 7, 1, 1, 1, 0, 4, 6, '2024-05-02 12:30:15.000000');
INSERT INTO stream_progress (
  query, batch_id, records, end_offsets, at, heartbeat_at, state, lag_records, error
) VALUES (
  'bronze.orders', 5, 10, '{"orders": {"0": 99}}', '2024-05-02 12:30:15.000000',
  '2024-05-02 12:30:18.000000', 'running', 0, NULL
);
