"""Values that pass between a user and a session: tensors, sparse tensors, sequences and maps, and the devices that they lie on."""
