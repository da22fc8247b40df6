-- Version 2. The tables are as they were. In records, ids and times are written by what differs from those before.

COMMENT ON COLUMN facts.body IS 'JSON array of facts; from version 2 on ids and times may be relative (core/codec.py)';
