"""`apply`: pictures, films and folders through a style network."""
