"""Charts as SVG, of text alone: lines over numbers, and bars side by side."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 44, 56
KNOWN = {"sluice": "#1b6ca8", "sluice-redis": "#6fb1e0", "nginx": "#d1495b", "haproxy": "#3a9d5d", "h2o": "#8f5ea2",
         "portkey": "#e08e2b", "sdk": "#b8a11e", "direct": "#5c6670"}  # the same in every chart
COLOURS = ("#2aa6a6", "#7a4b2b", "#d685b4", "#444444")
FONT = 'font-family="sans-serif" font-size="12"'


def number(value):
    """As short as it can be read."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def ticks(low, high, count=5):
    """Round numbers from at most `low` to at least `high`."""
    if high <= low:
        high = low + 1
    raw = (high - low) / count
    step = 10 ** math.floor(math.log10(raw))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= raw)
    first = math.floor(low / step)
    return [step * k for k in range(first, math.ceil(high / step) + 1)]


class Axis:
    """From a value to a place; logarithmic for values that span decades."""

    def __init__(self, values, start, end, log=False):
        self.log, self.start, self.end = log, start, end
        if log:
            low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            self.ticks = [10.0 ** k for k in range(low, max(high, low + 1) + 1)]
        else:
            self.ticks = ticks(min(0, *values), max(values)) if len(values) > 1 else ticks(0, values[0])
        self.low, self.high = self.inner(self.ticks[0]), self.inner(self.ticks[-1])

    def inner(self, value):
        return math.log10(value) if self.log else value

    def at(self, value):
        return self.start + (self.inner(value) - self.low) / (self.high - self.low) * (self.end - self.start)


class Chart:
    """A frame with a title; `body` grows."""

    def __init__(self, title, x_name, y_name):
        self.body = [f'<text x="{LEFT}" y="24" {FONT} font-weight="bold">{escape(title)}</text>']
        middle = (LEFT + WIDTH - RIGHT) / 2
        self.text(middle, HEIGHT - 12, x_name, "middle")
        self.body.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" {FONT} '
                         f'text-anchor="middle">{escape(y_name)}</text>')
        self.names = {}

    def text(self, x, y, words, anchor="start"):
        self.body.append(f'<text x="{x:.1f}" y="{y:.1f}" {FONT} text-anchor="{anchor}">{escape(str(words))}</text>')

    def line(self, x1, y1, x2, y2, colour="#dddddd"):
        self.body.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')

    def y_axis(self, values, log=False):
        axis = Axis(values, HEIGHT - BOTTOM, TOP, log)
        for tick in axis.ticks:
            self.line(LEFT, axis.at(tick), WIDTH - RIGHT, axis.at(tick))
            self.text(LEFT - 6, axis.at(tick) + 4, number(tick), "end")
        return axis

    def x_axis(self, values, log=False):
        axis = Axis(values, LEFT, WIDTH - RIGHT, log)
        for tick in axis.ticks:
            self.line(axis.at(tick), HEIGHT - BOTTOM, axis.at(tick), HEIGHT - BOTTOM + 5, "#888888")
            self.text(axis.at(tick), HEIGHT - BOTTOM + 20, number(tick), "middle")
        return axis

    def colour(self, name):
        """In the legend from its first use."""
        colour = self.names.get(name)
        if colour is None:
            colour = self.names[name] = KNOWN.get(name, COLOURS[len(self.names) % len(COLOURS)])
            y = TOP + 18 * len(self.names)
            self.body.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
            self.text(WIDTH - RIGHT + 32, y, name)
        return colour

    def done(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
                f'viewBox="0 0 {WIDTH} {HEIGHT}">\n<rect width="100%" height="100%" fill="white"/>\n'
                + "\n".join(self.body) + "\n</svg>\n")


def lines(title, x_name, y_name, series, log_x=False, log_y=False):
    """`series`: name to a list of (x, median, least, most)."""
    points = [point for one in series.values() for point in one]
    chart = Chart(title, x_name, y_name)
    x_axis = chart.x_axis([point[0] for point in points], log_x)
    y_axis = chart.y_axis([value for point in points for value in point[1:]], log_y)
    for name, one in series.items():
        colour = chart.colour(name)
        places = [(x_axis.at(x), y_axis.at(y), y_axis.at(low), y_axis.at(high)) for x, y, low, high in sorted(one)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in places)
        chart.body.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, low, high in places:
            chart.line(x, low, x, high, colour)
            chart.body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    return chart.done()


def bars(title, y_name, groups, log_y=False):
    """`groups`: name of a group to {name: (median, least, most)}."""
    values = [value for group in groups.values() for bar in group.values() for value in bar]
    chart = Chart(title, "", y_name)
    axis = chart.y_axis(values, log_y)
    floor, width = HEIGHT - BOTTOM, (WIDTH - LEFT - RIGHT) / len(groups)
    for place, (group, members) in enumerate(groups.items()):
        left, each = LEFT + place * width + width * 0.1, width * 0.8 / max(1, len(members))
        for index, (name, (middle, low, high)) in enumerate(members.items()):
            colour, x = chart.colour(name), left + index * each
            chart.body.append(f'<rect x="{x:.1f}" y="{axis.at(middle):.1f}" width="{each * 0.9:.1f}" '
                              f'height="{floor - axis.at(middle):.1f}" fill="{colour}"/>')
            chart.line(x + each * 0.45, axis.at(low), x + each * 0.45, axis.at(high), "#222222")
        chart.text(LEFT + (place + 0.5) * width, floor + 18 + 14 * (place % 2), group, "middle")
    return chart.done()
