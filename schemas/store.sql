-- The daemon's store, schema version 1 (SQLite; PRAGMA user_version). store_2.sql leads on to version 2, and so on: what
-- has been released stays as it is, a change is another file.
--
-- Conventions: digests are blobs of 32 bytes; times of day are RFC 3339 in UTC; problems, configurations and other lists are
-- JSON with their names in declared order; enumerations are spelled out, so that the file can be read without cubind.
-- A column marked "reserved" has its meaning fixed by the design and no writer yet.

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
  first_seen  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Cubins by their own digest, apart from the keys: two artifact keys may compile to the same bytes.
CREATE TABLE blobs (
  cubin         BLOB PRIMARY KEY CHECK (length(cubin) = 32),
  cubin_bytes   INTEGER NOT NULL,
  zstd          BLOB NOT NULL,
  zstd_sha256   BLOB NOT NULL,          -- checked on load: integrity_check does not see a flipped bit in a blob
  last_used_at  TEXT,                   -- reserved: LRU within the byte budget
  pinned        INTEGER NOT NULL DEFAULT 0  -- reserved
) STRICT;

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
  namespace        TEXT NOT NULL DEFAULT '',  -- reserved
  signature        BLOB,                -- reserved: Ed25519
  signing_key      TEXT                 -- reserved
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_cubin ON artifacts (cubin);
CREATE INDEX artifacts_by_kernel ON artifacts (kernel, nvrtc, builtins, headers);

-- One launch plan on one problem and device class. Origin 'import' is kept apart: it never stands in for a measurement.
CREATE TABLE trials (
  id              INTEGER PRIMARY KEY,
  key             BLOB NOT NULL CHECK (length(key) = 32),
  full_key        BLOB NOT NULL,        -- compared on read; empty for imports
  origin          TEXT NOT NULL CHECK (origin IN ('worker', 'import')),
  artifact_key    BLOB,
  kernel          TEXT NOT NULL,
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
  toolchain_name  TEXT NOT NULL,
  nvrtc           BLOB NOT NULL,
  builtins        BLOB NOT NULL,
  headers         BLOB NOT NULL,
  cubin           BLOB,                 -- imports; a worker's trial has its artifact
  architecture    TEXT NOT NULL,        -- likewise
  resources       TEXT NOT NULL,        -- likewise
  series          INTEGER NOT NULL,     -- a retune begins a new one
  job             TEXT NOT NULL,
  reporter        TEXT,                 -- reserved: who reported timings taken in a client's process
  created_at      TEXT NOT NULL,
  UNIQUE (key, origin)
) STRICT;
CREATE INDEX trials_by_question ON trials (kernel, problem, device_class, policy, driver_branch);

CREATE TABLE blocks (
  trial              INTEGER NOT NULL REFERENCES trials (id),
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
  PRIMARY KEY (trial, series, stage, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE verifications (
  trial                INTEGER NOT NULL REFERENCES trials (id),
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
  PRIMARY KEY (trial, series, verification_digest, problem, after_timing)
) STRICT, WITHOUT ROWID;

-- Winners. Append-only: a row that is replaced gets its `to_generation`. `baselines` holds comparisons with libraries
-- (JSON, see kComparisonFields); clients report them later, and the row's sum leaves them out.
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
  reporter                TEXT,           -- reserved: evidence `reported`
  baselines               TEXT,           -- reserved: times of library baselines
  signature               BLOB,           -- reserved
  created_at              TEXT NOT NULL
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
  compile              TEXT NOT NULL,     -- configurations, of kind compile_winner
  architecture         TEXT NOT NULL,
  driver_cuda          INTEGER NOT NULL,
  caller               TEXT NOT NULL DEFAULT ''  -- reserved: who asked, for limits by role
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_single_flight ON jobs (key) WHERE ended = 0;
CREATE INDEX jobs_by_key ON jobs (key);

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

-- The generation that a training job pinned, so that all of its ranks get the same answers.
CREATE TABLE pins (
  job           TEXT PRIMARY KEY,
  generation    INTEGER NOT NULL,
  created_at    TEXT NOT NULL,
  last_used_at  TEXT NOT NULL     -- reserved: forgetting the pins of jobs that are long over
) STRICT, WITHOUT ROWID;

-- Empty but for a moment: what is written and removed again to find out whether a full disk has room.
CREATE TABLE ballast (
  id     INTEGER PRIMARY KEY,
  bytes  BLOB NOT NULL
) STRICT;
