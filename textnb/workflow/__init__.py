"""Steps of work, each a verb of the command line and a section of a job; jobs in TOML files."""
