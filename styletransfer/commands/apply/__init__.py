"""`apply`: pictures and folders through a style network."""
