"""The server answers on the loopback address, for its own name, with the page and nothing else."""

import http.client
import threading

import pytest

from softspike.report.serve import PageServer

PAGE = "<!doctype html><title>é</title>".encode()


@pytest.fixture
def server():
    server = PageServer(PAGE)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # seconds until it sees its end
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ask(server, path="/", method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    answer = connection.getresponse()
    return answer.status, answer.read(), dict(answer.getheaders())


def test_only_the_loopback_address(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize("path", ["/", "/report.html", "/?x=1"])
def test_the_page(server, path):
    status, body, headers = ask(server, path)
    assert (status, body) == (200, PAGE)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "python" not in headers["Server"].lower()
    assert ask(server, path, "HEAD")[:2] == (200, b"")


@pytest.mark.parametrize(
    "path", ["/config.json", "/../etc/passwd", "//etc/passwd", "/model.safetensors", "/report.html/x"]
)
def test_nothing_else(server, path):
    assert ask(server, path)[0] == 404


def test_nothing_can_be_sent(server):
    assert ask(server, method="POST")[0] == 501


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1"])
def test_other_names_are_turned_away(server, host):
    """A name of someone else's, pointed at this address, must not read the page."""
    assert ask(server, host=host)[0] == 421
    assert ask(server, host=f"localhost:{server.server_port}")[0] == 200


def test_a_port_that_is_taken_or_is_none(server):
    for port in (server.server_port, 70000, -1):
        with pytest.raises(ValueError, match=rf"cannot serve on port {port} .*choose another with --port"):
            PageServer(PAGE, port)
