"""Jobs in TOML files."""
