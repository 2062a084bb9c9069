-- Messages that programs write belong to a person, as those that machines push: an id that one person uses is free for
-- all others. A connection that writes for somebody says who it is.
ALTER TABLE turnlog.messages ALTER owner SET DEFAULT coalesce(current_setting('turnlog.writer', true), '');

UPDATE turnlog.messages m SET owner = o.owner_user
FROM turnlog.memberships p
JOIN turnlog.sessions s ON s.team_key = p.team_key AND s.key = p.session_key AND s.native = 1
JOIN turnlog.session_owners o ON o.team_key = p.team_key AND o.session_key = p.session_key
WHERE m.owner = '' AND p.team_key = m.team_key AND p.message_key = m.key
    AND NOT EXISTS (
        SELECT FROM turnlog.messages x
        WHERE x.team_key = m.team_key AND x.agent = m.agent AND x.external_id = m.external_id
            AND x.owner = o.owner_user
    );
