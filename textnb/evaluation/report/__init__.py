"""The report of a test: one page, from the scoring pass to its charts."""
