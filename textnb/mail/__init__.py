"""One message: its parts, charsets and text."""
