-- To schema version 9: work is shared by content, never by a kernel's name. Blocks and verifications belong to the key of a
-- trial, which no kernel's name is part of; how a trial ended belongs to the kernel that it ended for.

CREATE TABLE keyed_trials (
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
INSERT INTO keyed_trials SELECT key, full_key, origin, artifact_key, kernel, NULL, problem, configuration, device_class,
  policy, driver_branch, driver_cuda, driver_version, outcome, detail, fault_count, toolchain_name, nvrtc, builtins, headers,
  cubin, architecture, resources, series, job, created_at FROM trials;

CREATE TABLE keyed_blocks (
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
INSERT INTO keyed_blocks SELECT t.key, t.origin, b.series, stage, position, samples_us, sm_mhz, memory_mhz, temperature_c,
  power_mw, throttle_reasons, throttled, contended, timer, tick_us, judged_against_us, b.job, b.created_at
  FROM blocks b JOIN trials t ON t.id = b.trial;

CREATE TABLE keyed_verifications (
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
INSERT INTO keyed_verifications SELECT t.key, t.origin, v.series, verification_digest, v.problem, after_timing, v.outcome,
  worst_excess, worst_output, worst_index, mismatches, same_bits, v.detail, reference, v.job, v.created_at
  FROM verifications v JOIN trials t ON t.id = v.trial;

DROP TABLE blocks;
DROP TABLE verifications;
DROP TABLE trials;
ALTER TABLE keyed_trials RENAME TO trials;
ALTER TABLE keyed_blocks RENAME TO blocks;
ALTER TABLE keyed_verifications RENAME TO verifications;
CREATE INDEX trials_by_question ON trials (kernel, problem, device_class, policy, driver_branch);
CREATE INDEX trials_by_source ON trials (source, problem, device_class, policy, driver_branch) WHERE source IS NOT NULL;
