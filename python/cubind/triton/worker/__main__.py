import pathlib
import sys

if not __package__:  # run as a folder: the package is found by its name alone, with nothing of cubind
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    from worker.service import main
else:
    from .service import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
