"""The command `explain`: draws the autograd graph of one evaluation, for each loss mode."""
