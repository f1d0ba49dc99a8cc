"""python -m cubind: cubindctl, of this package."""

from .programs import cubindctl

if __name__ == "__main__":
    cubindctl()
