"""Stand-ins for providers of encoders: their documented wire protocols over a real loopback socket.

    with embedding_server("openai") as server:      # also "compatible", "google", "cohere", "ollama"
        server.queue(Fault(status=429))              # queued faults go first, one a request
        server.requests                              # what was asked, in order
        open_embedder("openai:text-embedding-3-small", base_url=server.base_url, api_key="test-key")

Vectors are real ones, of the shipped encoder, repeated up to the dimensions asked for, so that questions find their
documents; they are not of length 1, as shortened ones of providers are not. What a provider refuses is refused: empty
texts, too many of them, texts of more than `server.most_tokens` (four characters each), a wrong key, an unknown model.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt

from cognicraft.models.minilm import MiniLM

DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "gemini-embedding-001": 3072,
    "gemini-embedding-2": 3072,
    "embed-v4.0": 1536,
    "embed-english-v3.0": 1024,
    "nomic-embed-text": 768,
    "some-encoder": 64,
}
MOST_TEXTS = {"openai": 2048, "compatible": 32, "google": 100, "cohere": 96, "ollama": 10_000}


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request. json: the body beside the status; malformed: half of a body that is JSON;
    cut: the connection ends in the middle of the reply; hang_s: silence first; drip_s: a byte after each such pause."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    malformed: bool = False
    cut: bool = False
    hang_s: float = 0.0
    drip_s: float = 0.0


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    texts: list[str]
    model: str


class EmbeddingServer:
    """One provider on a loopback port. Change its attributes at any time."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.key: str | None = None if protocol in ("ollama", "compatible") else "test-key"
        self.most_tokens = 1_000_000
        self.requests: list[Request] = []
        self.running = self.most_running = 0
        self.pace_s = 0.0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self._faults: deque[Fault] = deque()
        self._encoder = MiniLM(threads=1)
        self._kept: dict[str, npt.NDArray[np.float32]] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        address = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.base_url = address + ("/v1" if protocol in ("openai", "compatible") else "")

    @property
    def texts(self) -> list[str]:
        """Every text that came, in order of the requests."""
        return [text for request in self.requests for text in request.texts]

    def queue(self, *faults: Fault) -> None:
        self._faults.extend(faults)

    def next_fault(self) -> Fault | None:
        with self.lock:
            return self._faults.popleft() if self._faults else None

    def vectors(self, texts: Sequence[str], dimensions: int) -> list[list[float]]:
        for text in texts:
            if text not in self._kept:
                (encoding,) = self._encoder.encode_documents([text])
                self._kept[text] = encoding.vector
        rows = [np.resize(self._kept[text], max(dimensions, 384))[:dimensions] for text in texts]
        return [[float(value) * 0.5 for value in row] for row in rows]

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)
        self._encoder.close()


@contextlib.contextmanager
def embedding_server(protocol: str) -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(protocol)
    try:
        yield server
    finally:
        server.close()


class _Handler(BaseHTTPRequestHandler):
    owner: EmbeddingServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        owner = self.owner
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            self.path, headers, body, _texts(owner.protocol, body), _model(owner.protocol, self.path, body)
        )
        with owner.lock:
            owner.requests.append(request)
            owner.running += 1
            owner.most_running = max(owner.most_running, owner.running)
        try:
            time.sleep(owner.pace_s)
            fault = owner.next_fault() or Fault()
            if fault.hang_s:
                owner.closing.wait(fault.hang_s)
            if fault.status != 200 or fault.json is not None:
                said = fault.json if fault.json is not None else _error(owner.protocol, fault.status, "It failed.")
                self._send(fault.status, said, fault)
            else:
                self._send(*_reply(owner, request), fault)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with owner.lock:
                owner.running -= 1

    def _send(self, status: int, value: Any, fault: Fault) -> None:
        data = json.dumps(value).encode()
        data = data[: len(data) // 2] if fault.malformed else data
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in fault.headers.items():
            self.send_header(name, text)
        self.end_headers()
        if fault.drip_s:
            for byte in data:
                if self.owner.closing.wait(fault.drip_s):
                    return
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            return
        self.wfile.write(data[: len(data) // 2] if fault.cut else data)
        if fault.cut:
            self.close_connection = True


def _texts(protocol: str, body: dict[str, Any]) -> list[str]:
    if protocol == "google":
        return [one["content"]["parts"][0]["text"] for one in body.get("requests", [])]
    if protocol == "cohere":
        return list(body.get("texts", []))
    return list(body.get("input", []))


def _model(protocol: str, path: str, body: dict[str, Any]) -> str:
    if protocol == "google":
        return path.rpartition("/models/")[2].partition(":")[0]
    return str(body.get("model", "")).removesuffix(":latest")


def _reply(owner: EmbeddingServer, request: Request) -> tuple[int, Any]:
    protocol, headers = owner.protocol, request.headers
    key = headers.get("x-goog-api-key", "") if protocol == "google" else headers.get("authorization", "")[7:]
    if owner.key is not None and key != owner.key:
        return (400 if protocol == "google" else 401), _wrong_key(protocol, key)
    if request.model not in DIMENSIONS:
        return 404, _error(protocol, 404, f'model "{request.model}" not found, try pulling it first')
    if protocol == "ollama" and request.path == "/api/show":
        info = {"general.architecture": "bert", "bert.context_length": 2048, "bert.embedding_length": 768}
        return 200, {"model_info": info, "parameters": "num_ctx                        1024"}
    paths = {
        "openai": "/v1/embeddings",
        "compatible": "/v1/embeddings",
        "google": f"/v1beta/models/{request.model}:batchEmbedContents",
        "cohere": "/v2/embed",
        "ollama": "/api/embed",
    }
    if request.path != paths[protocol]:
        return 404, _error(protocol, 404, f"no such path: {request.path}")
    if not request.texts or len(request.texts) > MOST_TEXTS[protocol]:
        return 400, _error(protocol, 400, f"between 1 and {MOST_TEXTS[protocol]} texts, not {len(request.texts)}")
    if not all(request.texts):
        return 400, _error(protocol, 400, "'$.input' is invalid: a text is empty")
    longest = max(len(text) // 4 for text in request.texts)
    if longest > owner.most_tokens:
        return 400, _error(protocol, 400, _too_long(protocol, owner.most_tokens, longest))
    return 200, _VECTORS[protocol](owner, request)


def _too_long(protocol: str, most: int, found: int) -> str:
    return {
        "ollama": "the input length exceeds the context length",
        "cohere": f"invalid request: too many tokens: max tokens per text is {most}",
    }.get(protocol, f"This model's maximum context length is {most} tokens, however you requested {found} tokens.")


def _dimensions(request: Request, field_name: str) -> int:
    return int(request.body.get(field_name) or DIMENSIONS[request.model])


def _openai(owner: EmbeddingServer, request: Request) -> Any:
    rows: list[Any] = owner.vectors(request.texts, _dimensions(request, "dimensions"))
    if request.body.get("encoding_format") == "base64":
        rows = [base64.b64encode(np.array(row, "<f4").tobytes()).decode() for row in rows]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data[::-1], "model": request.model, "usage": usage}


def _google(owner: EmbeddingServer, request: Request) -> Any:
    dimensions = int(request.body["requests"][0].get("outputDimensionality") or DIMENSIONS[request.model])
    return {"embeddings": [{"values": row} for row in owner.vectors(request.texts, dimensions)]}


def _cohere(owner: EmbeddingServer, request: Request) -> Any:
    assert request.body["input_type"] in ("search_query", "search_document")
    rows = owner.vectors(request.texts, _dimensions(request, "output_dimension"))
    return {"id": "1", "texts": request.texts, "embeddings": {"float": rows}, "meta": {"api_version": {"version": "2"}}}


def _ollama(owner: EmbeddingServer, request: Request) -> Any:
    rows = owner.vectors(request.texts, _dimensions(request, "dimensions"))
    return {"model": request.model, "embeddings": rows, "total_duration": 1, "prompt_eval_count": 1}


_VECTORS = {"openai": _openai, "compatible": _openai, "google": _google, "cohere": _cohere, "ollama": _ollama}


def _wrong_key(protocol: str, key: str) -> Any:
    if protocol == "google":
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
        words = "API key not valid. Please pass a valid API key."
        return {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT", "details": details}}
    return _error(protocol, 401, f"Incorrect API key provided: {key}.")


def _error(protocol: str, status: int, words: str) -> Any:
    if protocol == "cohere":
        return {"message": words}
    if protocol == "ollama":
        return {"error": words}
    if protocol == "google":
        return {"error": {"code": status, "message": words, "status": "FAILED"}}
    return {"error": {"message": words, "type": "error", "param": None, "code": None}}
