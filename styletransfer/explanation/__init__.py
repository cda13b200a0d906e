"""The parts of `styletransfer.explain`: facts about one evaluation, and drawings of them."""
