"""The pictures of the pages in README and docs, of a daemon that plays recorded measurements.

usage: ./dev pictures [FOLDER]        default: docs/images
"""

import pathlib
import sys
import time

import browser
import filled


def draw(daemon, chromium, folder):
    """pages.png and report.png, of a filled daemon."""
    job = daemon.jobs("done")[-2]
    daemon.run_job()
    time.sleep(2)
    chromium.page(daemon.site + "/").picture(folder / "pages.png")
    chromium.page(f"{daemon.site}/report?job={job}", width=1000).picture(folder / "report.png", 1400)


def main():
    bin_dir = pathlib.Path(sys.argv[1])
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else filled.ROOT / "docs" / "images"
    with filled.Filled(bin_dir) as daemon, browser.Browser() as chromium:
        daemon.fill()
        draw(daemon, chromium, folder)
    print(f"{folder}/pages.png and report.png")


if __name__ == "__main__":
    main()
