-- To schema version 5: what a job's search begins with.

-- Configurations, as in `compile`: found when the job is first leased, and kept, so that later leases search alike.
ALTER TABLE jobs ADD COLUMN warm_start TEXT NOT NULL DEFAULT '[]';
