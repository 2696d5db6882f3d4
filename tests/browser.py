"""A real browser for the tests of the page: whichever Chromium the machine has, driven by playwright."""

import os
import shutil
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@cache
def _started():
    """The browser, or why there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None, "playwright is not installed"
    path = os.environ.get("SOFTSPIKE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        return None, f"no browser is installed (looked for {', '.join(NAMES)})"
    # Chromium refuses its sandbox to root, which is who tests run as inside a container.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        return sync_playwright().start().chromium.launch(executable_path=path, args=arguments), ""
    except Exception as error:
        return None, f"{path} did not start: {str(error).splitlines()[0]}"


def browser():
    found, reason = _started()
    if found is None:
        pytest.skip(reason)
    return found


@contextmanager
def opened(page: Path, address: str = "", allowed=(), **options):
    """The page in a fresh window, ready to be used; whatever it complains of fails the test."""
    context = browser().new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    window = context.new_page()
    complaints, asked = [], []
    window.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    window.on("pageerror", lambda error: complaints.append(str(error)))
    window.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
    window.on("request", lambda request: asked.append(request.url))
    try:
        window.goto(page.resolve().as_uri() + address)
        if options.get("java_script_enabled", True):
            window.wait_for_selector("html[data-ready]", timeout=30_000)
        yield window
        assert [text for text in complaints if not any(part in text for part in allowed)] == []
        assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    finally:
        context.close()
