-- From schema version 1 to 2: problems that a GPU has no memory for.

-- A miss started the job for a bucket: where its problem does not fit, a smaller one of the bucket is measured.
ALTER TABLE jobs ADD COLUMN for_bucket INTEGER NOT NULL DEFAULT 0;
-- Failed for the lack of memory: how many bytes its trials would have to be allowed. 0: another end, or there is a later
-- job with this key.
ALTER TABLE jobs ADD COLUMN needs_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_out_of_memory ON jobs (key) WHERE needs_bytes > 0;
