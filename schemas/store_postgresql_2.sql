-- Version 2: several daemons use one database. Whoever writes holds an advisory lock until its transaction has ended, so
-- changes are committed in the order of their numbers: a daemon that has read up to a number misses none below it.

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

ALTER TABLE records ADD COLUMN change BIGINT NOT NULL DEFAULT 0;
CREATE INDEX records_by_change ON records (change);
CREATE TRIGGER records_change BEFORE INSERT OR UPDATE ON records FOR EACH ROW EXECUTE FUNCTION number_change();

-- `owner`: the daemon whose agent has the job's lease. What it writes for the job names the job's fence, which the next
-- owner has raised.
ALTER TABLE jobs ADD COLUMN change BIGINT NOT NULL DEFAULT 0, ADD COLUMN owner BYTEA;
CREATE INDEX jobs_by_change ON jobs (change);
CREATE TRIGGER jobs_change BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION number_change();
UPDATE jobs SET owner = NULL WHERE ended = 0;
