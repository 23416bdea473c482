"""What to say when a server cannot be reached: host, proxies and certificates."""

from __future__ import annotations

import importlib.util
import queue
import re
import socket
import threading
import time
import urllib.request
from urllib.parse import urlsplit

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - compared with, never bound
_CERTIFICATE = re.compile(r"certificate|self[- ]signed|CERT_", re.IGNORECASE)
_PROXY_REFUSAL = re.compile(r"\b40[37]\b|proxy authentication", re.IGNORECASE)
_UNKNOWN_HOST = re.compile(
    r"name or service not known|nodename nor servname|getaddrinfo|name resolution", re.IGNORECASE
)
_SLICE_S = 0.1


def host_of(url: str) -> str:
    """Return ``host`` or ``host:port`` of `url`, without credentials."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or url, parts.port
    except ValueError:
        return url.rpartition("@")[2]
    return f"{host}:{port}" if port else host


def is_local(url: str) -> bool:
    """Return whether `url` is on this machine."""
    return host_of(url).rpartition(":")[0] in _LOCAL or host_of(url) in _LOCAL


def resolve(url: str, timeout_s: float) -> None:
    """Look up the host that a request to `url` connects to; the transport's own look-up then has its answer.

    The system's resolver cannot be interrupted, and may take half a minute where there is no network: it is asked in
    a thread of its own, and waited for in slices.

    Raises
    ------
    OSError
        There is no such host, or the resolver did not answer in time.
    """
    if not url.lower().startswith(("http://", "https://")):  # the transport says what is wrong with it
        return
    proxies = urllib.request.getproxies()
    address = proxies.get(url.partition("://")[0].lower()) or proxies.get("all") or ""
    if not address or urllib.request.proxy_bypass(host_of(url)):
        address = url
    try:
        host = urlsplit(address if "://" in address else f"http://{address}").hostname
    except ValueError:
        return
    if not host or host in _LOCAL:
        return
    answers: queue.Queue[OSError | None] = queue.Queue()

    def look_up() -> None:
        try:
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            answers.put(error)
        except UnicodeError:  # no host name at all
            answers.put(None)
        else:
            answers.put(None)

    threading.Thread(target=look_up, name="llmkernel-resolver", daemon=True).start()
    end = time.monotonic() + timeout_s
    while True:
        try:
            failure = answers.get(timeout=_SLICE_S)
        except queue.Empty:
            if time.monotonic() < end:
                continue
            failure = OSError(f"name resolution of {host} took longer than {timeout_s:g} s")
        if failure is not None:
            raise failure
        return


def is_permanent(cause: str) -> bool:
    """Return whether trying again cannot help: a certificate, or a proxy that says no."""
    return bool(_CERTIFICATE.search(cause) or _PROXY_REFUSAL.search(cause))


def proxy_for(url: str) -> str | None:
    """Return the name and host of the proxy that the environment sets for `url`, None without one."""
    host = host_of(url)
    scheme = url.partition("://")[0].lower()
    proxies = urllib.request.getproxies()
    for name in (scheme, "all"):
        if (proxy := proxies.get(name)) and not urllib.request.proxy_bypass(host):
            return f"{name.upper()}_PROXY ({host_of(proxy if '://' in proxy else f'http://{proxy}')})"
    return None


def unusable_proxy() -> tuple[str, str] | None:
    """Return a proxy of the environment that the transport cannot use, and the next step; None without one.

    Asked before a client is built: the SDKs' constructors fail on such a proxy, whatever address they are for.
    """
    proxies = urllib.request.getproxies()
    for name in ("http", "https", "all"):
        scheme, separator, _ = proxies.get(name, "").partition("://")
        if not separator or scheme.lower() in {"http", "https"}:
            continue
        shown = f"{name.upper()}_PROXY is {scheme}://{host_of(proxies[name])}"
        if scheme.lower() not in {"socks5", "socks5h"}:
            return shown, "Use a proxy that begins with http:// or socks5://."
        if importlib.util.find_spec("socksio") is None:
            return shown, "Run `pip install socksio`, which SOCKS proxies need."
    return None


def hint(url: str, cause: str) -> str:
    """Return the next step after `cause` at `url`."""
    if _CERTIFICATE.search(cause):
        return "If your organisation inspects TLS, set SSL_CERT_FILE to its CA bundle."
    if proxy := proxy_for(url):
        return f"The request goes through {proxy}: check that proxy, or exempt {host_of(url)} in NO_PROXY."
    if is_local(url):
        return f"Start the server at {host_of(url)}, or correct the base URL."
    if _UNKNOWN_HOST.search(cause):
        return "Check the network connection and the host name; behind a proxy, set HTTPS_PROXY."
    return "Check the network connection; behind a proxy set HTTPS_PROXY, with a custom CA set SSL_CERT_FILE."
