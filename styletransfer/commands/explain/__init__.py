"""`explain`: a map of what autograd does in one evaluation, for each loss mode."""
