"""From programs to results: the plan, its bindings to shapes, memory, and the executors."""
