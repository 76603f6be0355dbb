"""What rules and passes share; no rule or pass is defined here."""
