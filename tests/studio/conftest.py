"""A studio of a module's tests, with a painter that only pretends; and who watches its runs."""

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def client(folder):
    from studios import opened  # here, so that it skips where there is no [studio]

    with opened(folder) as client:
        yield client


@pytest.fixture
def socket(client):
    from studios import LIVE

    with client.websocket_connect(LIVE) as socket:
        yield socket
