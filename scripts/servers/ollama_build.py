"""Builds Ollama from its Go module, once: five minutes of processor time, then it lies in the cache folder.

The archive of a Go module leaves folders without Go code out, and with them three header-only libraries that
Ollama's C++ code includes. They come from elsewhere: nlohmann/json and stb from Debian's packages (installed, or
fetched by apt, or from Debian's archive), miniaudio from the source archive of PyPI `miniaudio`.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from serving import CannotBeHad, Failed, pip_download, say, sha256_of

MODULE = "github.com/ollama/ollama@v0.17.4"
MINIAUDIO = "miniaudio==1.71"
MINIAUDIO_SHA256 = "ff51e2887bb673e2e757752b586b3dc924d59aa5fbcae9bbc45f4a111bd3262b"
INSTALLED = (Path("/usr/include"), Path("/usr/local/include"), Path("/opt/homebrew/include"))
# Header -> (Debian package, where Debian keeps the file, its hash).
HEADERS = {
    "nlohmann/json.hpp": (
        "nlohmann-json3-dev",
        "n/nlohmann-json3/nlohmann-json3-dev_3.11.2-2_all.deb",
        "ec57940def6b6186c30be0e0ee81d1e58f86d11a54a145b28686a1e3e4aae801",
    ),
    "stb/stb_image.h": (
        "libstb-dev",
        "libs/libstb/libstb-dev_0.0~git20220908.8b5f1f3+ds-1_amd64.deb",
        "4f85f82942c61845ac96d64d722ef1b2f4897d6662cb98bc5ff78596b8fbb144",
    ),
}
DEBIAN = "https://deb.debian.org/debian/pool/main/"
# Instructions that the compiler does not use unless told to, though nearly every processor of today has them.
WIDE = ("avx2", "fma", "f16c", "bmi2")


def program(folder: Path) -> Path:
    """The built program for this processor; built here the first time. Raises: CannotBeHad, Failed."""
    wide = _has_wide_instructions()
    # Two names, as the folder may be carried to another machine.
    built = folder / "bin" / ("ollama-avx2" if wide else "ollama")
    if built.is_file():
        return built
    for tool, hint in (
        ("go", "Go 1.24 or later from go.dev or your package manager"),
        ("gcc", "a C compiler, on Debian: apt install gcc"),
        ("g++", "a C++ compiler, on Debian: apt install g++"),
    ):
        if shutil.which(tool) is None:
            raise CannotBeHad(f"{tool} is not installed; it needs {hint}")
    flags = ["-O3", f"-I{_headers(folder / 'include')}", *(f"-m{one}" for one in WIDE if wide)]
    _build(folder, built, " ".join(flags))
    return built


def _has_wide_instructions() -> bool:
    try:
        known = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return False
    return set(WIDE) <= set(known)


def _build(folder: Path, built: Path, flags: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix="build.") as scratch:
        environment = os.environ | {"GOBIN": scratch, "CGO_ENABLED": "1", "CGO_CFLAGS": flags, "CGO_CXXFLAGS": flags}
        say(f"Building {MODULE} (five minutes of processor time, only this once)")
        log = folder / "build.log"
        done = threading.Event()
        threading.Thread(target=_tell_time, args=(done,), daemon=True).start()
        try:
            with log.open("wb") as output:
                code = subprocess.run(
                    ["go", "install", MODULE], env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT
                ).returncode
        finally:
            done.set()
        if code:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-12:]
            unreached = any("dial tcp" in line or "no such host" in line for line in lines)
            kind = CannotBeHad if unreached else Failed
            raise kind(f"`go install {MODULE}` did not succeed ({log}):\n" + "\n".join(lines))
        built.parent.mkdir(exist_ok=True)
        (Path(scratch) / "ollama").rename(built)


def _tell_time(done: threading.Event) -> None:
    start = time.monotonic()
    while not done.wait(30):
        say(f"  still building, {time.monotonic() - start:.0f} s so far")


def _headers(folder: Path) -> Path:
    """A folder with the three libraries."""
    for header, (package, place, sha256) in HEADERS.items():
        library = header.partition("/")[0]
        if (folder / header).is_file():
            continue
        installed = next((root / library for root in INSTALLED if (root / header).is_file()), None)
        if installed is not None:
            shutil.copytree(installed, folder / library)
            continue
        say(f"Downloading {package} for {header}")
        with tempfile.TemporaryDirectory() as scratch:
            archive = _by_apt(package, Path(scratch)) or _from_debian(package, place, sha256, Path(scratch))
            _unpack(archive, Path(scratch) / "files")
            shutil.copytree(Path(scratch) / "files" / "usr" / "include" / library, folder / library)
    if not (folder / "miniaudio" / "miniaudio.h").is_file():
        say(f"Downloading {MINIAUDIO} for miniaudio/miniaudio.h")
        with tempfile.TemporaryDirectory() as scratch:
            archive = pip_download(MINIAUDIO, Path(scratch), source=True)
            if sha256_of(archive) != MINIAUDIO_SHA256:
                raise CannotBeHad(f"{archive.name} is not the file that was pinned")
            with tarfile.open(archive) as files:
                member = files.extractfile(f"{archive.name.removesuffix('.tar.gz')}/miniaudio/miniaudio.h")
                assert member is not None
                (folder / "miniaudio").mkdir(parents=True, exist_ok=True)
                (folder / "miniaudio" / "miniaudio.h").write_bytes(member.read())
    return folder


def _by_apt(package: str, folder: Path) -> Path | None:
    """The package as apt fetches it, which needs no rights; None where apt is absent or does not know it."""
    if shutil.which("apt-get") is None:
        return None
    subprocess.run(["apt-get", "download", "--quiet", package], cwd=folder, capture_output=True)
    return next(folder.glob("*.deb"), None)


def _from_debian(package: str, place: str, sha256: str, folder: Path) -> Path:
    archive = folder / f"{package}.deb"
    try:
        with urllib.request.urlopen(DEBIAN + place, timeout=60) as reply:
            archive.write_bytes(reply.read())
    except OSError as error:
        raise CannotBeHad(
            f"the headers of {package} are not installed, apt does not know the package, and {DEBIAN + place} "
            f"cannot be reached ({error}); on Debian: apt install {package}"
        ) from None
    if sha256_of(archive) != sha256:
        raise CannotBeHad(f"{DEBIAN + place} is not the file that was pinned")
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    """The files of a Debian package: an `ar` archive with 60-byte heads, one member of which is `data.tar.*`."""
    if shutil.which("dpkg-deb"):
        subprocess.run(["dpkg-deb", "--extract", archive, folder], check=True)
        return
    data = archive.read_bytes()
    at = len(b"!<arch>\n")
    while at < len(data):
        name = data[at : at + 16].decode("ascii").strip().rstrip("/")
        size = int(data[at + 48 : at + 58])
        if name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(data[at + 60 : at + 60 + size])) as files:
                files.extractall(folder, filter="data")
            return
        at += 60 + size + size % 2
    raise Failed(f"{archive.name} holds no files")
