"""From the files under `configs/`, and keys that a person chose, to typed settings."""
