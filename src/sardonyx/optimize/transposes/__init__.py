"""How a transpose is pushed through each operator: `edit` changes the graph, a file for each kind of operator says what changes."""
