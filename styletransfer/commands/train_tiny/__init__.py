"""One tiny model, trained with built-in and with hand-written operations."""
