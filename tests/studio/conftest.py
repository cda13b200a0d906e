"""Fixtures: a client of a studio with a fake runner, one per test module, and its WebSocket; and
pages, in a real browser, of a studio that all modules share because it starts slowly."""

from functools import partial

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def client(folder):
    from studio.studios import opened  # not at the top: the import skips without the extra [studio]

    with opened(folder) as client:
        yield client


@pytest.fixture
def socket(client):
    from studio.studios import LIVE

    with client.websocket_connect(LIVE) as socket:
        yield socket


@pytest.fixture
def visited(browser):
    from studio.studio_pages import visited_by  # skips without the extra [browser]

    return partial(visited_by, browser)


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    from studio.studio_pages import served

    with served(tmp_path_factory.mktemp("studio")) as found:
        yield found


@pytest.fixture
def address(studio):
    """Yield the address of a studio without runs and uploads; paint no more after the test."""
    yield studio.address
    studio.tidy()


@pytest.fixture
def icons():
    """Let an icon stand for the sketches of `fresh` or `page`, whose painting takes seconds."""


@pytest.fixture
def fresh(address, visited, request):
    with visited(address, made=None if "icons" in request.fixturenames else "none") as opened:
        yield opened


@pytest.fixture
def page(fresh):
    """Yield a page that must have no error, not even a refusal."""
    yield fresh
    assert fresh.complaints == []
