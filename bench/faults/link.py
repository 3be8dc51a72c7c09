"""The way from a daemon to the API server, which can be broken in several ways. All links of a run are
served by one thread."""
import asyncio
import contextlib
import socket
import struct
import threading

OPEN, REFUSED, SILENT = "open", "refused", "silent"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends a reset


class Loop:
    """The thread, as a context."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.call(_end_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


async def _end_all():
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Link:
    """Carries what comes to 127.0.0.1:port, or to a listening socket that is given, to
    127.0.0.1:target."""

    def __init__(self, loop, target, listener=None):
        self._loop, self._target = loop, target
        self._mode, self._delay, self._carried = OPEN, 0.0, set()
        self._listener = listener or socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        self._passing = None
        loop.call(self._begin())

    # -- how it is broken ----------------------------------------------------------------

    def refuse(self):
        """Connections are reset, and so are new ones."""
        self._loop.call(self._set(REFUSED))

    def fall_silent(self):
        """Connections stay, and are accepted, but nothing passes."""
        self._loop.call(self._set(SILENT))

    def slow_down(self, seconds):
        """All that passes waits that long, each way."""
        self._delay = seconds

    def lose(self):
        """The connections there are stay silent for ever; new ones work."""
        self._loop.call(self._lose())

    def open(self):
        self._delay = 0.0
        self._loop.call(self._set(OPEN))

    # -- the thread's side ---------------------------------------------------------------

    async def _begin(self):
        self._passing = asyncio.Event()
        self._passing.set()
        self._server = await asyncio.start_server(self._serve, sock=self._listener)

    async def _set(self, mode):
        self._mode = mode
        if mode == SILENT:
            self._passing.clear()
        else:
            self._passing.set()
        if mode == REFUSED:
            for one in list(self._carried):
                one.reset()

    async def _lose(self):
        for one in list(self._carried):
            one.lost = True

    async def _serve(self, reader, writer):
        await self._passing.wait()
        if self._mode == REFUSED:
            _reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _reset(writer)
            return
        one = _Carried(writer, far_writer)
        self._carried.add(one)
        try:
            await asyncio.gather(self._copy(one, reader, far_writer),
                                 self._copy(one, far_reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._carried.discard(one)
            one.reset()

    async def _copy(self, one, reader, writer):
        while True:
            data = await reader.read(65536)
            await self._passing.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            if one.lost:
                if not data:
                    raise ConnectionError  # our side gave it up, or the server did
                continue
            if not data:
                with contextlib.suppress(OSError, RuntimeError):
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()


class _Carried:
    def __init__(self, *writers):
        self.writers, self.lost = writers, False

    def reset(self):
        for writer in self.writers:
            _reset(writer)


def _reset(writer):
    with contextlib.suppress(OSError, AttributeError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
