"""Where the public data sets lie that some tests read; those tests skip where the folder is absent."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
