"""Files that are replaced whole, locks, and checks of what is read."""
