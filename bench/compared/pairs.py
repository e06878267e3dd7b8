"""Starts the programs that bench/compare measures: pairs with one core each, a time limit, ended by process id."""
import os
import shutil
import signal
import subprocess
import time

LISTENS = 0.5  # seconds for a server to start listening
BOUND = 40  # limit of any run in seconds


class Absent(Exception):
    """A side that cannot be measured here, with the reason."""


class Failed(Exception):
    """A failed run."""


def needs(package, *programs):
    for program in programs:
        if not shutil.which(program):
            raise Absent(f"not there: package {package}")


def end(process):
    """Ends the process and everything in its process group."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(3)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def output(command, bound=BOUND, skip=False, **more):
    """The output of one program; `skip`: it may also end with 77 if something is missing."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace",
                               start_new_session=True, **more)
    try:
        out, err = process.communicate(timeout=bound)
    except subprocess.TimeoutExpired:
        raise Failed(f"{os.path.basename(command[0])} did not end in {bound} s") from None
    finally:
        end(process)
        process.stdout.close()
        process.stderr.close()
    if process.returncode != 0 and not (skip and process.returncode == 77):
        last = (err.strip() or out.strip() or "nothing was said").splitlines()[-1]
        raise Failed(f"{' '.join(map(os.path.basename, command[:4]))} ...: {last[-200:]}")
    return out


def client_of(server, client, **more):
    """Runs the server on CPU 0 and the client on CPU 1; returns the client's output."""
    peer = subprocess.Popen(["taskset", "-c", "0", *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                            start_new_session=True, **more)
    try:
        time.sleep(LISTENS)
        return output(["taskset", "-c", "1", *client], **more)
    finally:
        end(peer)
