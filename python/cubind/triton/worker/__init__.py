"""The compile worker for Triton: a program that compiles Triton's IR for a GPU that need not exist.

    PYTHON -I .../cubind/triton/worker --fd N [--seconds N] [--cpu-seconds N] [--memory-mib N]

PYTHON is one that has Triton; it needs nothing else of cubind. N is a stream socket. service.py has the
messages.
"""
