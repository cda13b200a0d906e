"""Style networks, which paint a picture in one forward pass, and their training.

`train` needs no style network: it optimises each picture instead, which takes many passes.
"""
