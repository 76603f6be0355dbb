"""What operators mean, running none: families, schemas and shape functions."""
