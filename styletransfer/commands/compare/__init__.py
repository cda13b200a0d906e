"""`compare`: one job under every loss mode, side by side."""
