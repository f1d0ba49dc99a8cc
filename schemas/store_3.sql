-- From schema version 2 to 3: no question about some jobs reads all of them; classes that nobody has.

CREATE INDEX jobs_by_question ON jobs (kernel, problem, device_class, policy, series);
CREATE INDEX jobs_by_age ON jobs (created_at, id);
-- With the series: the jobs that began it may be forgotten.
DROP INDEX trials_by_question;
CREATE INDEX trials_by_question ON trials (kernel, problem, device_class, policy, driver_branch, series);

-- The want list is counted and cut with every new entry.
CREATE INDEX wants_by_rank ON wants (count, last_at, key);

-- A class that only a question named made its label ambiguous for everybody.
DELETE FROM device_classes WHERE digest NOT IN (SELECT device_class FROM records)
  AND digest NOT IN (SELECT device_class FROM trials);
