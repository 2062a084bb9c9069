-- Several files may tell of one session: of their projects and first prompts the earliest counts. These say when it was.

ALTER TABLE sessions ADD COLUMN project_at INTEGER;
ALTER TABLE sessions ADD COLUMN titled_at INTEGER;
