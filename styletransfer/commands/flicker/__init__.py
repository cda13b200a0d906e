"""`flicker`: painted films, measured."""
