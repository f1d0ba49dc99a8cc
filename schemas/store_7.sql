-- To schema version 7: jobs that choose as if nothing were known, and that measure so many rounds.

ALTER TABLE jobs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN rounds INTEGER NOT NULL DEFAULT 0;
