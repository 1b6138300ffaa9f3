"""Files that are replaced completely, locks, and checks of files that are read."""
