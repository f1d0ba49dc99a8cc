-- The daemon's store. Its version is `kSchemaVersion` (server/store/schema_version.hpp), which grows with every change here or
-- in store_postgresql.sql: PRAGMA user_version of a file of SQLite has it, and table cubind_schema of a database of PostgreSQL,
-- where BLOB is spelled BYTEA, INTEGER BIGINT, and texts sort by their bytes.
--
-- A table of facts has the columns that a WHERE, an index or a fence asks for, then the fact: a message of schemas/facts.proto.
-- `fact_sha256` covers the bytes of the fact and the columns that statements select before it (server/store/fact_rows.hpp), so
-- that a changed bit in either is seen. Digests are blobs of 32 bytes; times of day are RFC 3339 in UTC; problems are JSON with
-- their names in declared order; enumerations are spelled out.

CREATE TABLE meta (
  only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
  store_id      BLOB NOT NULL CHECK (length(store_id) = 16),  -- redrawn on creation, rebuild and restore
  generation    INTEGER NOT NULL,                             -- grows with every change of `records`
  file_identity TEXT NOT NULL,                                -- inode: tells a restored copy from the original
  created_at    TEXT NOT NULL
) STRICT;

CREATE TABLE device_classes (
  digest       BLOB PRIMARY KEY CHECK (length(digest) = 32),
  fact         BLOB NOT NULL,
  fact_sha256  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Cubins by their own digest, apart from the keys: two artifact keys may compile to the same bytes.
CREATE TABLE blobs (
  cubin         BLOB PRIMARY KEY CHECK (length(cubin) = 32),
  cubin_bytes   INTEGER NOT NULL,
  zstd          BLOB NOT NULL,
  zstd_sha256   BLOB NOT NULL           -- checked on load: integrity_check does not see a flipped bit in a blob
) STRICT;

-- When cubins were last used, so that those that nothing needs make room. Apart from `blobs`: a change of a row there would
-- write its cubin again.
CREATE TABLE blob_uses (
  cubin         BLOB PRIMARY KEY CHECK (length(cubin) = 32),
  zstd_bytes    INTEGER NOT NULL,
  last_used_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_by_date ON blob_uses (last_used_at);

CREATE TABLE artifacts (
  key          BLOB PRIMARY KEY CHECK (length(key) = 32),
  cubin        BLOB NOT NULL CHECK (length(cubin) = 32),
  kernel       TEXT NOT NULL,
  toolchain    BLOB NOT NULL,  -- its three digests
  created_at   TEXT NOT NULL,
  fact         BLOB NOT NULL,
  fact_sha256  BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_cubin ON artifacts (cubin);
CREATE INDEX artifacts_by_kernel ON artifacts (kernel, toolchain);

-- One launch plan on one problem and device class. Origin 'import' is kept apart: it never stands in for a measurement. Work
-- is shared by content, never by a kernel's name: blocks and verifications belong to the key of a trial, which no kernel's
-- name is part of; how a trial ended belongs to the kernel that it ended for.
CREATE TABLE trials (
  key            BLOB NOT NULL CHECK (length(key) = 32),
  origin         TEXT NOT NULL CHECK (origin IN ('worker', 'import')),
  kernel         TEXT NOT NULL,
  source         BLOB,           -- equal for all kernels that may have trials in common; null: not known
  problem        TEXT NOT NULL,
  device_class   BLOB NOT NULL,
  policy         TEXT NOT NULL,
  driver_branch  TEXT NOT NULL,
  outcome        TEXT NOT NULL CHECK (outcome <> 'out_of_memory'),  -- never a property of the configuration
  artifact_key   BLOB,
  series         INTEGER NOT NULL,  -- a retune begins a new one
  fact           BLOB NOT NULL,
  fact_sha256    BLOB NOT NULL,
  PRIMARY KEY (key, origin, kernel)
) STRICT, WITHOUT ROWID;
CREATE INDEX trials_by_question ON trials (kernel, problem, device_class, policy, driver_branch, series);
CREATE INDEX trials_by_source ON trials (source, problem, device_class, policy, driver_branch) WHERE source IS NOT NULL;

CREATE TABLE blocks (
  trial        BLOB NOT NULL CHECK (length(trial) = 32),
  origin       TEXT NOT NULL,
  series       INTEGER NOT NULL,
  stage        INTEGER NOT NULL CHECK (stage IN (0, 1)),  -- screen, final
  position     INTEGER NOT NULL,
  job          TEXT NOT NULL,
  fact         BLOB NOT NULL,
  fact_sha256  BLOB NOT NULL,
  PRIMARY KEY (trial, origin, series, stage, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE verifications (
  trial                BLOB NOT NULL CHECK (length(trial) = 32),
  origin               TEXT NOT NULL,
  series               INTEGER NOT NULL,
  verification_digest  BLOB NOT NULL,  -- of reference and tolerance
  problem              TEXT NOT NULL,
  after_timing         INTEGER NOT NULL,
  outcome              TEXT NOT NULL,
  fact                 BLOB NOT NULL,
  fact_sha256          BLOB NOT NULL,
  PRIMARY KEY (trial, origin, series, verification_digest, problem, after_timing)
) STRICT, WITHOUT ROWID;

-- Winners. Append-only but for comparisons with libraries, which clients report later: a row that is replaced gets its
-- `to_generation`.
CREATE TABLE records (
  id               INTEGER PRIMARY KEY,
  key              BLOB NOT NULL CHECK (length(key) = 32),
  kernel           TEXT NOT NULL,
  problem          TEXT NOT NULL,
  device_class     BLOB NOT NULL REFERENCES device_classes (digest),
  policy           TEXT NOT NULL,
  from_generation  INTEGER NOT NULL,
  to_generation    INTEGER,        -- null: current
  trial            BLOB NOT NULL,
  cubin            BLOB NOT NULL,
  toolchain_major  INTEGER NOT NULL,
  driver_branch    TEXT NOT NULL,
  evidence         TEXT NOT NULL,
  provisional      INTEGER NOT NULL,
  job              TEXT NOT NULL,
  fact             BLOB NOT NULL,
  fact_sha256      BLOB NOT NULL
) STRICT;
-- One current row per driver branch, toolchain major and kind of evidence: none overwrites another.
CREATE UNIQUE INDEX records_current ON records (key, driver_branch, toolchain_major, evidence, provisional)
  WHERE to_generation IS NULL;
CREATE INDEX records_by_kernel ON records (kernel, device_class);

CREATE TABLE jobs (
  id            TEXT PRIMARY KEY,
  kind          TEXT NOT NULL,
  key           BLOB NOT NULL,
  kernel        TEXT NOT NULL,
  problem       TEXT NOT NULL,
  device_class  BLOB NOT NULL,
  policy        TEXT NOT NULL,
  state         TEXT NOT NULL,
  ended         INTEGER NOT NULL,
  fence         INTEGER NOT NULL,
  series        INTEGER NOT NULL,
  created_at    TEXT NOT NULL,
  finished_at   TEXT NOT NULL,
  needs_bytes   INTEGER NOT NULL,
  fact          BLOB NOT NULL,
  fact_sha256   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_single_flight ON jobs (key) WHERE ended = 0;
CREATE INDEX jobs_by_key ON jobs (key);
CREATE INDEX jobs_out_of_memory ON jobs (key) WHERE needs_bytes > 0;
CREATE INDEX jobs_by_question ON jobs (kernel, problem, device_class, policy, series);
CREATE INDEX jobs_by_age ON jobs (created_at, id);

-- Misses that started no job.
CREATE TABLE wants (
  key          BLOB PRIMARY KEY CHECK (length(key) = 32),
  count        INTEGER NOT NULL,
  last_at      TEXT NOT NULL,
  fact         BLOB NOT NULL,
  fact_sha256  BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX wants_by_rank ON wants (count, last_at, key);

-- The generation that a training job pinned, so that all of its ranks get the same answers.
CREATE TABLE pins (
  job           TEXT PRIMARY KEY,
  generation    INTEGER NOT NULL,
  created_at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: the work that answers have spared their callers. Daemons add to it.
CREATE TABLE savings (
  only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
  since       TEXT NOT NULL,
  answers     INTEGER NOT NULL,
  timed       INTEGER NOT NULL,
  compile_ms  INTEGER NOT NULL,
  tuning_ms   INTEGER NOT NULL
) STRICT;

-- Empty but for a moment: what is written and removed again to find out whether a full disk has room.
CREATE TABLE ballast (
  id     INTEGER PRIMARY KEY,
  bytes  BLOB NOT NULL
) STRICT;
