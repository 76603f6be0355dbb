"""Random feeds that a model accepts: sizes of its symbolic dimensions, the elements that its operators take, and arrays of them."""
