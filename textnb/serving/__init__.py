"""Verdicts over a socket, in the protocol of SpamAssassin's spamd."""
