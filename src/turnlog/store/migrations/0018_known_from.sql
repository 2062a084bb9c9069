-- A session that is known from hooks only says so in its metadata under the name that its documentation uses.

UPDATE sessions SET metadata = json_set(json_remove(metadata, '$.told_by'), '$.known_from', 'hooks')
WHERE metadata LIKE '%"told_by":"hooks"%' AND metadata ->> '$.told_by' = 'hooks';
