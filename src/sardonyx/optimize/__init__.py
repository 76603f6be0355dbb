"""Model to model, independent of any provider: rewrite rules (small patterns) and passes (whole graphs), in levels."""
