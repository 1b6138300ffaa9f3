"""Steps of work, of which each is a verb and a section of a job; and jobs in TOML files."""
