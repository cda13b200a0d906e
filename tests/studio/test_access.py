"""Access to the studio: only a page with the token, from this address, gets an answer."""

import pytest
from starlette.websockets import WebSocketDisconnect
from studio.studios import ADDRESS, LIVE, PORT, TOKEN, opened

EVERYWHERE = {"/": "GET", "/api/form": "GET", "/static/index.html": "GET", "/api/queue": "POST"}


@pytest.fixture
def stranger(client):
    """Yield the test client without its cookie; restore the cookie afterwards."""
    cookie = client.cookies.get(f"studio_{PORT}")
    client.cookies.clear()
    yield client
    client.cookies.clear()
    client.cookies.set(f"studio_{PORT}", cookie)


def refuses_socket(client, **headers):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(LIVE, headers=headers):
        pass


def test_the_token_becomes_a_cookie_hidden_from_scripts(stranger):
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert "domain" not in cookie


def test_without_the_token_nothing(stranger):
    for path, method in EVERYWHERE.items():
        assert stranger.request(method, path).status_code == 403
    for token in ("", "wrong", TOKEN[:-1], TOKEN + "x", "é", "\udcff", "a" * 9999):
        text = token.encode("utf-8", "replace")
        assert stranger.get(f"/?token={text.decode()}").status_code == 403
        cookie = {"cookie": f"studio_{PORT}=".encode() + text}
        assert stranger.get("/", headers=cookie).status_code == 403
    assert stranger.get(f"/api/form?token={TOKEN}").status_code == 403
    told = stranger.get("/")
    assert told.headers["content-type"].startswith("text/plain")
    assert "open the address that the studio has printed" in told.text
    other = {"cookie": f"studio_{PORT + 1}={TOKEN}"}
    assert stranger.get("/api/form", headers=other).status_code == 403
    refuses_socket(stranger)


def test_a_name_that_was_bound_to_this_machine(client):
    """Simulate DNS rebinding: a page of evil.example whose name resolves to 127.0.0.1."""
    names = ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "localhost:1", ""]
    for host in (*names, f"0.0.0.0:{PORT}"):
        headers = {"host": host, "origin": f"http://{host}"}
        for path, method in EVERYWHERE.items():
            assert client.request(method, path, headers=headers).status_code == 400
        refuses_socket(client, **headers)


def test_a_page_from_elsewhere(client):
    here = f"127.0.0.1:{PORT}"
    for origin in ("http://evil.example", "null", "", f"http://{here}1", f"https://{here}"):
        for path in ("/api/queue", "/api/pictures?name=a", "/api/check", "/api/queue/x/stop"):
            assert client.post(path, headers={"origin": origin}).status_code == 403
        refuses_socket(client, origin=origin)


def test_a_request_without_an_origin_changes_nothing(client):
    del client.headers["origin"]
    try:
        assert client.post("/api/queue").status_code == 403
        refuses_socket(client)
    finally:
        client.headers["origin"] = ADDRESS


@pytest.mark.slow
def test_what_every_answer_says_to_the_browser(client):
    for path in ("/", "/static/index.html", "/api/form", "/api/pictures/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"


def test_access_needs_share_and_the_token(tmp_path):
    near = "192.168.7.5"
    with opened(tmp_path, near=[near]) as client:
        headers = {"host": f"{near}:{PORT}", "origin": f"http://{near}:{PORT}"}
        assert client.get("/api/form", headers=headers).status_code == 200
        assert client.post("/api/queue", headers=headers).status_code == 400  # no settings
        client.cookies.clear()
        assert client.get("/api/form", headers=headers).status_code == 403
        for host in ("192.168.7.6", "evil.example"):
            headers = {"host": f"{host}:{PORT}", "origin": f"http://{host}:{PORT}"}
            assert client.get(f"/?token={TOKEN}", headers=headers).status_code == 400
    for address, status in (("10.0.0.7", 200), ("93.184.216.34", 403)):
        with opened(tmp_path, client=(address, 1), status=status):
            pass


def test_no_way_out_of_the_folders(client):
    ways = """
    /static/../command.py /static/%2e%2e/command.py /static/..%2fcommand.py /static//etc/passwd
    /static/%2fetc%2fpasswd /api/pictures/..%2f..%2fetc%2fpasswd /api/pictures/%2e%2e
    /api/runs/..%2f..%2f/picture /api/runs/pictures/picture /api/runs/%2e%2e/download
    /api/runs/%00/film
    """
    for path in ways.split():
        answer = client.get(path)
        assert answer.status_code in (400, 404, 405)
        assert b"root:" not in answer.content
        assert b"import" not in answer.content
