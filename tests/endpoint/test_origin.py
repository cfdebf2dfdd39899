import pytest

from acp_integration.endpoint.origin import HostPolicy, ListedOrigins, OriginPolicy


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "http://localhost",
        "https://localhost:3000",
        "http://127.0.0.1:1",
        "http://[::1]:65535",
        "HTTP://LOCALHOST",
        " http://localhost/ ",
    ],
)
def test_no_origin_and_a_loopback_origin_are_allowed(origin):
    assert OriginPolicy(()).allows(origin, "http")


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://user@localhost",
        "http://localhost/path",
        "http://localhost:",
        "http://localhost:123456",
        "http://127.0.0.2",
        "ftp://localhost",
        "http://localhost:80, http://evil.example",
        "localhost",
    ],
)
def test_everything_else_is_refused(origin):
    assert not OriginPolicy(()).allows(origin, "http")


def test_a_listed_origin_is_allowed_in_any_spelling_and_with_one_slash():
    policy = OriginPolicy([" HTTPS://Editor.Example/ "])
    assert policy.allows("https://editor.example", "http")
    assert policy.allows("https://EDITOR.example/", "http")
    assert not policy.allows("https://editor.example:8443", "http")
    assert not policy.allows("http://editor.example", "http")


@pytest.mark.parametrize(
    ("origin", "listed"),
    [
        ("https://example.org", True),
        ("https://a.example.org", True),
        ("HTTPS://a.b.Example.ORG/", True),
        ("http://a.example.org", False),
        ("https://a.example.org:8443", False),
        ("https://notexample.org", False),
        ("https://a.example.org.evil.example", False),
        ("https://evil.example/.example.org", False),
        ("https://evil.example?.example.org", False),
        ("https://evil.example:1.example.org", False),
    ],
)
def test_a_star_in_front_of_a_domain_lists_it_and_all_below(origin, listed):
    assert (origin in ListedOrigins(["https://*.example.org"])) is listed
    assert OriginPolicy(["https://*.example.org"]).allows(origin, "https") is listed


def test_a_star_allows_any_origin():
    assert OriginPolicy(["*"]).allows("null", "http")


@pytest.mark.parametrize(
    ("origin", "scheme", "allowed"),
    [
        ("https://app.example", "https", True),
        ("https://app.example", "wss", True),
        ("https://app.example:8443", "https", True),
        ("http://app.example", "https", False),
        ("https://app.example", "http", False),
        ("https://other.example", "https", False),
        ("https://api.shop.example", "https", True),
        ("https://app.example/path", "https", False),
    ],
)
def test_an_allowed_host_allows_its_own_pages_over_the_scheme_of_the_request(origin, scheme, allowed):
    assert OriginPolicy((), ["app.example", ".shop.example"]).allows(origin, scheme) is allowed


def test_any_host_allows_no_origin():
    assert not OriginPolicy((), ["*"]).allows("http://evil.example", "http")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("x", True),
        ("X:443", True),
        ("[::1]:8000", True),
        ("127.0.0.1", False),
        ("y", False),
        ("shop.example", True),
        ("a.shop.example:1", True),
        ("notshop.example", False),
        (None, False),
        ("", False),
    ],
)
def test_a_host_matches_with_and_without_its_port(host, allowed):
    assert HostPolicy(["x", "[::1]", ".shop.example"]).allows(host) is allowed


def test_a_star_allows_any_host():
    assert HostPolicy(["*"]).allows("anything")
