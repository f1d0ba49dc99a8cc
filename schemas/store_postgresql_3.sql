-- Version 3: work is shared by content, never by a kernel's name (see store_9.sql).

ALTER TABLE blocks ADD COLUMN trial_key BYTEA, ADD COLUMN origin TEXT COLLATE "C";
UPDATE blocks SET trial_key = trials.key, origin = trials.origin FROM trials WHERE trials.id = blocks.trial;
ALTER TABLE blocks DROP COLUMN trial;
ALTER TABLE blocks RENAME COLUMN trial_key TO trial;
ALTER TABLE blocks ADD PRIMARY KEY (trial, origin, series, stage, position);

ALTER TABLE verifications ADD COLUMN trial_key BYTEA, ADD COLUMN origin TEXT COLLATE "C";
UPDATE verifications SET trial_key = trials.key, origin = trials.origin FROM trials WHERE trials.id = verifications.trial;
ALTER TABLE verifications DROP COLUMN trial;
ALTER TABLE verifications RENAME COLUMN trial_key TO trial;
ALTER TABLE verifications ADD PRIMARY KEY (trial, origin, series, verification_digest, problem, after_timing);

ALTER TABLE trials DROP CONSTRAINT trials_key_origin_key, DROP COLUMN id, ADD COLUMN source BYTEA;
ALTER TABLE trials ADD PRIMARY KEY (key, origin, kernel);
CREATE INDEX trials_by_source ON trials (source, problem, device_class, policy, driver_branch) WHERE source IS NOT NULL;
