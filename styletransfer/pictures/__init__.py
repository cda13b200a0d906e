"""Pictures: read, written, resized, made."""
