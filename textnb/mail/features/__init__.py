"""The kinds of tokens of a message: one function per kind."""
