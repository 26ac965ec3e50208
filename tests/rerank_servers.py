"""Stand-ins for rerank services and for the Hugging Face hub: their documented wire over a real loopback socket.

    with rerank_server("cohere") as server:              # also "jina", "tei"
        server.queue(Fault(status=429, headers={"Retry-After": "0"}), Fault(body=b"not JSON"))   # these go first
        server.requests                                  # (path, headers, body) in order
    with hub_server({"owner/name": folder}) as endpoint:  # a hub that holds these folders

A score is the share of the question's words that the passage holds. `server.key` is the key it wants, None for none.
A passage longer than `most_characters`, or more than `most_passages`, is refused as TEI does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

Shape = Literal["cohere", "jina", "tei"]
PATHS = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "tei": "/rerank"}


@dataclass(frozen=True)
class Fault:
    """What the stand-in does in place of a good reply. cut_after: bytes of the body sent, then a reset, or with
    `politely` an ordinary close. hang_s: silence
    before the reply; drip_s: pause after each byte of the body."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    politely: bool = False
    hang_s: float = 0.0
    drip_s: float = 0.0


class RerankServer:
    """A rerank service on a loopback port. Change its attributes at any time."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.key: str | None = "test-key"
        self.models: set[str] | None = None
        self.most_characters = 100_000
        self.most_passages = 32 if shape == "tei" else 1000
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.closing = threading.Event()
        self._queue: deque[Fault] = deque()
        self._http = _serve(type("Handler", (_RerankHandler,), {"owner": self}))
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.url = self.address + PATHS[shape]

    def queue(self, *faults: Fault) -> None:
        """For the next requests, one each."""
        self._queue.extend(faults)

    def next_fault(self) -> Fault | None:
        return self._queue.popleft() if self._queue else None

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


@contextlib.contextmanager
def rerank_server(shape: Shape) -> Iterator[RerankServer]:
    server = RerankServer(shape)
    try:
        yield server
    finally:
        server.close()


def _serve(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    return http


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send(self, status: int, body: bytes, headers: Mapping[str, str], *, fault: Fault | None = None) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault is not None and fault.drip_s:
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(fault.drip_s)
        elif fault is not None and fault.cut_after is not None:
            self.wfile.write(body[: fault.cut_after])
            self.wfile.flush()
            self.close_connection = True
            if fault.politely:
                return
            time.sleep(0.05)  # a reset throws away what the other side has not read
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            self.wfile.write(body)


class _RerankHandler(_Handler):
    owner: RerankServer

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.owner.requests.append((self.path, headers, data))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            fault = self.owner.next_fault()
            if fault is not None:
                self.owner.closing.wait(fault.hang_s)
                self.send(fault.status, fault.body, fault.headers, fault=fault)
                return
            status, value = self._answer(data, headers)
            self.send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(self, data: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
        owner, tei = self.owner, self.owner.shape == "tei"
        if owner.key is not None and headers.get("authorization") != f"Bearer {owner.key}":
            return 401, {"message": "no valid api token"} if not tei else {"error": "Unauthorized"}
        if self.path != PATHS[owner.shape]:
            return 404, {"message": f"no route {self.path}"}
        if owner.models is not None and data["model"] not in owner.models:
            return 404, {"message": f"model '{data['model']}' not found"}
        texts = data["texts" if tei else "documents"]
        if not data["query"] or not texts or any(not text for text in texts):
            return 422, {"message": "query and documents must not be empty"}
        if len(texts) > owner.most_passages:
            text = f"batch size {len(texts)} > maximum allowed batch size {owner.most_passages}"
            return 422, {"error": text, "error_type": "Validation"}
        if any(len(text) > owner.most_characters for text in texts):
            return 413, {"error": "`inputs` must have less tokens", "error_type": "Validation"}
        words = set(data["query"].lower().split())
        scores = [len(words & set(text.lower().split())) / len(words) for text in texts]
        best = sorted(range(len(texts)), key=lambda index: -scores[index])
        if tei:
            return 200, [{"index": index, "score": scores[index]} for index in best]
        results = [{"index": index, "relevance_score": scores[index]} for index in best]
        if owner.shape == "cohere":
            return 200, {"id": "1", "results": results, "meta": {"api_version": {"version": "2"}}}
        return 200, {"model": data["model"], "usage": {"total_tokens": 1}, "results": results}


@contextlib.contextmanager
def hub_server(repositories: Mapping[str, Path]) -> Iterator[str]:
    """The address of a hub; an unknown repository is a 404 as the hub gives it."""
    http = _serve(type("Hub", (_HubHandler,), {"repositories": dict(repositories)}))
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()


class _HubHandler(_Handler):
    """What a download needs: the revision, the list of files, each file by HEAD and GET."""

    repositories: Mapping[str, Path]
    commit = "0123456789abcdef0123456789abcdef01234567"

    protocol_version = "HTTP/1.0"  # no connection outlives the server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0].strip("/")
        parts = path.removeprefix("api/models/").split("/")
        folder = self.repositories.get("/".join(parts[:2]))
        if folder is None:
            self.send(404, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"})
        elif not path.startswith("api/"):
            self._file(folder / "/".join(parts[4:]))
        elif "tree" in parts:
            self._json([self._entry(folder, file) for file in sorted(folder.rglob("*")) if file.is_file()])
        else:
            files = [file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*")) if file.is_file()]
            name = "/".join(parts[:2])
            self._json({"id": name, "sha": self.commit, "siblings": [{"rfilename": file} for file in files]})

    def _entry(self, folder: Path, file: Path) -> dict[str, Any]:
        data = file.read_bytes()
        path = file.relative_to(folder).as_posix()
        return {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}

    def _json(self, value: Any) -> None:
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _file(self, file: Path) -> None:
        if not file.is_file():
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": self.commit})
            return
        data = file.read_bytes()
        etag = f'"{hashlib.sha1(data).hexdigest()}"'
        self.send(200, data, {"ETag": etag, "X-Repo-Commit": self.commit})
