"""Who runs what: assignment to providers, convex partitions, layout, transfers, and the report of it."""
