"""An operator, a provider, a rule and a pass for sardonyx."""
