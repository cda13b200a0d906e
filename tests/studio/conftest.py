"""Fixtures: a client of a studio with a fake runner, one per test module, and its WebSocket."""

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
