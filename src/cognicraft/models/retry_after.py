"""`Retry-After`: how long a server asks to wait, as a number of seconds or a date (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import math
import time
from email.utils import parsedate_to_datetime


def retry_after_s(header: str | None) -> float | None:
    """Seconds from now, 0 or more; None where the header is absent or says nothing usable."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
