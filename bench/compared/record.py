"""The record of a bench/compare run: every value by kind, side and point, missing sides with the reason, and the machine."""
import json
import os
import platform
import statistics
import subprocess
import time


class Record:
    """measured[kind][side][point] is a list of values, one for each round; absent[kind][side] is the reason why there is none."""

    def __init__(self):
        self.measured, self.absent, self.about = {}, {}, {}

    def add(self, kind, side, values):
        for point, value in values.items():
            self.measured.setdefault(kind, {}).setdefault(side, {}).setdefault(str(point), []).append(rounded(value))

    def leave_out(self, kind, side, reason):
        self.absent.setdefault(kind, {}).setdefault(side, reason)

    def is_absent(self, kind, side):
        return side in self.absent.get(kind, {})

    def sides(self, kind):
        return list(self.measured.get(kind, {}))

    def points(self, kind, side):
        """[(point, median, least, most)] in the order of the points, which are numbers."""
        found = self.measured.get(kind, {}).get(side, {})
        return [(float(p), *spread(found[p])) for p in sorted(found, key=float)]

    def at(self, kind, side, point):
        """(median, least, most), or None."""
        values = self.measured.get(kind, {}).get(side, {}).get(str(point))
        return spread(values) if values else None

    def rounds(self):
        return max((len(v) for kind in self.measured.values() for side in kind.values() for v in side.values()), default=0)

    def text(self):
        """JSON with one line for each side, so that diffs are readable."""
        lines = ['{"about": ' + json.dumps(self.about) + ",", '"absent": ' + json.dumps(self.absent) + ",", '"measured": {']
        kinds = []
        for kind, sides in self.measured.items():
            rows = ",\n".join("  " + json.dumps(side) + ": " + json.dumps(points) for side, points in sides.items())
            kinds.append(f" {json.dumps(kind)}: {{\n{rows}}}")
        return "\n".join(lines + [",\n".join(kinds), "}}"]) + "\n"

    @staticmethod
    def read(path):
        with open(path, encoding="ascii") as f:
            tree = json.load(f)
        r = Record()
        r.about, r.absent, r.measured = (tree[key] for key in ("about", "absent", "measured"))
        return r


def rounded(value):
    return float(f"{value:.4g}")


def spread(values):
    """(median, least, most)."""
    return statistics.median(values), min(values), max(values)


def version(package):
    """The version of a Debian package, or nothing."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def about(machine, commit, packages, options):
    """The description of the machine, before the first run."""
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit, "machine": machine, "kernel": platform.release(),
            "versions": {p: v for p in packages if (v := version(p))}, "rounds": options.rounds, "quick": options.quick,
            "load": [round(os.getloadavg()[0], 2)]}


def was_busy(about):
    """True if another program was running most of the time before the run, which includes the build."""
    return about["load"][0] >= 1
