#!/usr/bin/env python3
"""preload_test.py FOLDER - the socket calls of a program written for TCP sockets, with librspreload.so
of FOLDER: Python's own, both ends in one process, over loopback. It starts itself again with the library."""
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

MAIN = []


def case(f):
    MAIN.append(f)
    return f


def pair():
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname(), timeout=10)
    server, address = listener.accept()
    assert address == client.getsockname(), (address, client.getsockname())
    client.settimeout(10)
    server.settimeout(10)
    listener.close()
    return client, server


def read_all(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)


@case
def sendto_of_a_connected_one_ignores_the_address():
    client, server = pair()
    assert client.sendto(b"hello", ("127.0.0.1", 9)) == 5
    client.close()
    assert read_all(server) == b"hello"
    server.close()


@case
def is_an_rsocket():
    """The kernel has a local socket by that number, the program a TCP socket."""
    with socket.socket() as s:
        assert os.readlink(f"/proc/self/fd/{s.fileno()}").startswith("socket:")
        assert s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
        s.setsockopt(0x10000, 3, 7)  # SOL_RDMA, RDMA_IOMAPSIZE: a TCP socket does not have it
        assert s.getsockopt(0x10000, 3) == 7
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))  # a kernel socket
        try:
            s.setsockopt(0x10000, 3, 7)
            raise AssertionError("a datagram socket is an rsocket")
        except OSError:
            pass


@case
def a_stream_goes_both_ways():
    client, server = pair()
    data = os.urandom(3_000_000)
    t = threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR)))
    t.start()
    assert read_all(server) == data
    t.join()
    server.sendall(b"answer")
    server.close()
    assert read_all(client) == b"answer"
    client.close()


@case
def select_poll_and_epoll_wait_for_it():
    client, server = pair()
    server.setblocking(False)
    poll, ep = select.poll(), select.epoll()
    poll.register(server, select.POLLIN)
    ep.register(server, select.EPOLLIN | select.EPOLLET)
    assert not poll.poll(20) and not ep.poll(0) and not select.select([server], [], [], 0)[0]
    for _ in range(20):
        t = threading.Timer(0.005, client.send, [b"x"])
        t.start()
        assert ep.poll(10), "the edge did not come"
        assert poll.poll(0) and select.select([server], [], [], 0)[0]
        assert server.recv(10) == b"x"
        try:
            server.recv(10)
            raise AssertionError("there was more")
        except BlockingIOError:
            pass
        t.join()
    client.close()
    assert select.select([server], [], [], 10)[0]
    assert server.recv(1) == b""
    assert poll.poll(0)[0][1] & select.POLLHUP
    server.close()


@case
def an_event_loop_serves():
    import asyncio

    async def main():
        async def echo(reader, writer):
            while part := await reader.read(4096):
                writer.write(part)
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        at = server.sockets[0].getsockname()
        data = os.urandom(400_000)

        async def talk():
            reader, writer = await asyncio.open_connection(*at)
            writer.write(data)
            writer.write_eof()
            assert await reader.read(-1) == data
            writer.close()

        await asyncio.wait_for(asyncio.gather(*[talk() for _ in range(5)]), 30)
        server.close()

    asyncio.run(main())


def free_number(least):
    """The library has descriptors of its own, which the program must not close."""
    taken = {int(n) for n in os.listdir("/proc/self/fd")}
    return next(n for n in range(least, least + 1000) if n not in taken)


@case
def numbers_are_doubled_and_lent_to_files():
    client, server = pair()
    other = client.dup()
    client.close()
    other.sendall(b"line one\nline two\n")
    server.settimeout(None)  # with a time-out, Python makes it non-blocking
    number = os.dup(server.fileno())
    server.close()
    assert os.read(number, 5) == b"line "
    twin = free_number(number + 20)
    os.dup2(number, twin)
    os.close(number)
    assert os.read(twin, 100) == b"one\nline two\n"
    assert os.write(twin, b"back\n") == 5
    with other.makefile("r") as f:
        assert f.readline() == "back\n"
    other.close()
    assert os.read(twin, 1) == b"", "the last number of the other end ended it"
    os.close(twin)


@case
def a_file_is_sent():
    client, server = pair()
    data = os.urandom(300_001)
    with tempfile.TemporaryFile() as f:
        f.write(data)
        f.flush()
        t = threading.Thread(target=lambda: (client.sendfile(f), client.close()))
        t.start()
        assert read_all(server) == data
        t.join()
        assert f.tell() == len(data)
    server.close()


@case
def waiting_has_its_bounds():
    client, server = pair()
    client.settimeout(0.05)
    try:
        client.recv(1)
        raise AssertionError("it got something")
    except TimeoutError:
        pass
    client.settimeout(None)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50_000))
    try:
        client.recv(1)
        raise AssertionError("it got something")
    except BlockingIOError:
        pass
    server.settimeout(None)
    fcntl.ioctl(server, 0x5421, struct.pack("i", 1))  # FIONBIO
    try:
        server.recv(1)
        raise AssertionError("it got something")
    except BlockingIOError:
        pass
    client.send(b"seven..")
    assert select.select([server], [], [], 10)[0]
    assert struct.unpack("i", fcntl.ioctl(server, termios.FIONREAD, b"\0" * 4))[0] == 7
    client.close()
    server.close()


@case
def nobody_there_is_told():
    listener = socket.create_server(("127.0.0.1", 0))
    at = listener.getsockname()
    listener.close()
    try:
        socket.create_connection(at, timeout=10)
        raise AssertionError("there is somebody")
    except ConnectionRefusedError:
        pass


@case
def who_sends_to_a_closed_end_hears_of_it_by_signal():
    heard = []
    signal.signal(signal.SIGPIPE, lambda *_: heard.append(threading.current_thread()))
    sends = [lambda s: s.send(b"x"), lambda s: os.write(s.fileno(), b"x"), lambda s: s.sendmsg([b"x"]),
             lambda s: os.writev(s.fileno(), [b"x", b"y"])]
    for i, send in enumerate(sends, 1):
        client, server = pair()
        client.close()
        assert server.recv(1) == b""
        try:
            server.send(b"x", socket.MSG_NOSIGNAL)
            raise AssertionError("the other end is closed")
        except BrokenPipeError:
            time.sleep(0)
            assert len(heard) == i - 1, "it asked for the error alone"
        try:
            send(server)
            raise AssertionError("the other end is closed")
        except BrokenPipeError:
            time.sleep(0)  # Python calls its handler between two steps
            assert len(heard) == i, i
        server.close()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        client, server = pair()
        client.close()
        server.recv(1)
        server.send(b"x")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPIPE, status
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@case
def children_run_beside_it():
    client, server = pair()
    out = subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True, text=True)
    assert (out.stdout, out.returncode) == ("child\n", 3)
    child = os.fork()
    if child == 0:
        try:
            client.send(b"not mine")
        except OSError:
            client.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, "a child may use what it inherited"
    client.send(b"mine")
    assert server.recv(10) == b"mine"
    client.close()
    assert server.recv(1) == b""
    server.close()


def main():
    folder = os.path.realpath(sys.argv[1])
    library = os.path.join(folder, "librspreload.so")
    if os.environ.get("LD_PRELOAD") != library:
        environment = dict(os.environ, LD_PRELOAD=library, LD_LIBRARY_PATH=folder)
        os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), folder], environment)
    for f in MAIN:
        f()
        print(f"ok {f.__name__}", flush=True)


if __name__ == "__main__":
    main()
