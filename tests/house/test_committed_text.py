"""Nothing committed depends on a machine or on the address of a registry."""

import re

# Built from pieces, so that this file passes its own test.
FORBIDDEN = {
    "package registry": [
        ("registry.", "npmjs"),
        ("npmjs.", "com"),
        ("registry.", "yarnpkg"),
        ("py", "pi.org"),
        ("files.", "pythonhosted"),
        ("deb.", "debian.org"),
        ("crates", ".io"),
    ],
    "badge": [("shields", ".io"), ("badge", ".fury")],
}
MACHINE_PATHS = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/Us", "ers/"),
    ("/.py", "env/"),
    ("/tmp/", "acp"),
    ("/tmp/", "peers"),
]


def test_no_package_registry_and_no_badge(committed_texts):
    pieces = ["".join(parts) for kind in FORBIDDEN.values() for parts in kind]
    found = [(name, piece) for name, text in committed_texts.items() for piece in pieces if piece in text]
    assert not found


def test_no_path_of_a_machine(committed_texts, repo_root):
    alternatives = "|".join(re.escape("".join(parts)) for parts in MACHINE_PATHS)
    machine = re.compile(rf"(?<![\w.}}])(?:{alternatives}|{re.escape(str(repo_root))}/)")
    assert not [(name, found.group()) for name, text in committed_texts.items() if (found := machine.search(text))]


def test_the_npm_lock_records_no_address(committed_texts):
    assert '"resolved"' not in committed_texts["package-lock.json"]
