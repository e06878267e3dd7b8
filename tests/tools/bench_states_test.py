#!/usr/bin/env python3
"""bench/states.py leaves out repetitions whose line changed, judges the others state by state, and repeats if they are
too few."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "bench"))
import states  # noqa: E402


class Report:
    def __init__(self):
        self.lines, self.prefix, self.line = [], "", None


class Bench:
    """Stands for bench/run: bench_line prints the given values, one after another."""

    def __init__(self, lines):
        self.lines = iter(lines)

    def program(self, _options, name):
        return name

    def run(self, name):
        assert name == "bench_line"
        return f"{next(self.lines)}\n"


def measured(lines, reps):
    """The report, and what was judged: [(prefix, line, values)]. Repetition n has the figure n, from 1 on."""
    report, judged, numbers = Report(), [], iter(range(1, 100))
    states.repeat(Bench(lines), report, None, reps, lambda: {"figure": next(numbers)},
                  lambda values: judged.append((report.prefix, report.line, values["figure"])))
    return report, judged


class Groups(unittest.TestCase):
    def test_a_state_reaches_25_percent_above_its_smallest_mean(self):
        found = states.group([(50, 50, "b"), (40, 40, "a"), (51, 51, "c"), (60, 64, "d"), (63, 65, "e")])
        self.assertEqual([[one[2] for one in state] for state in found], [["a", "b"], ["c", "d"], ["e"]])

    def test_a_line_changed_if_it_differs_by_more_than_25_percent(self):
        self.assertFalse(states.changed(40, 50))
        self.assertFalse(states.changed(50, 40))
        self.assertTrue(states.changed(40, 51))
        self.assertTrue(states.changed(51, 40))


class Repetitions(unittest.TestCase):
    def test_two_states_are_judged_separately(self):
        near, far = [60, 62], [200, 210]
        report, judged = measured(near + far + near + far + near + far, 6)
        self.assertEqual(judged, [("line 61 ns: ", 61, [1, 3, 5]), ("line 205 ns: ", 205, [2, 4, 6])])
        self.assertEqual(report.lines, [near, far] * 3)
        self.assertEqual(report.prefix, "")

    def test_a_repetition_whose_line_changed_is_recorded_and_left_out(self):
        report, judged = measured([60, 60, 60, 200, 60, 60, 60, 60], 4)
        self.assertEqual(judged, [("line 60 ns: ", 60, [1, 3, 4])])
        self.assertEqual(report.lines, [[60, 60], [60, 200], [60, 60], [60, 60]])

    def test_a_state_with_few_repetitions_is_not_judged_beside_one_with_enough(self):
        _, judged = measured([60, 60, 60, 60, 200, 200, 60, 60], 4)
        self.assertEqual(judged, [("line 60 ns: ", 60, [1, 2, 4])])

    def test_more_repetitions_are_run_until_a_state_has_three(self):
        report, judged = measured([60, 60, 200, 200, 60, 200, 60, 60, 200, 200, 200, 200], 3)
        self.assertEqual(judged, [("line 200 ns: ", 200, [2, 5, 6])])
        self.assertEqual(len(report.lines), 6)

    def test_at_most_three_times_as_many_are_run_and_then_every_state_is_judged(self):
        lines = [60, 60, 200, 200, 60, 60, 200, 200] + [60, 200] * 5
        report, judged = measured(lines, 3)
        self.assertEqual([values for _, _, values in judged], [[1, 3], [2, 4]])
        self.assertEqual(len(report.lines), 9)

    def test_one_repetition_is_enough_if_one_was_asked_for(self):
        _, judged = measured([60, 61], 1)
        self.assertEqual(judged, [("line 60 ns: ", 60.5, [1])])

    def test_nothing_is_judged_if_every_repetition_changed_its_line(self):
        report, judged = measured([60, 200] * 3, 1)
        self.assertEqual(judged, [])
        self.assertEqual(report.lines, [[60, 200]] * 3)


if __name__ == "__main__":
    unittest.main()
