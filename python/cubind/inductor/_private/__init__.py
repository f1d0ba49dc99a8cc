"""What cubind uses of Inductor beyond its documented interface: all of it is in this folder.

gate.missing() says whether this PyTorch has all of it, in the form that is known. Import the other
modules only after that, and all of them only after torch.
"""
