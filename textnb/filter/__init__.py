"""The mail filter: a verdict at once, or over a socket in the protocol of SpamAssassin's spamd."""
