-- The daemon's store in a file of SQLite. Its version is `kSchemaVersion` (server/store/schema_version.hpp), which grows with
-- every change here or in store_postgresql.sql; PRAGMA user_version of the file has it.
--
-- Conventions: digests are blobs of 32 bytes; times of day are RFC 3339 in UTC; problems, configurations and other lists are
-- JSON with their names in declared order; enumerations are spelled out, so that the file can be read without cubind. `sum`
-- is the SHA-256 of the row's own columns (`row_sum` in server/store/sqlite/database.cpp).

CREATE TABLE meta (
  only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
  store_id      BLOB NOT NULL CHECK (length(store_id) = 16),  -- redrawn on creation, rebuild and restore
  generation    INTEGER NOT NULL,                             -- grows with every change of `records`
  file_identity TEXT NOT NULL,                                -- inode: tells a restored copy from the original
  created_at    TEXT NOT NULL
) STRICT;

CREATE TABLE device_classes (
  digest      BLOB PRIMARY KEY CHECK (length(digest) = 32),
  full_key    BLOB NOT NULL,   -- compared on read
  label       TEXT NOT NULL,   -- never a key
  facts       TEXT NOT NULL,
  first_seen  TEXT NOT NULL,
  sum         BLOB
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
  key              BLOB PRIMARY KEY CHECK (length(key) = 32),
  full_key         BLOB NOT NULL,       -- compared on read
  cubin            BLOB NOT NULL CHECK (length(cubin) = 32),
  kernel           TEXT NOT NULL,
  architecture     TEXT NOT NULL,
  cubin_bytes      INTEGER NOT NULL,
  entries          TEXT NOT NULL,
  entry_symbols    TEXT NOT NULL,
  resources        TEXT NOT NULL,       -- per entry: registers, shared and local memory, spills, tensor cores
  toolchain_name   TEXT NOT NULL,
  nvrtc            BLOB NOT NULL,
  builtins         BLOB NOT NULL,
  headers          BLOB NOT NULL,
  compile_ms       REAL NOT NULL,
  created_at       TEXT NOT NULL,
  sum              BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_cubin ON artifacts (cubin);
CREATE INDEX artifacts_by_kernel ON artifacts (kernel, nvrtc, builtins, headers);

-- One launch plan on one problem and device class. Origin 'import' is kept apart: it never stands in for a measurement. Work
-- is shared by content, never by a kernel's name: blocks and verifications belong to the key of a trial, which no kernel's
-- name is part of; how a trial ended belongs to the kernel that it ended for.
CREATE TABLE trials (
  key             BLOB NOT NULL CHECK (length(key) = 32),
  full_key        BLOB NOT NULL,        -- compared on read; empty for imports
  origin          TEXT NOT NULL CHECK (origin IN ('worker', 'import')),
  artifact_key    BLOB,
  kernel          TEXT NOT NULL,
  source          BLOB,                 -- equal for all kernels that may have trials in common; null: not known
  problem         TEXT NOT NULL,
  configuration   TEXT NOT NULL,
  device_class    BLOB NOT NULL,
  policy          TEXT NOT NULL,
  driver_branch   TEXT NOT NULL,
  driver_cuda     INTEGER NOT NULL,
  driver_version  TEXT NOT NULL,
  outcome         TEXT NOT NULL CHECK (outcome <> 'out_of_memory'),  -- never a property of the configuration
  detail          TEXT NOT NULL,
  fault_count     INTEGER NOT NULL,     -- faults in distinct workers; counts against the configuration from 2
  measured_as     BLOB CHECK (length(measured_as) = 32),  -- of the trial that runs the same code, measured for this one
  toolchain_name  TEXT NOT NULL,
  nvrtc           BLOB NOT NULL,
  builtins        BLOB NOT NULL,
  headers         BLOB NOT NULL,
  cubin           BLOB,                 -- imports; a worker's trial has its artifact
  architecture    TEXT NOT NULL,        -- likewise
  resources       TEXT NOT NULL,        -- likewise
  series          INTEGER NOT NULL,     -- a retune begins a new one
  job             TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  PRIMARY KEY (key, origin, kernel)
) STRICT, WITHOUT ROWID;
CREATE INDEX trials_by_question ON trials (kernel, problem, device_class, policy, driver_branch, series);
CREATE INDEX trials_by_source ON trials (source, problem, device_class, policy, driver_branch) WHERE source IS NOT NULL;

CREATE TABLE blocks (
  trial              BLOB NOT NULL CHECK (length(trial) = 32),
  origin             TEXT NOT NULL,
  series             INTEGER NOT NULL,
  stage              INTEGER NOT NULL CHECK (stage IN (0, 1)),  -- screen, final
  position           INTEGER NOT NULL,
  samples_us         BLOB NOT NULL,     -- IEEE 754 doubles, little-endian
  sm_mhz             INTEGER NOT NULL,
  memory_mhz         INTEGER NOT NULL,
  temperature_c      INTEGER NOT NULL,
  power_mw           INTEGER NOT NULL,
  throttle_reasons   INTEGER NOT NULL,  -- NVML's bits
  throttled          INTEGER NOT NULL,
  contended          INTEGER NOT NULL,
  timer              TEXT NOT NULL,
  tick_us            REAL NOT NULL,
  judged_against_us  REAL NOT NULL,
  job                TEXT NOT NULL,
  created_at         TEXT NOT NULL,
  PRIMARY KEY (trial, origin, series, stage, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE verifications (
  trial                BLOB NOT NULL CHECK (length(trial) = 32),
  origin               TEXT NOT NULL,
  series               INTEGER NOT NULL,
  verification_digest  BLOB NOT NULL,   -- of reference and tolerance
  problem              TEXT NOT NULL,
  after_timing         INTEGER NOT NULL,
  outcome              TEXT NOT NULL,
  worst_excess         REAL NOT NULL,
  worst_output         TEXT NOT NULL,
  worst_index          INTEGER NOT NULL,
  mismatches           INTEGER NOT NULL,
  same_bits            INTEGER NOT NULL,
  detail               TEXT NOT NULL,
  reference            TEXT NOT NULL,
  job                  TEXT NOT NULL,
  created_at           TEXT NOT NULL,
  PRIMARY KEY (trial, origin, series, verification_digest, problem, after_timing)
) STRICT, WITHOUT ROWID;

-- Winners. Append-only: a row that is replaced gets its `to_generation`. `comparisons` with libraries (JSON, see
-- kComparisonFields) are reported by clients later, and the row's sum leaves them out.
CREATE TABLE records (
  id                      INTEGER PRIMARY KEY,
  key                     BLOB NOT NULL CHECK (length(key) = 32),
  full_key                BLOB NOT NULL,  -- compared on read
  kernel                  TEXT NOT NULL,
  interface               BLOB NOT NULL,
  problem                 TEXT NOT NULL,
  device_class            BLOB NOT NULL REFERENCES device_classes (digest),
  policy                  TEXT NOT NULL,
  numerics                TEXT NOT NULL,
  namespace               TEXT NOT NULL,
  from_generation         INTEGER NOT NULL,
  to_generation           INTEGER,        -- null: current
  configuration           TEXT NOT NULL,
  trial                   BLOB NOT NULL,
  cubin                   BLOB NOT NULL,  -- that was measured
  architecture            TEXT NOT NULL,
  toolchain_name          TEXT NOT NULL,
  toolchain_major         INTEGER NOT NULL,
  nvrtc                   BLOB NOT NULL,
  builtins                BLOB NOT NULL,
  headers                 BLOB NOT NULL,
  driver_branch           TEXT NOT NULL,
  driver_cuda             INTEGER NOT NULL,
  driver_version          TEXT NOT NULL,
  evidence                TEXT NOT NULL,
  provisional             INTEGER NOT NULL,
  median_us               REAL NOT NULL,
  median_low_us           REAL NOT NULL,
  median_high_us          REAL NOT NULL,
  samples                 INTEGER NOT NULL,
  sm_mhz                  INTEGER NOT NULL,
  power_limit_mw          INTEGER NOT NULL,
  contended               INTEGER NOT NULL,
  throttled               INTEGER NOT NULL,
  gain_over_default       REAL NOT NULL,
  timer                   TEXT NOT NULL,
  tick_us                 REAL NOT NULL,
  measured_at             TEXT NOT NULL,
  verified                INTEGER NOT NULL,
  verification_digest     BLOB NOT NULL,
  verification_reference  TEXT NOT NULL,
  worst_excess            REAL NOT NULL,
  verified_problems       TEXT NOT NULL,
  same_bits               INTEGER NOT NULL,
  verified_after_timing   INTEGER NOT NULL,
  finalists               BLOB NOT NULL,  -- trial keys, 32 bytes each
  job                     TEXT NOT NULL,
  comparisons             TEXT,
  search_space            BLOB,           -- digest of the space that the winner was chosen from; null: not known
  search_strategy         TEXT NOT NULL,
  search_trials           INTEGER NOT NULL,
  search_seconds          REAL NOT NULL,  -- the limit that ended it; 0: none did
  search_complete         INTEGER NOT NULL,
  created_at              TEXT NOT NULL,
  sum                     BLOB
) STRICT;
-- One current row per driver branch, toolchain major and kind of evidence: none overwrites another.
CREATE UNIQUE INDEX records_current ON records (key, driver_branch, toolchain_major, evidence, provisional)
  WHERE to_generation IS NULL;
CREATE INDEX records_by_kernel ON records (kernel, device_class);

CREATE TABLE jobs (
  id                   TEXT PRIMARY KEY,
  kind                 TEXT NOT NULL,
  key                  BLOB NOT NULL,
  kernel               TEXT NOT NULL,
  interface            BLOB NOT NULL,
  problem              TEXT NOT NULL,
  device_class         BLOB NOT NULL,
  policy               TEXT NOT NULL,
  numerics             TEXT NOT NULL,
  namespace            TEXT NOT NULL,
  state                TEXT NOT NULL,
  ended                INTEGER NOT NULL,
  fence                INTEGER NOT NULL,  -- of the latest lease
  series               INTEGER NOT NULL,
  retune               INTEGER NOT NULL,
  interruptions        INTEGER NOT NULL,
  error                TEXT NOT NULL,
  note                 TEXT NOT NULL,
  created_at           TEXT NOT NULL,
  finished_at          TEXT NOT NULL,
  elapsed_ms           REAL NOT NULL,
  configurations       INTEGER NOT NULL,
  configurations_done  INTEGER NOT NULL,
  nvrtc_calls          INTEGER NOT NULL,
  outcomes             TEXT NOT NULL,
  record_trial         BLOB NOT NULL,
  listed               TEXT NOT NULL,     -- configurations: the only ones that are compiled or tried
  architecture         TEXT NOT NULL,
  driver_cuda          INTEGER NOT NULL,
  -- A miss started the job for a bucket: where its problem does not fit, a smaller one of the bucket is measured.
  for_bucket           INTEGER NOT NULL,
  -- Failed for the lack of memory: how many bytes its trials would have to be allowed. 0: another end, or there is a later
  -- job with this key.
  needs_bytes          INTEGER NOT NULL,
  max_trials           INTEGER NOT NULL,  -- 0: not said
  max_seconds          REAL NOT NULL,     -- likewise
  stages               TEXT NOT NULL,     -- milliseconds by stage
  -- Configurations that the search begins with: found when the job is first leased, and kept, so that later leases search
  -- alike.
  hints                TEXT NOT NULL,
  from_scratch         INTEGER NOT NULL,  -- it chooses as if nothing were known
  rounds               INTEGER NOT NULL,  -- of the finalists; 0: until they separate or tie
  sum                  BLOB
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_single_flight ON jobs (key) WHERE ended = 0;
CREATE INDEX jobs_by_key ON jobs (key);
CREATE INDEX jobs_out_of_memory ON jobs (key) WHERE needs_bytes > 0;
CREATE INDEX jobs_by_question ON jobs (kernel, problem, device_class, policy, series);
CREATE INDEX jobs_by_age ON jobs (created_at, id);

-- Misses that started no job.
CREATE TABLE wants (
  key           BLOB PRIMARY KEY CHECK (length(key) = 32),
  full_key      BLOB NOT NULL,
  kernel        TEXT NOT NULL,
  interface     BLOB NOT NULL,
  problem       TEXT NOT NULL,
  device_class  BLOB NOT NULL,
  policy        TEXT NOT NULL,
  numerics      TEXT NOT NULL,
  namespace     TEXT NOT NULL,
  count         INTEGER NOT NULL,
  first_at      TEXT NOT NULL,
  last_at       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX wants_by_rank ON wants (count, last_at, key);

-- The generation that a training job pinned, so that all of its ranks get the same answers.
CREATE TABLE pins (
  job           TEXT PRIMARY KEY,
  generation    INTEGER NOT NULL,
  created_at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Empty but for a moment: what is written and removed again to find out whether a full disk has room.
CREATE TABLE ballast (
  id     INTEGER PRIMARY KEY,
  bytes  BLOB NOT NULL
) STRICT;
