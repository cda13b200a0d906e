"""`mix`: less of a finished pastiche, at once."""
