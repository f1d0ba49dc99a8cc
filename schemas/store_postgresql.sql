-- The daemon's store in PostgreSQL, of the same version as store.sql, which has the comments (table cubind_schema). Tables
-- and columns are the same, without what SQLite alone needs (`ballast`; sums of rows, which PostgreSQL has of its pages), and
-- with what several daemons on one database need. Texts sort by their bytes.
--
-- A transaction that writes holds an advisory lock until its end, so changes are committed in the order of their numbers: a
-- daemon that has read up to a number misses none below it.

CREATE TABLE cubind_schema (
  version  BIGINT NOT NULL
);

-- The number of the last transaction of each daemon that has the store open: tells whether a COMMIT without an answer
-- was done.
CREATE TABLE commits (
  writer  BYTEA PRIMARY KEY,
  number  BIGINT NOT NULL
);

-- The daemons that have the database open. `alive_until` is the server's time; each daemon moves it on every second.
CREATE TABLE daemons (
  id           BYTEA PRIMARY KEY CHECK (length(id) = 16),
  name         TEXT COLLATE "C" NOT NULL,
  alive_until  TIMESTAMPTZ NOT NULL,
  compiles     BIGINT NOT NULL,
  classes      BYTEA NOT NULL
);

CREATE SEQUENCE changes;

CREATE FUNCTION number_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.change := nextval('changes');
  PERFORM pg_notify('cubind_changes', '');
  RETURN NEW;
END $$;

CREATE TABLE meta (
  only_row       BIGINT PRIMARY KEY CHECK (only_row = 1),
  store_id       BYTEA NOT NULL CHECK (length(store_id) = 16),
  generation     BIGINT NOT NULL,
  file_identity  TEXT COLLATE "C" NOT NULL,
  created_at     TEXT COLLATE "C" NOT NULL
);

CREATE TABLE device_classes (
  digest      BYTEA PRIMARY KEY CHECK (length(digest) = 32),
  full_key    BYTEA NOT NULL,
  label       TEXT COLLATE "C" NOT NULL,
  facts       TEXT COLLATE "C" NOT NULL,
  first_seen  TEXT COLLATE "C" NOT NULL
);

CREATE TABLE blobs (
  cubin        BYTEA PRIMARY KEY CHECK (length(cubin) = 32),
  cubin_bytes  BIGINT NOT NULL,
  zstd         BYTEA NOT NULL,
  zstd_sha256  BYTEA NOT NULL
);

CREATE TABLE blob_uses (
  cubin         BYTEA PRIMARY KEY CHECK (length(cubin) = 32),
  zstd_bytes    BIGINT NOT NULL,
  last_used_at  TEXT COLLATE "C" NOT NULL
);
CREATE INDEX blob_uses_by_date ON blob_uses (last_used_at);

CREATE TABLE artifacts (
  key             BYTEA PRIMARY KEY CHECK (length(key) = 32),
  full_key        BYTEA NOT NULL,
  cubin           BYTEA NOT NULL CHECK (length(cubin) = 32),
  kernel          TEXT COLLATE "C" NOT NULL,
  architecture    TEXT COLLATE "C" NOT NULL,
  cubin_bytes     BIGINT NOT NULL,
  entries         TEXT COLLATE "C" NOT NULL,
  entry_symbols   TEXT COLLATE "C" NOT NULL,
  resources       TEXT COLLATE "C" NOT NULL,
  toolchain_name  TEXT COLLATE "C" NOT NULL,
  nvrtc           BYTEA NOT NULL,
  builtins        BYTEA NOT NULL,
  headers         BYTEA NOT NULL,
  compile_ms      DOUBLE PRECISION NOT NULL,
  created_at      TEXT COLLATE "C" NOT NULL
);
CREATE INDEX artifacts_by_cubin ON artifacts (cubin);
CREATE INDEX artifacts_by_kernel ON artifacts (kernel, nvrtc, builtins, headers);

CREATE TABLE trials (
  key             BYTEA NOT NULL CHECK (length(key) = 32),
  full_key        BYTEA NOT NULL,
  origin          TEXT COLLATE "C" NOT NULL CHECK (origin IN ('worker', 'import')),
  artifact_key    BYTEA,
  kernel          TEXT COLLATE "C" NOT NULL,
  source          BYTEA,
  problem         TEXT COLLATE "C" NOT NULL,
  configuration   TEXT COLLATE "C" NOT NULL,
  device_class    BYTEA NOT NULL,
  policy          TEXT COLLATE "C" NOT NULL,
  driver_branch   TEXT COLLATE "C" NOT NULL,
  driver_cuda     BIGINT NOT NULL,
  driver_version  TEXT COLLATE "C" NOT NULL,
  outcome         TEXT COLLATE "C" NOT NULL CHECK (outcome <> 'out_of_memory'),
  detail          TEXT COLLATE "C" NOT NULL,
  fault_count     BIGINT NOT NULL,
  measured_as     BYTEA CHECK (length(measured_as) = 32),
  toolchain_name  TEXT COLLATE "C" NOT NULL,
  nvrtc           BYTEA NOT NULL,
  builtins        BYTEA NOT NULL,
  headers         BYTEA NOT NULL,
  cubin           BYTEA,
  architecture    TEXT COLLATE "C" NOT NULL,
  resources       TEXT COLLATE "C" NOT NULL,
  series          BIGINT NOT NULL,
  job             TEXT COLLATE "C" NOT NULL,
  created_at      TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (key, origin, kernel)
);
CREATE INDEX trials_by_question ON trials (kernel, problem, device_class, policy, driver_branch, series);
CREATE INDEX trials_by_source ON trials (source, problem, device_class, policy, driver_branch) WHERE source IS NOT NULL;

CREATE TABLE blocks (
  trial              BYTEA NOT NULL CHECK (length(trial) = 32),
  origin             TEXT COLLATE "C" NOT NULL,
  series             BIGINT NOT NULL,
  stage              BIGINT NOT NULL CHECK (stage IN (0, 1)),
  position           BIGINT NOT NULL,
  samples_us         BYTEA NOT NULL,
  sm_mhz             BIGINT NOT NULL,
  memory_mhz         BIGINT NOT NULL,
  temperature_c      BIGINT NOT NULL,
  power_mw           BIGINT NOT NULL,
  throttle_reasons   BIGINT NOT NULL,
  throttled          BIGINT NOT NULL,
  contended          BIGINT NOT NULL,
  timer              TEXT COLLATE "C" NOT NULL,
  tick_us            DOUBLE PRECISION NOT NULL,
  judged_against_us  DOUBLE PRECISION NOT NULL,
  job                TEXT COLLATE "C" NOT NULL,
  created_at         TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (trial, origin, series, stage, position)
);

CREATE TABLE verifications (
  trial                BYTEA NOT NULL CHECK (length(trial) = 32),
  origin               TEXT COLLATE "C" NOT NULL,
  series               BIGINT NOT NULL,
  verification_digest  BYTEA NOT NULL,
  problem              TEXT COLLATE "C" NOT NULL,
  after_timing         BIGINT NOT NULL,
  outcome              TEXT COLLATE "C" NOT NULL,
  worst_excess         DOUBLE PRECISION NOT NULL,
  worst_output         TEXT COLLATE "C" NOT NULL,
  worst_index          BIGINT NOT NULL,
  mismatches           BIGINT NOT NULL,
  same_bits            BIGINT NOT NULL,
  detail               TEXT COLLATE "C" NOT NULL,
  reference            TEXT COLLATE "C" NOT NULL,
  job                  TEXT COLLATE "C" NOT NULL,
  created_at           TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (trial, origin, series, verification_digest, problem, after_timing)
);

CREATE TABLE records (
  id                      BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  key                     BYTEA NOT NULL CHECK (length(key) = 32),
  full_key                BYTEA NOT NULL,
  kernel                  TEXT COLLATE "C" NOT NULL,
  interface               BYTEA NOT NULL,
  problem                 TEXT COLLATE "C" NOT NULL,
  device_class            BYTEA NOT NULL REFERENCES device_classes (digest),
  policy                  TEXT COLLATE "C" NOT NULL,
  numerics                TEXT COLLATE "C" NOT NULL,
  namespace               TEXT COLLATE "C" NOT NULL,
  from_generation         BIGINT NOT NULL,
  to_generation           BIGINT,
  configuration           TEXT COLLATE "C" NOT NULL,
  trial                   BYTEA NOT NULL,
  cubin                   BYTEA NOT NULL,
  architecture            TEXT COLLATE "C" NOT NULL,
  toolchain_name          TEXT COLLATE "C" NOT NULL,
  toolchain_major         BIGINT NOT NULL,
  nvrtc                   BYTEA NOT NULL,
  builtins                BYTEA NOT NULL,
  headers                 BYTEA NOT NULL,
  driver_branch           TEXT COLLATE "C" NOT NULL,
  driver_cuda             BIGINT NOT NULL,
  driver_version          TEXT COLLATE "C" NOT NULL,
  evidence                TEXT COLLATE "C" NOT NULL,
  provisional             BIGINT NOT NULL,
  median_us               DOUBLE PRECISION NOT NULL,
  median_low_us           DOUBLE PRECISION NOT NULL,
  median_high_us          DOUBLE PRECISION NOT NULL,
  samples                 BIGINT NOT NULL,
  sm_mhz                  BIGINT NOT NULL,
  power_limit_mw          BIGINT NOT NULL,
  contended               BIGINT NOT NULL,
  throttled               BIGINT NOT NULL,
  gain_over_default       DOUBLE PRECISION NOT NULL,
  timer                   TEXT COLLATE "C" NOT NULL,
  tick_us                 DOUBLE PRECISION NOT NULL,
  measured_at             TEXT COLLATE "C" NOT NULL,
  verified                BIGINT NOT NULL,
  verification_digest     BYTEA NOT NULL,
  verification_reference  TEXT COLLATE "C" NOT NULL,
  worst_excess            DOUBLE PRECISION NOT NULL,
  verified_problems       TEXT COLLATE "C" NOT NULL,
  same_bits               BIGINT NOT NULL,
  verified_after_timing   BIGINT NOT NULL,
  finalists               BYTEA NOT NULL,
  job                     TEXT COLLATE "C" NOT NULL,
  comparisons             TEXT COLLATE "C",
  search_space            BYTEA,
  search_strategy         TEXT COLLATE "C" NOT NULL,
  search_trials           BIGINT NOT NULL,
  search_seconds          DOUBLE PRECISION NOT NULL,
  search_complete         BIGINT NOT NULL,
  created_at              TEXT COLLATE "C" NOT NULL,
  change                  BIGINT NOT NULL
);
CREATE UNIQUE INDEX records_current ON records (key, driver_branch, toolchain_major, evidence, provisional)
  WHERE to_generation IS NULL;
CREATE INDEX records_by_kernel ON records (kernel, device_class);
CREATE INDEX records_by_change ON records (change);
CREATE TRIGGER records_change BEFORE INSERT OR UPDATE ON records FOR EACH ROW EXECUTE FUNCTION number_change();

-- `owner`: the daemon whose agent has the job's lease. What it writes for the job names the job's fence, which the next
-- owner has raised.
CREATE TABLE jobs (
  id                   TEXT COLLATE "C" PRIMARY KEY,
  kind                 TEXT COLLATE "C" NOT NULL,
  key                  BYTEA NOT NULL,
  kernel               TEXT COLLATE "C" NOT NULL,
  interface            BYTEA NOT NULL,
  problem              TEXT COLLATE "C" NOT NULL,
  device_class         BYTEA NOT NULL,
  policy               TEXT COLLATE "C" NOT NULL,
  numerics             TEXT COLLATE "C" NOT NULL,
  namespace            TEXT COLLATE "C" NOT NULL,
  state                TEXT COLLATE "C" NOT NULL,
  ended                BIGINT NOT NULL,
  fence                BIGINT NOT NULL,
  series               BIGINT NOT NULL,
  retune               BIGINT NOT NULL,
  interruptions        BIGINT NOT NULL,
  error                TEXT COLLATE "C" NOT NULL,
  note                 TEXT COLLATE "C" NOT NULL,
  created_at           TEXT COLLATE "C" NOT NULL,
  finished_at          TEXT COLLATE "C" NOT NULL,
  elapsed_ms           DOUBLE PRECISION NOT NULL,
  configurations       BIGINT NOT NULL,
  configurations_done  BIGINT NOT NULL,
  nvrtc_calls          BIGINT NOT NULL,
  outcomes             TEXT COLLATE "C" NOT NULL,
  record_trial         BYTEA NOT NULL,
  listed               TEXT COLLATE "C" NOT NULL,
  architecture         TEXT COLLATE "C" NOT NULL,
  driver_cuda          BIGINT NOT NULL,
  for_bucket           BIGINT NOT NULL,
  needs_bytes          BIGINT NOT NULL,
  max_trials           BIGINT NOT NULL,
  max_seconds          DOUBLE PRECISION NOT NULL,
  stages               TEXT COLLATE "C" NOT NULL,
  hints                TEXT COLLATE "C" NOT NULL,
  from_scratch         BIGINT NOT NULL,
  rounds               BIGINT NOT NULL,
  change               BIGINT NOT NULL,
  owner                BYTEA
);
CREATE UNIQUE INDEX jobs_single_flight ON jobs (key) WHERE ended = 0;
CREATE INDEX jobs_by_key ON jobs (key);
CREATE INDEX jobs_out_of_memory ON jobs (key) WHERE needs_bytes > 0;
CREATE INDEX jobs_by_question ON jobs (kernel, problem, device_class, policy, series);
CREATE INDEX jobs_by_age ON jobs (created_at, id);
CREATE INDEX jobs_by_change ON jobs (change);
CREATE TRIGGER jobs_change BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION number_change();

CREATE TABLE wants (
  key           BYTEA PRIMARY KEY CHECK (length(key) = 32),
  full_key      BYTEA NOT NULL,
  kernel        TEXT COLLATE "C" NOT NULL,
  interface     BYTEA NOT NULL,
  problem       TEXT COLLATE "C" NOT NULL,
  device_class  BYTEA NOT NULL,
  policy        TEXT COLLATE "C" NOT NULL,
  numerics      TEXT COLLATE "C" NOT NULL,
  namespace     TEXT COLLATE "C" NOT NULL,
  count         BIGINT NOT NULL,
  first_at      TEXT COLLATE "C" NOT NULL,
  last_at       TEXT COLLATE "C" NOT NULL
);
CREATE INDEX wants_by_rank ON wants (count, last_at, key);

CREATE TABLE pins (
  job           TEXT COLLATE "C" PRIMARY KEY,
  generation    BIGINT NOT NULL,
  created_at    TEXT COLLATE "C" NOT NULL
);
