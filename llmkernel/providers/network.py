"""What to say when a server cannot be reached: host, proxies and certificates."""

from __future__ import annotations

import importlib.util
import re
import urllib.request
from urllib.parse import urlsplit

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - compared with, never bound
_CERTIFICATE = re.compile(r"certificate|self[- ]signed|CERT_", re.IGNORECASE)
_PROXY_REFUSAL = re.compile(r"\b40[37]\b|proxy authentication", re.IGNORECASE)
_UNKNOWN_HOST = re.compile(
    r"name or service not known|nodename nor servname|getaddrinfo|name resolution", re.IGNORECASE
)


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
