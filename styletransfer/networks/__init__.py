"""Style networks: feed-forward networks that paint a picture in one pass; their training.

`train` needs no style network: it optimises each picture instead, which takes many passes.
"""
