"""Stand-ins for paid providers: their documented wire protocols over a real loopback socket.

    with provider_server("openai") as server:            # also "gemini", "anthropic"
        server.respond = lambda request: Reply(text="…") # default: a short echo of the last message
        server.queue(Reply(status=429), Reply(text="ok"))  # queued replies go first, one a request
        server.requests                                  # what was asked, in order
        server.cancelled                                 # requests whose caller hung up before the end

A request needs the key `server.key` ("test-key"). `server.models`, once set, are the only models that exist.
A structured request is answered by `Reply(text=json)`: as the message, or as the arguments of the tool that the
request insists on. Tokens are counted by `tokens_of`, so that tests know what usage to expect.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from provider_messages import Protocol, Reply, Request, tokens_of
from provider_wire import STREAM, WHOLE, error_reply

__all__ = ["ProviderServer", "Reply", "Request", "provider_server", "tokens_of"]


class ProviderServer:
    """A provider on a loopback port. Change its attributes at any time."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.key: str | None = "test-key"
        self.models: set[str] | None = None
        self.respond: Callable[[Request], Reply] = lambda request: Reply(text=f"Echo: {request.messages[-1][1][:60]}")
        self.requests: list[Request] = []
        self.cancelled = 0
        self.running = 0
        self.most_running = 0
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._queue: deque[Reply] = deque()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.base_url = self.address + ("/v1" if protocol == "openai" else "")

    def queue(self, *replies: Reply) -> None:
        """Replies for the next requests, before `respond` is asked."""
        self._queue.extend(replies)

    def next_reply(self, request: Request) -> Reply:
        with self.lock:
            self.requests.append(request)
            queued = self._queue.popleft() if self._queue else None
        if self.key is not None and request.key != self.key:
            return error_reply(self.protocol, 401, "", request)
        if self.models is not None and request.model and request.model not in self.models:
            return error_reply(self.protocol, 404, "", request)
        reply = queued or self.respond(request)
        if reply.json is not None or reply.malformed:
            return reply
        if reply.overflow or reply.status != 200:
            return error_reply(self.protocol, 400 if reply.overflow else reply.status, reply.message, request, reply)
        return reply

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


@contextlib.contextmanager
def provider_server(protocol: Protocol) -> Iterator[ProviderServer]:
    server = ProviderServer(protocol)
    try:
        yield server
    finally:
        server.close()


class _HungUp(Exception):
    """The caller went away."""


class _Handler(BaseHTTPRequestHandler):
    owner: ProviderServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        owner = self.owner
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(owner.protocol, self.command, self.path, headers, json.loads(data or b"{}"))
        with owner.lock:
            owner.running += 1
            owner.most_running = max(owner.most_running, owner.running)
        try:
            reply = owner.next_reply(request)
            if reply.hang_after is None:
                self._wait(reply.hang_s)
            if request.stream and reply.status == 200 and reply.json is None:
                self._stream(request, reply)
            else:
                self._whole(request, reply)
        except (_HungUp, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            with owner.lock:
                owner.cancelled += 1
        finally:
            with owner.lock:
                owner.running -= 1

    def _wait(self, seconds: float) -> None:
        """Sleep, unless the caller hangs up or the server closes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.owner.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.02))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _HungUp

    def _cut(self) -> None:
        """End the connection as a crash does: a reset, not a polite close."""
        self.wfile.flush()
        time.sleep(0.05)  # let what was sent arrive: a reset throws away what the other side has not read
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _whole(self, request: Request, reply: Reply) -> None:
        value = reply.json if reply.json is not None else WHOLE[request.protocol](request, reply)
        body = b'{"choices": [{"mess' if reply.malformed else json.dumps(value).encode()
        if reply.events:
            body = b"data: " + body + b"\n\n"
        self.send_response(reply.status)
        self.send_header("content-type", "text/event-stream" if reply.events else "application/json")
        self.send_header("content-length", str(len(body)))
        for name, text in reply.headers.items():
            self.send_header(name, text)
        self.end_headers()
        if reply.break_after is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[: min(reply.break_after, len(body) - 1)])
        self._cut()

    def _stream(self, request: Request, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if reply.malformed:
            self._chunk('data: {"choices": [{"delta\n\n')
            self._chunk("")
            return
        first, piece, last = STREAM[request.protocol]
        self._events(first(request, reply))
        ends = (reply.break_after, reply.failing_after, reply.ends_after)
        stops = {stop for stop in (*ends, reply.hang_after) if stop is not None}
        sent = 0
        for text in [] if reply.refusal else _pieces(reply.text, stops):
            if sent in ends:
                break
            if sent == reply.hang_after:
                self._wait(reply.hang_s)
            self._events(piece(request, text))
            self._wait(reply.pace_s)
            sent += len(text)
        if reply.break_after is not None:
            self._cut()
            return
        if reply.ends_after is not None:
            pass
        elif reply.failing_after is not None:
            failure = error_reply(request.protocol, 529 if request.protocol == "anthropic" else 500, "", request)
            self._events([("error", failure.json)])
        else:
            if sent == reply.hang_after:
                self._wait(reply.hang_s)
            self._events(last(request, reply))
            if request.protocol == "openai":
                self._chunk("data: [DONE]\n\n")
        self._chunk("")

    def _events(self, events: list[tuple[str, Any]]) -> None:
        for name, value in events:
            head = f"event: {name}\n" if self.owner.protocol == "anthropic" else ""
            self._chunk(f"{head}data: {json.dumps(value)}\n\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def _pieces(text: str, stops: set[int]) -> Iterator[str]:
    """Pieces of at most six characters that end where something is to happen."""
    start = 0
    while start < len(text):
        end = min([start + 6, len(text), *(stop for stop in stops if stop > start)])
        yield text[start:end]
        start = end
