#!/usr/bin/env python3
"""bench/compare: medians, spread, tables, weak points, pictures and generated text; missing, failing or hanging programs do not end it."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "bench"))
from compared import chart, costs, guests, page, pairs, pictures, record, sides  # noqa: E402

WRITES, KERNEL = "urnic, memif, MTU 9000", sides.KERNEL


def filled():
    """A record like that of a whole run, with easily recognized figures."""
    r = record.Record()
    r.about = {"date": "2026-01-02", "commit": "abc", "machine": {"cpu": "A <processor>", "cores": 2, "flags": ["avx2"]}, "kernel": "6.1", "rounds": 3,
               "versions": {"iperf3": "3.12"}, "seconds": 5, "load": [0.1, 2.0],
               "life": {"us": [0, 1000, 4000, 9000], "fast": [1, 1, 0, 1], "bytes": [0, 100000, 500000, 1000000], "reassembly": [0, 0, 4096, 0],
                        "events": [[1000, "drop", "crc"], [3000, "phase", "middlebox"]], "wrong": 0}}
    for i in range(3):
        r.add("throughput", WRITES, {64: 1 + i, 8 << 20: 10})
        r.add("throughput", KERNEL, {64: 9 + i, 1 << 20: 50})
        r.add("latency", WRITES, {64: 1 + i / 10})
        r.add("latency", KERNEL, {64: 0.5})
        r.add("cdf", WRITES, {0: 1, 50: 2, 99.99: 40})
        r.add("paths", "FAST", {1500: 20})
        for j, stage in enumerate(pictures.STAGES):
            r.add("stages", stage, {1500: 0.01 * (j + 1)})
        r.add("loss", costs.IWARP, {"0": 9, "1": 1})
        r.add("loss", costs.SELECTIVE, {"0": 9, "1": 8})
        r.add("perftest", WRITES, {next(iter(costs.LINES)): 12.5})
    r.leave_out("throughput", sides.UCX, "not there: package ucx-utils")
    return r


class Figures(unittest.TestCase):
    def test_the_median_of_the_rounds_with_the_least_and_the_most(self):
        self.assertEqual(record.spread([9, 1, 2]), (2, 1, 9))
        self.assertEqual(filled().at("throughput", WRITES, 64), (2, 1, 3))
        self.assertIsNone(filled().at("throughput", WRITES, 65))

    def test_points_are_in_the_order_of_numbers(self):
        r = filled()
        r.add("throughput", WRITES, {1024: 5})
        self.assertEqual([p[0] for p in r.points("throughput", WRITES)], [64, 1024, 8 << 20])

    def test_a_record_is_the_same_when_it_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            with open(path, "w", encoding="ascii") as f:
                f.write(filled().text())
            again = record.Record.read(path)
        self.assertEqual((again.measured, again.absent, again.about), (filled().measured, filled().absent, filled().about))
        self.assertEqual(again.rounds(), 3)

    def test_stages_are_what_is_added_by_each_loop(self):
        got = costs.stages(1500, 50, 25, 20, {"FAST": {"engine_gbytes": 20}, "SLOW": {"engine_gbytes": 10}})
        for stage, ns in ((costs.SUMS, 0.02), (costs.COPY, 0.02), (costs.PROTOCOL, 0.01), (costs.SECOND_COPY, 0.05)):
            self.assertAlmostEqual(got["stages", stage][1500], ns)
        self.assertEqual((got["paths", "FAST"], got["paths", "SLOW"]), ({1500: 20}, {1500: 10}))

    def test_the_rate_is_found_wherever_urnic_perf_puts_it(self):
        self.assertEqual(guests.rate_of({"a": 1, "results": [{"b": []}, {"bw_average_gbit_per_second": 2.5}]}), 2.5)
        self.assertIsNone(guests.rate_of({"a": [1, "x"]}))

    def test_the_distribution_of_one_size_is_kept_beside_its_median(self):
        self.assertEqual(sides.Sides.of_distribution(sides.CDF_SIZE, [[0, 1], [50, 2]]), {64: 2, ("cdf", 0): 1, ("cdf", 50): 2})
        self.assertEqual(sides.Sides.of_distribution(1024, [[0, 1], [50, 2]]), {1024: 2})


class Text(unittest.TestCase):
    def test_a_cell_has_median_and_spread(self):
        self.assertEqual(page.cell((2, 1, 3)), "2 (1 to 3)")
        self.assertEqual(page.cell((2, 2, 2)), "2")
        self.assertEqual(page.cell(None), "-")
        self.assertEqual((page.shown(123.4), page.shown(0.01234)), ("123", "0.0123"))

    def test_what_is_behind_by_more_than_the_spread_is_told(self):
        r = filled()
        self.assertEqual([p[0] for p in page.ahead(r, "throughput", WRITES, KERNEL)], [64])
        self.assertEqual([p[0] for p in page.ahead(r, "latency", WRITES, KERNEL)], [64])
        self.assertEqual(page.ahead(r, "throughput", KERNEL, WRITES), [])
        r.add("throughput", KERNEL, {64: 2.5})  # as good as our best
        self.assertEqual(page.ahead(r, "throughput", WRITES, KERNEL), [])
        r.measured["throughput"][KERNEL]["64"] = [3.01, 3.02]  # better than all of ours, but not by enough
        r.measured["throughput"][WRITES]["64"] = [3.0, 3.0]
        self.assertEqual(page.ahead(r, "throughput", WRITES, KERNEL), [])
        text = "\n".join(page.losses(filled()))
        self.assertIn("throughput, slower than **kernel TCP**: urnic, memif, MTU 9000 at 64 (furthest at 64: 2 against 10 Gb/s). Why: a memif", text)
        self.assertIn("loss, slower than **urnic, RoCE, selective repeat**: urnic, iWARP at 1 % lost", text)
        self.assertNotIn("at 0 % lost", text)

    def test_where_it_is_furthest_behind_is_told(self):
        r = filled()
        for i in range(3):
            r.add("throughput", WRITES, {1 << 20: 10})
        self.assertIn("at 64, 1 MiB (furthest at 64: ", "\n".join(page.losses(r)))  # 10 of 2; 50 of 10 is the same, the first
        r.add("throughput", KERNEL, {1 << 20: 5000})
        r.measured["throughput"][KERNEL]["1048576"] = [5000] * 3
        self.assertIn("furthest at 1 MiB: 10 against 5000 Gb/s", "\n".join(page.losses(r)))

    def test_the_page_names_machine_versions_and_what_is_not_there(self):
        text = page.comparison(filled())
        for part in ("2026-01-02", "`abc`", "3 rounds in 5 s", "iperf3 3.12", "Linux 6.1", "| urnic, memif, MTU 9000 | 2 (1 to 3) | - | 10 |",
                     "not there: package ucx-utils", "| 12.5 Gb/s |"):
            self.assertIn(part, text)
        self.assertNotIn("Other programs were running", text)
        self.assertNotIn("emulated guests", text)

    def test_guests_are_told_when_they_were_measured(self):
        r = filled()
        r.add("guests", "Linux siw", {"write": 0.2, "read": 0.1})
        self.assertIn("| Linux siw | 0.2 | 0.1 |", page.comparison(r))

    def test_a_machine_that_was_not_quiet_is_told(self):
        r = filled()
        r.about["load"] = [3.2, 0]
        self.assertIn("Other programs were running (load at the start 3.2", page.comparison(r))
        self.assertIn("load 3.2", pictures.beside(r))
        r.add("throughput", WRITES, {262144: 20})
        self.assertIn("one machine with other work on it: 20 Gb/s with RDMA Writes of 256 KiB", page.front(r))

    def test_blocks_are_filled_and_nothing_else_is_touched(self):
        before = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
        self.assertEqual(page.filled(before, {"x": "new \\1\n"}, "p"), "a\n<!-- x -->\nnew \\1\n<!-- end of x -->\nb\n")
        with self.assertRaises(SystemExit):
            page.filled("no block", {"x": ""}, "p")


class Pictures(unittest.TestCase):
    def test_each_is_svg_small_and_inside_its_card(self):
        found = pictures.drawn(filled())
        self.assertEqual(set(found), set(pictures.NEEDS) | {"life.svg"})
        for name, text in found.items():
            root = xml.etree.ElementTree.fromstring(text)
            width, height = float(root.get("width")), float(root.get("height"))
            for e in root.iter():
                for key, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                    if e.get(key):
                        self.assertTrue(0 <= float(e.get(key)) <= most, f"{name}: {e.attrib}")
            self.assertLess(len(text), 40000, name)
            self.assertIn("prefers-color-scheme:dark", text)
        self.assertIn(">1 Mi<", found["throughput.svg"])
        for name, text in found.items():
            self.assertEqual(text, pictures.drawn(filled())[name])

    def test_nothing_is_drawn_of_what_was_not_measured(self):
        r = record.Record()
        r.about = filled().about
        self.assertEqual(set(pictures.drawn(r)), {"life.svg"})

    def test_scales(self):
        self.assertEqual(chart.Scale(1, 100, True).at(10), 0.5)
        self.assertEqual(chart.Scale(0, 10).at(5), 0.5)
        self.assertAlmostEqual(chart.Nines.at(99), 0.5)
        self.assertEqual(chart.decades(0.2, 30), [0.1, 1, 10, 100])
        self.assertEqual(chart.round_ticks(9), [0, 2, 4, 6, 8, 10])
        self.assertEqual(pictures.size_name(8 << 20), "8 MiB")

    def test_life_in_bins_and_intervals(self):
        self.assertEqual(pictures.binned([0, 2000, 4000], [0, 250000, 250000]), [(2.0, 1000.0), (4.0, 0.0)])
        self.assertEqual(pictures.intervals([0, 1000, 2000], [1, 0, 0]), [(0, 1, True), (1, 2, False)])


class Runs(unittest.TestCase):
    def test_what_does_not_end_is_ended_with_what_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            seen = os.path.join(folder, "pid")
            began = time.monotonic()
            with self.assertRaisesRegex(pairs.Failed, "did not end in 1 s"):
                pairs.output(["sh", "-c", f"sleep 60 & echo $! >{seen}; wait"], bound=1)
            self.assertLess(time.monotonic() - began, 20)
            with open(seen, encoding="ascii") as f:
                child = int(f.read())
            state = subprocess.run(["ps", "-o", "stat=", "-p", str(child)], capture_output=True, text=True, check=False).stdout.strip()
            self.assertIn(state[:1], ("", "Z"))

    def test_a_failure_says_the_last_line(self):
        with self.assertRaisesRegex(pairs.Failed, "sh -c .*: no good"):
            pairs.output(["sh", "-c", "echo x; echo no good >&2; exit 3"])
        self.assertEqual(pairs.output(["sh", "-c", "echo x; exit 77"], skip=True), "x\n")

    def test_a_missing_program_is_named_with_its_package(self):
        with self.assertRaisesRegex(pairs.Absent, "^not there: package some-package$"):
            pairs.needs("some-package", "urnic-has-no-such-program")


def compare(*words, **more):
    return subprocess.run([sys.executable, os.path.join(TOP, "bench", "compare"), *words], capture_output=True, text=True, check=False, timeout=100, **more)


class Command(unittest.TestCase):
    def test_a_build_that_is_not_there_is_told_and_ends_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "k.json")
            done = compare("--quick", "--build", folder, "--only", "^latency: (urnic, memif, MTU 9000|kernel TCP)", "--json", kept)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("latency: kernel TCP: not there: bench_tcp_pingpong: build first", done.stdout)
            with open(kept, encoding="ascii") as f:
                self.assertEqual(set(json.load(f)["absent"]["latency"]), {WRITES, KERNEL})

    def test_what_cannot_be_is_refused_in_one_line(self):
        for words, why in ((["--quick", "--record"], "--record needs a full run"), (["--only", "no such point"], "no measurement matches"),
                           (["--rounds", "0"], "--rounds is at least 1"), (["--seconds", "0"], "from 0.05 to 10"), (["--check", "--from", "/nowhere.json"], "is not a record"),
                           (["--only", "("], "is not a regular expression")):
            done = compare(*words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(why, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_a_run_that_fails_is_told_and_the_others_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bench"))
            for name, text in (("bench_write_lat", "echo it broke >&2; exit 1"), ("bench_tcp_pingpong", "echo '[[0, 1], [50, 7.5]]'")):
                path = os.path.join(folder, "bench", name)
                with open(path, "w", encoding="ascii") as f:
                    f.write(f"#!/bin/sh\n{text}\n")
                os.chmod(path, 0o755)
            words = ["--quick", "--rounds", "2", "--build", folder, "--only"]
            done = compare(*words, "^(latency: (urnic, memif, MTU 9000|kernel TCP): 64|throughput: urnic, memif, MTU 1500: 64)$")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("latency: urnic, memif, MTU 9000: 64 failed: bench_write_lat"), 2)
            self.assertIn("2 runs failed", done.stderr)
            # Once in its round, once in the summary: a missing program is not tried again.
            self.assertEqual(done.stdout.count("not there: bench_write_bw"), 2, done.stdout)
            kept = record.Record.read(os.path.join(folder, "compare.json"))
            self.assertEqual((kept.at("latency", KERNEL, 64), kept.at("cdf", KERNEL, 50)), ((7.5, 7.5, 7.5), (7.5, 7.5, 7.5)))
            self.assertEqual(compare(*words, "^latency: urnic, memif, MTU 9000: 64$").returncode, 1)

    def test_what_is_written_is_what_is_checked(self):
        with tempfile.TemporaryDirectory() as tree:
            shutil.copytree(os.path.join(TOP, "bench"), os.path.join(tree, "bench"), ignore=shutil.ignore_patterns("*.cpp", "*.h"))
            os.makedirs(os.path.join(tree, "tests"))
            os.symlink(os.path.join(TOP, "tests", "interop"), os.path.join(tree, "tests", "interop"))
            os.mkdir(os.path.join(tree, "docs"))
            for name in ("README.md", "docs/performance.md"):
                shutil.copy(os.path.join(TOP, name), os.path.join(tree, name))
            source = os.path.join(tree, "r.json")
            with open(source, "w", encoding="ascii") as f:
                f.write(filled().text())

            def tool(flag):
                return subprocess.run([sys.executable, os.path.join(tree, "bench", "compare"), flag, "--from", source], capture_output=True, text=True,
                                      check=False, timeout=100)
            self.assertEqual(tool("--check").returncode, 1)
            self.assertEqual(tool("--write").returncode, 0)
            done = tool("--check")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(os.path.join(tree, "docs", "compare", "old.svg"), "w", encoding="ascii") as f:
                f.write("<svg/>")
            self.assertIn("docs/compare/old.svg: no longer generated", tool("--check").stderr)

    def test_pages_and_pictures_that_say_something_else_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "r.json")
            r = filled()
            r.add("throughput", WRITES, {64: 77})
            with open(path, "w", encoding="ascii") as f:
                f.write(r.text())
            done = compare("--check", "--from", path)
        self.assertEqual(done.returncode, 1)
        for made in ("docs/performance.md", "docs/compare/throughput.svg", "docs/compare/life.svg"):
            self.assertIn(f"differs from the record: {made}", done.stderr)


@unittest.skipUnless(os.environ.get("COMPARE_BUILD"), "ctest bench.compare says which build")
class Point(unittest.TestCase):
    def test_one_cheap_point_leaves_values_and_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "k.json")
            done = compare("--quick", "--seconds", "0.05", "--build", os.environ["COMPARE_BUILD"], "--only", "^(latency: (urnic, memif, MTU 9000|kernel TCP): 64|life)$",
                           "--json", kept, "--pictures", folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            r = record.Record.read(kept)
            for side in (WRITES, KERNEL):
                self.assertGreater(r.at("latency", side, 64)[0], 0, done.stdout)
                values = [p[1] for p in r.points("cdf", side)]
                self.assertEqual(values, sorted(values))
            self.assertEqual(r.about["life"]["wrong"], 0)
            for name in ("latency.svg", "latency-cdf.svg", "life.svg"):
                xml.etree.ElementTree.parse(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
