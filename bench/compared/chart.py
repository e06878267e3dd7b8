"""Small SVG pictures with axes, readable on light and dark pages: text is stored as text, with the colours of Okabe and Ito, which
can be distinguished with any kind of colour vision. The same figures give the same bytes."""
import math
from xml.sax.saxutils import escape

# Colours of the series: on light pages, on dark pages.
COLOURS = {"sky": ("#3a97d0", "#6cbcec"), "blue": ("#0060a8", "#3f9be8"), "navy": ("#1b2a6b", "#a9b8ff"), "green": ("#00855f", "#2cc79b"),
           "orange": ("#c77f00", "#f0b23c"), "red": ("#c94a00", "#ff8a4c"), "purple": ("#a8527f", "#e39cc4"), "grey": ("#59636e", "#9aa4af")}
STYLE = """.card{fill:#ffffff;stroke:#d0d7de}.t{fill:#1f2328}.m{fill:#59636e}.g{stroke:#e4e7ea;fill:none}.a{stroke:#8c959f;fill:none}
.fast{fill:#dcebf5}.slow{fill:#fbe3bd}text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px}
.h{font-size:16px;font-weight:600}.p{font-size:13px;font-weight:600}.s{font-size:11px}"""
DARK = """.card{fill:#0d1117;stroke:#3d444d}.t{fill:#f0f6fc}.m{fill:#9198a1}.g{stroke:#262c34}.a{stroke:#656c76}
.fast{fill:#12304a}.slow{fill:#4a3410}"""


def style():
    light, dark = [], []
    for name, (on_light, on_dark) in COLOURS.items():
        for rules, colour in ((light, on_light), (dark, on_dark)):
            rules.append(f".{name}{{stroke:{colour};fill:none}}.f{name}{{fill:{colour}}}")
    return f"<style>{STYLE}\n{''.join(light)}\n@media(prefers-color-scheme:dark){{{DARK}\n{''.join(dark)}}}</style>"


def n(value):
    """A coordinate."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Scale:
    """Maps figures to 0..1."""

    def __init__(self, low, high, log=False):
        self.f = math.log10 if log else float
        self.low, self.span = self.f(low), (self.f(high) - self.f(low)) or 1

    def at(self, value):
        return (self.f(value) - self.low) / self.span


class Nines:
    """Percent on a scale where each further nine after 90 takes equal room: 0 to 99.99."""

    @staticmethod
    def at(percent):
        return min(-math.log10(max(1 - percent / 100, 1e-4)) / 4, 1)


def decades(low, high):
    """Ticks of a log scale that covers both, including its ends."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0 ** e for e in range(first, max(last, first + 1) + 1)]


def round_ticks(high):
    """0 and up in steps of 1, 2 or 5, the last at or above `high`."""
    step = 10 ** math.floor(math.log10(high / 4)) if high > 0 else 1
    step *= next(f for f in (1, 2, 5, 10) if step * f * 5 >= high)
    return [i * step for i in range(math.ceil(high / step - 1e-9) + 1)]


class Picture:
    """A card with a title; coordinates are pixels from its upper left corner."""

    def __init__(self, width, height, title, under, about):
        self.width, self.height = width, height
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
                      f"<title>{escape(title)}</title><desc>{escape(about)}</desc>", style(),
                      f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>']
        self.text(18, 27, title, "t h")
        for i, line in enumerate(under):
            self.text(18, 46 + 15 * i, line, "m s")

    def text(self, x, y, words, css="t", anchor="start", turn=0):
        where = f' transform="rotate({turn} {n(x)} {n(y)})"' if turn else ""
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text class="{css}" x="{n(x)}" y="{n(y)}"{at}{where}>{escape(words)}</text>')

    def path(self, points, css, width=1.0, dash="", closed=False):
        d = "M" + "L".join(f"{n(x)} {n(y)}" for x, y in points) + ("Z" if closed else "")
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path class="{css}" stroke-width="{n(width)}"{dashed} d="{d}"/>')

    def box(self, x, y, width, height, css, opacity=1.0):
        more = f' opacity="{opacity:g}"' if opacity != 1 else ""
        self.parts.append(f'<rect class="{css}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}"{more}/>')

    def dot(self, x, y, radius, css):
        self.parts.append(f'<circle class="{css}" cx="{n(x)}" cy="{n(y)}" r="{n(radius)}"/>')

    def legend(self, x, y, entries, across, step):
        """entries: (name, colour, dash); `across` in a row."""
        for i, (name, colour, dash) in enumerate(entries):
            left, top = x + step * (i % across), y + 18 * (i // across)
            if dash == "box":
                self.box(left + 4, top - 9, 14, 10, colour)
            else:
                self.path([(left, top - 4), (left + 22, top - 4)], colour, 2.4, dash)
            self.text(left + 28, top, name)

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


class Panel:
    """Axes on a picture: a rectangle with a scale each way."""

    def __init__(self, picture, rectangle, x_scale, y_scale, title="", words=("", "")):
        self.picture, self.x_scale, self.y_scale = picture, x_scale, y_scale
        self.left, self.top, self.width, self.height = rectangle
        self.bottom, self.right = self.top + self.height, self.left + self.width
        if title:
            picture.text(self.left, self.top - 12, title, "t p")
        picture.text(self.left + self.width / 2, self.bottom + 36, words[0], "m", "middle")
        picture.text(self.left - 42, self.top + self.height / 2, words[1], "m", "middle", -90)

    def x(self, value):
        return self.left + self.width * self.x_scale.at(value)

    def y(self, value):
        return self.bottom - self.height * self.y_scale.at(value)

    def x_ticks(self, ticks):
        """[(value, text)]"""
        for value, words in ticks:
            self.picture.path([(self.x(value), self.bottom), (self.x(value), self.bottom + 4)], "a")
            self.picture.text(self.x(value), self.bottom + 18, words, "m", "middle")
        self.picture.path([(self.left, self.bottom), (self.right, self.bottom)], "a")

    def y_ticks(self, ticks):
        for value, words in ticks:
            self.picture.path([(self.left, self.y(value)), (self.right, self.y(value))], "g")
            self.picture.text(self.left - 7, self.y(value) + 4, words, "m", "end")

    def line(self, points, colour, dash="", width=2.2):
        """points: [(x, median, least, most)]: the line through the medians, bars for the spread."""
        for x, _, least, most in points:
            if most > least:
                self.picture.path([(self.x(x), self.y(least)), (self.x(x), self.y(most))], colour, 1)
        self.picture.path([(self.x(x), self.y(y)) for x, y, _, _ in points], colour, width, dash)
        for x, y, _, _ in points:
            self.picture.dot(self.x(x), self.y(y), 2.6, "f" + colour)
