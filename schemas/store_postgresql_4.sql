-- Version 4: trials that run the code of another one, which was measured for them.

ALTER TABLE trials ADD COLUMN measured_as BYTEA CHECK (length(measured_as) = 32);
