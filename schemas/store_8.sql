-- To schema version 8: when cubins were last used, so that those that nothing needs make room.

-- Apart from `blobs`: a change of a row there would write its cubin again.
CREATE TABLE blob_uses (
  cubin         BLOB PRIMARY KEY CHECK (length(cubin) = 32),
  zstd_bytes    INTEGER NOT NULL,
  last_used_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_by_date ON blob_uses (last_used_at);
INSERT INTO blob_uses SELECT cubin, length(zstd), strftime('%Y-%m-%dT%H:%M:%fZ', 'now') FROM blobs;
