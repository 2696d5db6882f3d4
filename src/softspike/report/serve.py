"""One page on a local address: nothing else is served, and nobody else can ask for it."""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["PageServer"]

_LOOPBACK = "127.0.0.1"
_PATHS = {"/", "/report.html"}


class PageServer(ThreadingHTTPServer):
    """Serves `page` on the loopback address; port 0 takes any that is free.

    >>> PageServer(b"<!doctype html>", port=0).serve_forever()                             # doctest: +SKIP
    """

    daemon_threads = True

    def __init__(self, page: bytes, port: int = 0):
        try:
            super().__init__((_LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ValueError(
                f"cannot serve on port {port} ({error}); choose another with --port, or leave it out"
            ) from error
        self.page = page

    @property
    def address(self) -> str:
        return f"http://{_LOOPBACK}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "softspike", ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        # A page elsewhere may point a name of its own at this address: only requests for our own name are answered.
        names = {f"{host}:{self.server.server_port}" for host in (_LOOPBACK, "localhost")}
        if self.headers.get("Host") not in names:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif self.path.split("?")[0] not in _PATHS:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(self.server.page if body else b"", len(self.server.page))

    def _send(self, content: bytes, length: int) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the terminal shows the address, not every request."""
