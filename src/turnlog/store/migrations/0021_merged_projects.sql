-- The project into which the user has merged this one: its sessions belong there.
ALTER TABLE projects ADD COLUMN merged_key INTEGER REFERENCES projects (key);
