-- What a team, a project or a person may cost in a month, as its owners and admins mean it.
CREATE TABLE turnlog.budgets (
    team_key int NOT NULL, budget_id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL CHECK (scope IN ('team', 'project', 'person')),
    -- The path of the project, or the id of the person; empty for the team.
    subject text COLLATE "C" NOT NULL CHECK ((scope = 'team') = (subject = '')),
    -- Nano-dollars.
    amount bigint NOT NULL CHECK (amount > 0),
    PRIMARY KEY (team_key, budget_id),
    UNIQUE (team_key, scope, subject)
);
