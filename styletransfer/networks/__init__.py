"""Style networks: feed-forward networks that paint a picture in one pass; their training."""
