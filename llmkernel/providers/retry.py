"""Send a request again when that can help, visibly, and never after a piece of the reply was shown.

The SDKs' own retries are off: they are silent, and do not cover an error inside a stream.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from llmkernel.providers.base import Event, TextDelta, Waiting
from llmkernel.providers.errors import (
    NetworkError,
    OverloadedError,
    RateLimitError,
    RemoteError,
    StreamCutError,
)

_SLICE_S = 0.1


@dataclass(frozen=True)
class Clock:
    """Time, so that tests need not wait."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long.

    Attributes
    ----------
    max_retries : int
        After a rate limit, an overload or a failure of the server.
    max_connection_retries : int
        After a failure to connect, or a stream that broke before any text.
    base_s, cap_s : float
        Back-off: ``base_s * 2**n`` up to `cap_s`, times a random factor in [0.5, 1].
    max_wait_s : float
        Longest wait that the server may ask for.
    """

    max_retries: int = 4
    max_connection_retries: int = 2
    base_s: float = 1.0
    cap_s: float = 30.0
    max_wait_s: float = 120.0


def stream_with_retries(
    attempt: Callable[[], Iterator[Event]], policy: RetryPolicy, clock: Clock | None = None
) -> Iterator[Event]:
    """Yield the events of `attempt`; after a transient failure before any text, wait and begin again.

    Every wait is announced by a `Waiting`.

    Raises
    ------
    RemoteError
        The failure that could not, or could no longer, be retried.
    """
    clock = clock or Clock()
    counts = {"server": 0, "connection": 0}
    while True:
        has_text = False
        try:
            with closing(attempt()) as events:  # type: ignore[type-var]
                for event in events:
                    has_text = has_text or isinstance(event, TextDelta)
                    yield event
            return
        except RemoteError as error:
            if has_text or not error.is_transient:
                raise
            kind = "connection" if isinstance(error, NetworkError | StreamCutError) else "server"
            limit = policy.max_connection_retries if kind == "connection" else policy.max_retries
            if counts[kind] >= limit:
                raise
            seconds = _wait_s(error, counts[kind], policy, clock)
            counts[kind] += 1
            reason = _reason(error)
        yield Waiting(seconds, reason)
        _sleep(seconds, clock)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date) asks for.

    Parameters
    ----------
    headers : mapping
        With lower-case names, or case-insensitive.
    now : float
        Seconds since the epoch.
    """
    try:
        seconds = float(headers["retry-after-ms"]) / 1000
        if seconds == seconds and seconds >= 0:  # NaN is not equal to itself
            return seconds
    except (KeyError, ValueError):
        pass
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (TypeError, ValueError, IndexError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None


def _wait_s(error: RemoteError, count: int, policy: RetryPolicy, clock: Clock) -> float:
    asked = error.retry_after_s
    if asked is None:
        return min(policy.base_s * 2.0**count, policy.cap_s) * (0.5 + 0.5 * clock.jitter())
    if asked > policy.max_wait_s:
        when = _when(clock.now() + asked) if asked < 86_400 * 365 else "next year or later"
        raise RateLimitError(
            f"{error.provider or 'The provider'} asks to wait {asked:.0f} s, until {when}.",
            rule=f"Waits longer than {policy.max_wait_s:.0f} s are left to you.",
            received=error.received or error.what,
            next_step=f"Run the cell again after {when}, or use another provider or model.",
            provider=error.provider,
            status=error.status,
            request_id=error.request_id,
            retry_after_s=asked,
            is_transient=False,
        ) from None
    return asked


def _when(timestamp: float) -> str:
    moment = datetime.fromtimestamp(timestamp).astimezone()
    is_today = moment - datetime.now().astimezone() < timedelta(hours=12)
    return moment.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M")


def _reason(error: RemoteError) -> str:
    if isinstance(error, RateLimitError):
        return "rate limit"
    if isinstance(error, OverloadedError):
        return "overloaded"
    if isinstance(error, NetworkError | StreamCutError):
        return f"connection: {error.what}"
    return error.what


def _sleep(seconds: float, clock: Clock) -> None:
    # In slices: an exception that another thread raises in this one arrives between two of them.
    while seconds > 0:
        clock.sleep(min(seconds, _SLICE_S))
        seconds -= _SLICE_S
