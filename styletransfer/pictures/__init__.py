"""Pictures: files and tensors, colours, regions."""
