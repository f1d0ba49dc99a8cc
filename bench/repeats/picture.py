"""Draws the choices of a results file as a strip plot, for bench/readme/page.py.

One mark for each choice: by how much more time it takes than the fastest configuration, in percent, on an
axis that is linear near 0 and logarithmic beyond.
"""

import html
import math

WIDTH, LEFT, RIGHT, TOP, STRIP = 800, 150, 24, 52, 84
TICKS = (0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
LINEAR_UP_TO = 0.2  # percent
COLOURS = {"cubind": "#2563a8", "Triton": "#c2571a"}
FONT = 'font-family="system-ui, sans-serif"'


def position(percent, most):
    """From a regret in percent to x; what measures as faster than the best counts as the best."""
    share = math.asinh(max(percent, 0) / LINEAR_UP_TO) / math.asinh(most / LINEAR_UP_TO)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def regrets_of(results):
    """In percent, of all problems' choices."""
    return [100 * regret for problem in results["problems"] for regret in problem.get("regrets", ())]


def marks(regrets, top, colour, most):
    """Equal ones stand above each other, so that none hides another."""
    height = STRIP - 24
    for index, regret in enumerate(regrets):
        y = top + 12 + height * ((0.5 + index * 0.618034) % 1)  # even in height, the same at each run
        yield f'<circle cx="{position(regret, most):.1f}" cy="{y:.1f}" r="2.6" fill="{colour}" fill-opacity="0.55"/>'


def strip(name, regrets, top, most):
    within = sum(regret <= 1 for regret in regrets)
    label = f"{within} of {len(regrets)} within 1 %"
    yield f'<text x="{LEFT - 14}" y="{top + STRIP / 2 - 2}" text-anchor="end" {FONT} font-size="15" fill="#222">{name}</text>'
    yield (
        f'<text x="{LEFT - 14}" y="{top + STRIP / 2 + 15}" text-anchor="end" {FONT} font-size="11" '
        f'fill="#555">{html.escape(label)}</text>'
    )
    yield from marks(regrets, top, COLOURS[name], most)


def draw(document):
    """The picture as text."""
    sides = {"cubind": regrets_of(document), "Triton": regrets_of(document["triton"])}
    most = max(tick for tick in TICKS if tick <= 2 * max(max(r) for r in sides.values()))
    bottom = TOP + STRIP * len(sides)
    toolchain = document["toolchain"]
    title = "How much slower a tuner's choice is than the fastest configuration it could have chosen"
    source = (
        f"{toolchain['device']}, {toolchain['date'][:10]}, driver {toolchain['driver']}, Triton {toolchain['triton']}. "
        "./dev bench repeats"
    )
    axis = "Time above that of the fastest configuration; the axis is linear up to 0.2 %, then logarithmic."
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 68}" '
        f'viewBox="0 0 {WIDTH} {bottom + 68}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{bottom + 68}" fill="#fff"/>',
        f'<text x="{LEFT}" y="26" {FONT} font-size="14" fill="#222">{html.escape(title)}</text>',
    ]
    for tick in (t for t in TICKS if t <= most):
        x = position(tick, most)
        lines.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        lines.append(
            f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle" {FONT} font-size="11" fill="#444">{tick:g} %</text>'
        )
    for number, (name, regrets) in enumerate(sides.items()):
        lines += strip(name, regrets, TOP + number * STRIP, most)
    lines.append(
        f'<text x="{LEFT}" y="{bottom + 54}" {FONT} font-size="10" fill="#666">{html.escape(source)}</text>'
    )
    lines.append(f'<text x="{LEFT}" y="{bottom + 38}" {FONT} font-size="10" fill="#666">{axis}</text>')
    return "\n".join([*lines, "</svg>", ""])
