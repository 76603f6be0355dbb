"""The reference provider: NumPy, every operator, asked last."""
