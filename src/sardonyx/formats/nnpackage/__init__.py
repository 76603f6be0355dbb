"""NN packages: several models in a folder or a ZIP archive, and a manifest that joins them."""
