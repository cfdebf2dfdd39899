"""What the page shows, running: its application, its proxies and its Redis, on free ports."""

import os
import re
import shutil
import subprocess
import sys

import anyio
import httpx2
import pytest

from tests.deployment.page import block

SYSTEM = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 500; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/{name};
}}
"""


@pytest.fixture
def run(spawn, tmp_path):
    """Start a program of the system in the test's folder; what it says goes into a file there."""

    def start(name, *arguments, **options):
        program = shutil.which(name, path=SYSTEM)
        assert program is not None, f"{name} is not installed: .ci/run installs it"
        return logged(spawn, tmp_path, name, program, *arguments, **options)

    return start


def logged(spawn, folder, name, *command, **options):
    with (folder / f"{name}.out").open("ab") as log:
        return spawn(*command, cwd=folder, lifetime=120, stdout=log, stderr=subprocess.STDOUT, **options)


@pytest.fixture
def certificate(run, tmp_path):
    """``site.pem``: a key and a certificate of this machine, in one file as haproxy wants it."""
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    made = ("-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "cert.pem")
    assert run("openssl", "req", "-x509", *made, *subject).wait(30) == 0
    (tmp_path / "site.pem").write_text((tmp_path / "cert.pem").read_text() + (tmp_path / "key.pem").read_text())
    return tmp_path / "site.pem"


@pytest.fixture
def site(spawn, free_port, tmp_path, repo_root):
    """``url, process = await site(**environ)``: the application of the page under uvicorn."""
    (tmp_path / "main.py").write_text(block("python"))

    async def start(*words, **environ):
        port = free_port()
        command = words or ("uvicorn", "main:app", "--port", "{port}")
        command = (sys.executable, "-m", *(word.replace("{port}", str(port)) for word in command))
        # pytest changes the folder in which modules are looked for; a process of its own looks in the page's.
        environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{repo_root}", **environ}
        process = logged(spawn, tmp_path, f"site-{port}", *command, env=environ)
        await answered(f"http://127.0.0.1:{port}/health")
        return port, process

    return start


@pytest.fixture
def proxy(run, free_port, tmp_path, certificate):
    """``plain, secure = await proxy("nginx", "sticky.conf", upstreams)``: the ports of a proxy of the page."""

    async def start(program, name, upstreams):
        ports = free_port(), free_port()
        replaced = dict(zip((8001, 8002, 8080, 8443), (*upstreams, *ports), strict=True))
        text = re.sub(r"\b80\d\d\b|\b8443\b", lambda found: str(replaced[int(found[0])]), block(program, name))
        (tmp_path / name).write_text(text.replace("site.pem", str(certificate)))
        if program == "haproxy":
            run("haproxy", "-db", "-f", name)
        else:
            (tmp_path / "main.conf").write_text(NGINX.format(folder=tmp_path, name=name))
            run("nginx", "-c", tmp_path / "main.conf", "-p", tmp_path, "-e", tmp_path / "nginx.log")
        await answered(f"http://127.0.0.1:{ports[0]}/health")
        return ports

    return start


async def answered(url):
    """Wait until a server answers, and has somebody to ask."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        with anyio.fail_after(30):
            while True:
                try:
                    if (await client.get(url)).status_code == 200:
                        return
                except httpx2.TransportError:
                    pass
                await anyio.sleep(0.05)
