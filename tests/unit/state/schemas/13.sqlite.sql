CREATE TABLE asset_cursors (
  "view" VARCHAR(80) NOT NULL,
  table_id VARCHAR(80) NOT NULL,
  version BIGINT NOT NULL,
  at DATETIME NOT NULL,
  error TEXT,
  waits_since DATETIME,
  PRIMARY KEY ("view")
);

CREATE TABLE attempts (
  attempt_id VARCHAR(250) NOT NULL,
  "view" VARCHAR(80) NOT NULL,
  tick VARCHAR(250) NOT NULL,
  status VARCHAR(20) NOT NULL,
  decision VARCHAR(20),
  rule VARCHAR(40),
  reason_code VARCHAR(80),
  reason TEXT,
  sequence BIGINT,
  epoch BIGINT NOT NULL,
  fingerprint VARCHAR(128),
  vector JSON,
  scope JSON,
  estimate JSON,
  actual JSON,
  verdict JSON,
  published_version BIGINT,
  started_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL,
  error TEXT,
  asked_by VARCHAR(250),
  PRIMARY KEY (attempt_id),
  CONSTRAINT attempts_sequence UNIQUE ("view", epoch, sequence)
);

CREATE INDEX attempts_by_tick ON attempts (tick);

CREATE INDEX attempts_by_view ON attempts ("view", started_at);

CREATE TABLE deployments (
  deployment_id VARCHAR(80) NOT NULL,
  number BIGINT NOT NULL,
  status VARCHAR(20) NOT NULL,
  in_force INTEGER NOT NULL,
  who VARCHAR(250) NOT NULL,
  manifest TEXT NOT NULL,
  settings JSON NOT NULL,
  "plan" JSON NOT NULL,
  steps JSON NOT NULL,
  kept JSON NOT NULL,
  error TEXT,
  started_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL,
  PRIMARY KEY (deployment_id),
  CONSTRAINT deployments_number UNIQUE (number)
);

CREATE TABLE environments (
  name VARCHAR(40) NOT NULL,
  status VARCHAR(20) NOT NULL,
  base VARCHAR(80) NOT NULL,
  who VARCHAR(250) NOT NULL,
  manifest TEXT NOT NULL,
  views JSON NOT NULL,
  pins JSON NOT NULL,
  marked JSON NOT NULL,
  deployment VARCHAR(80),
  created_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE epochs (
  table_name VARCHAR(80) NOT NULL,
  epoch BIGINT NOT NULL,
  reason TEXT NOT NULL,
  bumped_at DATETIME NOT NULL,
  PRIMARY KEY (table_name)
);

CREATE TABLE frontiers (
  "database" VARCHAR(250) NOT NULL,
  position BIGINT NOT NULL,
  table_name VARCHAR(80) NOT NULL,
  table_id VARCHAR(80) NOT NULL,
  version BIGINT NOT NULL,
  at DATETIME NOT NULL,
  PRIMARY KEY ("database", position, table_name)
);

CREATE TABLE incidents (
  incident_id VARCHAR(32) NOT NULL,
  dag_id VARCHAR(250) NOT NULL,
  task_id VARCHAR(250) NOT NULL,
  fault VARCHAR(32) NOT NULL,
  "table" VARCHAR(120),
  condition VARCHAR(120) NOT NULL,
  message TEXT NOT NULL,
  runbook TEXT NOT NULL,
  opened_at DATETIME NOT NULL,
  last_at DATETIME NOT NULL,
  times INTEGER NOT NULL,
  told_at DATETIME NOT NULL,
  resolved_at DATETIME,
  PRIMARY KEY (incident_id)
);

CREATE TABLE leases (
  resource VARCHAR(250) NOT NULL,
  owner VARCHAR(250),
  fencing BIGINT NOT NULL,
  acquired_at DATETIME NOT NULL,
  expires_at DATETIME NOT NULL,
  PRIMARY KEY (resource)
);

CREATE TABLE pinned_views (
  "view" VARCHAR(80) NOT NULL,
  version BIGINT NOT NULL,
  who VARCHAR(250) NOT NULL,
  reason TEXT NOT NULL,
  replay_id VARCHAR(250) NOT NULL,
  since DATETIME NOT NULL,
  PRIMARY KEY ("view")
);

CREATE TABLE replay_views (
  replay_id VARCHAR(250) NOT NULL,
  "view" VARCHAR(80) NOT NULL,
  position INTEGER NOT NULL,
  status VARCHAR(20) NOT NULL,
  attempt_id VARCHAR(250),
  before_version BIGINT,
  published_version BIGINT,
  difference JSON,
  error TEXT,
  updated_at DATETIME NOT NULL,
  PRIMARY KEY (replay_id, "view")
);

CREATE TABLE replays (
  replay_id VARCHAR(250) NOT NULL,
  kind VARCHAR(20) NOT NULL,
  status VARCHAR(20) NOT NULL,
  who VARCHAR(250) NOT NULL,
  reason TEXT NOT NULL,
  ticket VARCHAR(80),
  request JSON NOT NULL,
  "plan" JSON NOT NULL,
  error TEXT,
  started_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL,
  decisions JSON,
  PRIMARY KEY (replay_id)
);

CREATE INDEX replays_by_start ON replays (started_at);

CREATE TABLE schema_drift (
  source VARCHAR(80) NOT NULL,
  kind VARCHAR(20) NOT NULL,
  "column" VARCHAR(250) NOT NULL,
  told VARCHAR(80) NOT NULL,
  detail TEXT NOT NULL,
  declared TEXT NOT NULL,
  topic VARCHAR(250) NOT NULL,
  partition INTEGER NOT NULL,
  "offset" BIGINT NOT NULL,
  sequence VARCHAR(120) NOT NULL,
  seen_at DATETIME NOT NULL,
  accepted_by VARCHAR(250),
  accepted_at DATETIME,
  reason TEXT,
  PRIMARY KEY (source, kind, "column", told)
);

CREATE TABLE silver_batches (
  silver VARCHAR(80) NOT NULL,
  epoch BIGINT NOT NULL,
  batch_id BIGINT NOT NULL,
  records BIGINT NOT NULL,
  applied BIGINT NOT NULL,
  superseded BIGINT NOT NULL,
  quarantined BIGINT NOT NULL,
  duplicate BIGINT NOT NULL,
  ignored BIGINT NOT NULL,
  first_bronze_version BIGINT,
  last_bronze_version BIGINT,
  at DATETIME NOT NULL,
  outcome VARCHAR(20),
  verdict JSON,
  PRIMARY KEY (silver, epoch, batch_id)
);

CREATE TABLE source_columns (
  source VARCHAR(80) NOT NULL,
  "column" VARCHAR(250) NOT NULL,
  kind VARCHAR(20) NOT NULL,
  sequence VARCHAR(120) NOT NULL,
  PRIMARY KEY (source, "column")
);

CREATE TABLE stream_progress (
  "query" VARCHAR(120) NOT NULL,
  batch_id BIGINT NOT NULL,
  records BIGINT NOT NULL,
  end_offsets JSON,
  at DATETIME NOT NULL,
  heartbeat_at DATETIME NOT NULL,
  state VARCHAR(20) NOT NULL,
  lag_records BIGINT,
  error TEXT,
  deployment BIGINT,
  PRIMARY KEY ("query")
);

CREATE TABLE ticks (
  tick VARCHAR(250) NOT NULL,
  table_name VARCHAR(80) NOT NULL,
  table_id VARCHAR(80) NOT NULL,
  version BIGINT NOT NULL,
  pinned_at DATETIME NOT NULL,
  PRIMARY KEY (tick, table_name)
);

CREATE TABLE tidemark_schema (
  id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  migrated_at DATETIME NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE verifications (
  verification_id VARCHAR(40) NOT NULL,
  "view" VARCHAR(80) NOT NULL,
  version BIGINT NOT NULL,
  finding VARCHAR(40) NOT NULL,
  detail TEXT NOT NULL,
  vector JSON NOT NULL,
  rows BIGINT,
  missing BIGINT NOT NULL,
  unexpected BIGINT NOT NULL,
  largest_difference DOUBLE,
  sample JSON,
  seconds DOUBLE NOT NULL,
  at DATETIME NOT NULL,
  PRIMARY KEY (verification_id)
);

CREATE INDEX verifications_by_view ON verifications ("view", at);

