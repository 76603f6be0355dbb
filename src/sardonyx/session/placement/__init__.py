"""Options that decide which provider runs a node."""
