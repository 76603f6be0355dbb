"""Options of a session, parsed once: the table of keys, and what they say as values."""
