"""Between this package's models and those of others, and what their tools can do with ours; each needs an optional package."""
