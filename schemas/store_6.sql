-- To schema version 6: rows that answer tell whether one of their values has changed on the disk.

-- SHA-256 of the row's values (`row_sum` in server/store/sqlite/database.cpp). Null: written before there was one.
ALTER TABLE artifacts ADD COLUMN sum BLOB;
ALTER TABLE records ADD COLUMN sum BLOB;
ALTER TABLE device_classes ADD COLUMN sum BLOB;
ALTER TABLE jobs ADD COLUMN sum BLOB;
