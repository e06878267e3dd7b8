"""Runs a row of tools/programs: starts both ends, waits for them and checks the result."""
import contextlib
import os
import re
import subprocess
import tempfile
import time

from programs_ends import listening

READY = 20  # seconds a server may take to listen


class Outcome:
    def __init__(self, ok, text, seconds=0.0):
        self.ok, self.text, self.seconds = ok, text, seconds


def wait_for(row, column, server, until):
    while time.monotonic() < until:
        if column.wait_ready(row):
            return server.poll() is None
        if server.poll() is not None:
            return False
        time.sleep(0.05)
    return False


def judge(row, ends):
    for end, code, killed in ends:
        if killed:
            continue
        if code is None:
            return f"{end.name} had not ended after {row.seconds} s"
        excused = end.in_guest and any(re.search(p, end.text("err")) for p in row.excused)
        if code != 0 and not excused:
            last = (end.text("err") + end.text("out")).strip().split("\n")[-1]
            return f"{end.name}: exit code {code}: {last.strip()[:120]}"
        noise = (*row.noise, *(row.theirs + row.excused if end.in_guest else ()))
        for line in end.text("err").split("\n"):
            if line.strip() and not any(re.search(p, line) for p in noise):
                return f"{end.name} printed: {line.strip()[:120]}"
    return None


@contextlib.contextmanager
def own_files(row, folder):
    """Removes files that the row's programs create outside of `folder`. A file that another user left at the same path is hidden by a
    bind mount and not changed."""
    mounted, made = [], []
    for path in row.makes:
        if os.path.lexists(path):
            mine = os.path.join(folder, os.path.basename(path))
            open(mine, "w", encoding="ascii").close()
            subprocess.run(["mount", "--bind", mine, path], check=True)
            mounted.append(path)
        else:
            made.append(path)
    try:
        yield
    finally:
        for path in mounted:
            subprocess.run(["umount", "-l", path], check=False)
        for path in made:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def run_row(row, column, urnic, ends=None):
    """Runs the row in its own folder by `ends` (default run_ends)."""
    with tempfile.TemporaryDirectory(prefix="urnic-programs-") as folder, own_files(row, folder):
        column.enter(folder, urnic)
        try:
            return (ends or run_ends)(row, column, urnic, folder)
        finally:
            column.leave()


def prepare_run(row, column, urnic, folder):
    """Sets up environment and folder of a row's programs. Returns the words to put before their commands."""
    os.environ["TGT_IPC_SOCKET"] = os.path.join(folder, "tgt")  # the socket between tgtd and tgtadm
    # Not /tmp/urnic-0: it belongs to the real root, and our user id in the namespace is also 0.
    os.environ["XDG_RUNTIME_DIR"] = os.path.join(folder, "run")
    os.makedirs(os.environ["XDG_RUNTIME_DIR"], mode=0o700, exist_ok=True)
    os.environ.update(row.settings)
    column.begin(row, folder)
    return [urnic, "run"] + (["--sockets"] if row.sockets else []) + (["--sysfs"] if row.sysfs else []) + ["--"]


def run_ends(row, column, urnic, folder):
    """Runs both ends of a row in the column's namespace."""
    run = prepare_run(row, column, urnic, folder)
    begin = time.monotonic()
    until = begin + row.seconds
    ends = []
    server = None
    if row.server:
        server = column.server(row, run, folder)
        if not wait_for(row, column, server, begin + READY):
            code = server.poll()
            server.end()
            column.finish(row)
            return Outcome(False, f"the server did not listen on {row.port} (exit code {code}): {server.text('err').strip()[-120:]}")
    wrong = column.prepare(row, folder)
    clients = []
    for i in range(row.clients if wrong is None else 0):
        clients.append(column.client(row, run, folder, i, f"client{i}" if row.clients > 1 else "client"))
        if i + 1 < row.clients:
            time.sleep(row.pause)
    for c in clients:
        ends.append((c, c.wait(until), False))
        if ends[-1][1] != 0:
            until = min(until, time.monotonic() + 5)  # do not wait longer for the server
    if server is not None:
        if row.server_stays:
            server.end(row.killed)
            ends.append((server, 0, True))
        else:
            ends.append((server, server.wait(until), False))
    wrong = wrong or judge(row, ends)
    seconds = time.monotonic() - begin
    if wrong is None and row.wanted:
        text = clients[0].text("out")
        if not re.search(row.wanted, text):
            wrong = f"its output lacks '{row.wanted}': {' '.join(text.split())[-200:]}"
    for end, _, _ in ends:
        end.end()
    against = column.finish(row)
    wrong = wrong or against
    if wrong is None:
        left = set().union(*(listening(pid) for pid in column.namespaces()))
        if left:
            wrong = f"ports left: {sorted(left)}"
    return Outcome(wrong is None, wrong or "", seconds)
