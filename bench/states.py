"""States of the line between two cores. On a virtual machine the host moves the virtual processors, and a cache line
then takes 40 to 75 ns from one core to the other or 190 to 250, which changes every figure of two processes. So the
line is measured before and after each repetition, and only repetitions of one state are compared."""
import statistics

SAME = 1.25  # the largest ratio of two lines of one state
ENOUGH = 3  # repetitions of a state


def changed(before, after):
    return max(before, after) > SAME * min(before, after)


def group(repetitions):
    """Groups [(before, after, values)]: the means of a state are within 25 % of its smallest."""
    states = []
    for one in sorted(repetitions, key=lambda one: one[0] + one[1]):
        smallest = states and states[-1][0]
        if smallest and one[0] + one[1] <= SAME * (smallest[0] + smallest[1]):
            states[-1].append(one)
        else:
            states.append([one])
    return states


def measure(line, reps, once, tell):
    """Repeats once() until a state has enough repetitions, at most 3 * reps times. Returns all lines, and the states
    to judge."""
    lines, kept, states, enough = [], [], [], min(ENOUGH, reps)
    while len(lines) < reps or (len(lines) < 3 * reps and max(map(len, states), default=0) < enough):
        before, values, after = line(), once(), line()
        lines.append([before, after])
        if changed(before, after):
            figures = " ".join(f"{value:.4g}" for value in values.values())
            tell(f"line {before:g} ns, then {after:g}: left out; figures {figures}")
        else:
            tell(f"line {before:g} ns, then {after:g}")
            kept.append((before, after, values))
            states = group(kept)
    return lines, [s for s in states if len(s) >= enough] or states


def repeat(m, r, o, reps, once, judge):
    """Measures with once(), which returns {figure: value}, and calls judge({figure: [values]}) for each state."""
    def line():
        return float(m.run(m.program(o, "bench_line")))

    lines, states = measure(line, reps, once, lambda text: print("  " + text, flush=True))
    r.lines += lines
    if not states:
        print("  0 repetitions in one state: not judged")
    for state in states:
        r.line = statistics.median(value for before, after, _ in state for value in (before, after))
        r.prefix = f"line {r.line:.0f} ns: "
        judge({key: [values[key] for _, _, values in state if key in values] for key in state[0][2]})
    r.prefix = ""
