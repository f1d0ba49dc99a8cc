-- To schema version 4: what was searched for a record, and under which budget a job searches.

-- Digest of the space that the winner was chosen from. Null: not known, as of an imported record.
ALTER TABLE records ADD COLUMN search_space BLOB;
ALTER TABLE records ADD COLUMN search_strategy TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN search_trials INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN search_seconds REAL NOT NULL DEFAULT 0;   -- the limit that ended it; 0: none did
ALTER TABLE records ADD COLUMN search_complete INTEGER NOT NULL DEFAULT 0;

ALTER TABLE jobs ADD COLUMN max_trials INTEGER NOT NULL DEFAULT 0;   -- 0: not said
ALTER TABLE jobs ADD COLUMN max_seconds REAL NOT NULL DEFAULT 0;     -- likewise
ALTER TABLE jobs ADD COLUMN stages TEXT NOT NULL DEFAULT '{}';       -- milliseconds by stage
