"""A TCP proxy that does what networks do to a Redis: it is slow, and one day leads somewhere else.

    proxy = fault_proxy.Proxy(self, server.port)     # a process of its own, which ends with the test
    proxy.delay(0.5)         # what callers send arrives half a second later; pipelining is kept
    proxy.lead_to(port)      # open connections break; the next lead there

It runs beside the test, as `python3 fault_proxy.py PORT`, because a proxy that waits for the test's own
threads is slow when it should not be. Commands come on stdin, one a line, and are answered with "ok".
"""

import asyncio
import os
import socket
import subprocess
import sys

PIECE = 65536


class Proxy:
    """The process, as a test sees it."""

    def __init__(self, case, port):
        self._child = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(port)], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True, bufsize=1)
        case.addCleanup(self.end)
        self.port = int(self._child.stdout.readline())
        self.url = f"redis://127.0.0.1:{self.port}"

    def _tell(self, *words):
        self._child.stdin.write(" ".join(map(str, words)) + "\n")
        answer = self._child.stdout.readline().strip()
        if answer != "ok":
            raise OSError(f"the proxy answered {answer!r} to {words}")

    def delay(self, seconds):
        self._tell("delay", seconds)

    def lead_to(self, port):
        self._tell("lead_to", port)

    def end(self):
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


class Relay:
    """Everything behind one listening port."""

    def __init__(self, port):
        self.target, self.delay_s, self.open = port, 0.0, set()

    async def serve(self, reader, writer):
        """One connection of a caller, until either side ends it."""
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        for sink in (writer, there_writer):
            sink.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open |= {writer, there_writer}
        pumps = [asyncio.ensure_future(self.pump_late(reader, there_writer)),
                 asyncio.ensure_future(self.pump(there_reader, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self.open -= {writer, there_writer}
        writer.close()
        there_writer.close()

    @staticmethod
    async def pump(reader, writer):
        try:
            while piece := await reader.read(PIECE):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass  # either side is gone: serve() closes the other

    async def pump_late(self, reader, writer):
        """Each piece waits by itself, so that they stay as far apart as they came."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue(1024)

        async def send():
            while piece := (await pieces.get()):
                due, data = piece
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                writer.write(data)
                await writer.drain()
        sender = asyncio.ensure_future(send())
        try:
            while piece := await reader.read(PIECE):
                await pieces.put((loop.time() + self.delay_s, piece))
            await pieces.put(None)
            await sender
        except OSError:
            pass
        finally:
            sender.cancel()

    def command(self, line):
        name, value = line.split()
        if name == "delay":
            self.delay_s = float(value)
        elif name == "lead_to":
            self.target = int(value)
            for writer in list(self.open):
                writer.transport.abort()
        else:
            raise ValueError(f"no such command: {name}")


async def run(port):
    relay = Relay(port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        relay.command(line.decode())
        print("ok", flush=True)
    os._exit(0)  # connections that are open have nothing to say any more


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1])))
