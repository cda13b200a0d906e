"""`explain`: what autograd does in one evaluation, as a page and a tree."""
