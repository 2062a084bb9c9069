-- The call that started a subagent, where no record names it: worked out from what both say (store/asking.py).
ALTER TABLE links ADD COLUMN found_call_id TEXT;
ALTER TABLE links ADD COLUMN found_message_id TEXT;
