-- Every push takes the totals of the sessions that have changed, in the place of those that were there.
CREATE INDEX call_totals_by_session ON turnlog.call_totals (team_key, session_key);
CREATE INDEX edit_totals_by_session ON turnlog.edit_totals (team_key, session_key);
