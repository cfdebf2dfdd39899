"""Agents behind TLS: nobody is talked to whom the system, its settings or the caller do not trust."""

import shutil
import ssl
import subprocess
import sys

import anyio
import pytest

from acp_integration.client import build_client
from acp_integration.errors import ConnectionClosed
from acp_integration.transports.http import HttpTransport
from acp_integration.transports.websocket import WebSocketTransport

APP = "tests.endpoint.served_app:app"
TRANSPORTS = {HttpTransport: "https", WebSocketTransport: "wss"}


@pytest.fixture
def certificate(tmp_path):
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "cert.pem")
    command = [shutil.which("openssl"), "req", "-x509", *made, *subject]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    return tmp_path / "cert.pem"


@pytest.fixture
async def port(certificate, spawn, free_port, repo_root, bound):
    number = free_port()
    files = ("--ssl-certfile", certificate, "--ssl-keyfile", certificate.with_name("key.pem"))
    spawn(sys.executable, "-m", "uvicorn", "--port", str(number), *files, APP, cwd=repo_root)
    with bound(30):
        while True:
            try:
                async with await anyio.connect_tcp("127.0.0.1", number):
                    return number
            except OSError:
                await anyio.sleep(0.05)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_certificate_that_nobody_vouches_for_is_refused(transport, port, bound):
    with bound(20), pytest.raises(ConnectionClosed, match=r"(?i)certificate"):
        await build_client(transport(f"{TRANSPORTS[transport]}://127.0.0.1:{port}/acp")).initialize()


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_file_that_the_environment_names_is_trusted(transport, port, certificate, monkeypatch, bound):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with bound(20):
        async with build_client(transport(f"{TRANSPORTS[transport]}://127.0.0.1:{port}/acp")) as client:
            assert (await (await client.new_session("/")).prompt("stream:3")).updates


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_the_caller_trusts_is_trusted(transport, port, certificate, bound):
    trusted = ssl.create_default_context(cafile=certificate)
    with bound(20):
        uri = f"{TRANSPORTS[transport]}://127.0.0.1:{port}/acp"
        async with build_client(transport(uri, ssl_context=trusted)) as client:
            assert (await (await client.new_session("/")).prompt("stream:3")).updates
