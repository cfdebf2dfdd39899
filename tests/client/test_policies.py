"""Ready-made permission policies and files that stay under their roots."""

import os

import anyio
import pytest

from acp_integration.client.files import ConfinedFiles
from acp_integration.client.permissions import allow, allow_kinds, ask, deny
from acp_integration.errors import PeerError, RequestError
from acp_integration.wire.client import ReadTextFileRequest, RequestPermissionRequest, WriteTextFileRequest
from acp_integration.wire.tools import PermissionOption, ToolCallUpdate

ALL = ("allow_always", "allow_once", "reject_always", "reject_once")


def request(kind="edit", options=ALL):
    return RequestPermissionRequest(
        session_id="s",
        tool_call=ToolCallUpdate(tool_call_id="1", kind=kind),
        options=[PermissionOption(option_id=f"id-{option}", name=option, kind=option) for option in options],
    )


@pytest.mark.parametrize(
    ("options", "chosen"),
    [(ALL, "id-reject_once"), (("allow_once", "reject_always"), "id-reject_always"), (("allow_once",), None)],
)
def test_deny_rejects_once_rather_than_always_and_cancels_else(options, chosen):
    assert deny(request(options=options)) == chosen


@pytest.mark.parametrize(("options", "chosen"), [(ALL, "id-allow_once"), (("allow_always",), None)])
def test_allow_never_allows_always(options, chosen):
    assert allow(request(options=options)) == chosen


@pytest.mark.parametrize(
    ("kind", "chosen"), [("read", "id-allow_once"), ("edit", "id-reject_once"), (None, "id-reject_once")]
)
async def test_allow_kinds_allows_its_kinds_and_denies_the_rest(kind, chosen):
    assert await allow_kinds("read", "search")(request(kind)) == chosen


@pytest.mark.parametrize(("said", "chosen"), [(True, "id-allow_once"), (False, "id-reject_once")])
async def test_ask_takes_yes_and_no_from_sync_and_async_functions(said, chosen):
    async def later(_request):
        return said

    assert await ask(lambda _: said)(request()) == chosen
    assert await ask(later)(request()) == chosen


async def test_ask_denies_when_nobody_answers_in_time():
    async def never(_request):
        await anyio.sleep_forever()

    assert await ask(never, timeout=0.01)(request()) == "id-reject_once"


async def test_a_policy_is_a_permission_handler(agent, opened):
    await opened(lambda builder: builder.on_permission(allow_kinds("read")))
    params = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "1", "kind": "read"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}],
    }
    assert (await agent.request("session/request_permission", params))["outcome"]["optionId"] == "y"


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "root"


def read(files, path, **more):
    return files.read(ReadTextFileRequest(session_id="s", path=str(path), **more))


def write(files, path, content="x"):
    files.write(WriteTextFileRequest(session_id="s", path=str(path), content=content))


def test_a_file_is_read_whole_or_by_lines(root):
    files = ConfinedFiles(root)
    assert read(files, root / "a.txt") == "one\ntwo\nthree\nfour\n"
    assert read(files, root / "a.txt", line=2, limit=2) == "two\nthree\n"
    assert read(files, root / "a.txt", line=4) == "four\n"
    assert read(files, root / "a.txt", line=99) == ""
    assert read(files, root / "a.txt", limit=1) == "one\n"


@pytest.mark.parametrize("path", ["../secret.txt", "sub/../../secret.txt", "link", "linked/secret.txt", "."])
def test_what_is_outside_the_roots_is_not_served_whatever_leads_there(root, path):
    (root / "link").symlink_to(root.parent / "secret.txt")
    (root / "linked").symlink_to(root.parent)
    files = ConfinedFiles(root, write=True)
    for attempt in (lambda: read(files, f"{root}/{path}"), lambda: write(files, f"{root}/{path}")):
        with pytest.raises(RequestError) as failure:
            attempt()
        assert failure.value.code == -32602
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_a_relative_path_is_not_served(root, monkeypatch):
    monkeypatch.chdir(root)
    with pytest.raises(RequestError, match="not under"):
        read(ConfinedFiles(root), "a.txt")


def test_a_link_to_a_place_under_the_roots_is_followed(root):
    (root / "link").symlink_to("a.txt")
    assert read(ConfinedFiles(root), root / "link", limit=1) == "one\n"


def test_a_link_put_in_place_after_the_check_is_not_followed(root, monkeypatch):
    victim = root / "sub" / "b.txt"
    victim.write_text("mine")
    real = os.path.realpath(victim)
    files = ConfinedFiles(root, write=True)
    victim.unlink()
    victim.symlink_to(root.parent / "secret.txt")
    monkeypatch.setattr(os.path, "realpath", lambda _path: real)
    with pytest.raises(RequestError):
        read(files, victim)
    with pytest.raises(RequestError):
        write(files, victim)
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_a_missing_file_is_not_found(root):
    with pytest.raises(RequestError) as failure:
        read(ConfinedFiles(root), root / "gone.txt")
    assert failure.value.code == -32002


def test_what_is_no_regular_file_is_not_served_and_blocks_nothing(root):
    os.mkfifo(root / "fifo")
    for path in (root / "fifo", root / "sub"):
        with pytest.raises(RequestError, match="no regular file"):
            read(ConfinedFiles(root), path)


def test_too_much_at_once_is_refused_and_lines_of_it_are_served(root):
    files = ConfinedFiles(root, limit=10)
    with pytest.raises(RequestError, match="ask for fewer lines"):
        read(files, root / "a.txt")
    assert read(files, root / "a.txt", line=2, limit=1) == "two\n"


def test_files_are_written_created_and_cut(root):
    files = ConfinedFiles(root, write=True)
    write(files, root / "a.txt", "short")
    write(files, root / "new" / "deep" / "b.txt", "né\n")
    assert (root / "a.txt").read_text() == "short"
    assert (root / "new" / "deep" / "b.txt").read_text(encoding="utf-8") == "né\n"


def test_bytes_that_are_no_text_are_read_as_replacement_characters(root):
    (root / "b").write_bytes(b"a\xffb")
    assert read(ConfinedFiles(root), root / "b") == "a\ufffdb"


async def test_files_are_a_customizer_that_serves_writing_only_when_asked_to(agent, opened, root):
    await opened(ConfinedFiles(root))
    assert (await agent.request("fs/read_text_file", {"sessionId": "s", "path": f"{root}/a.txt", "limit": 1})) == {
        "content": "one\n"
    }
    with pytest.raises(PeerError) as failure:
        await agent.request("fs/write_text_file", {"sessionId": "s", "path": f"{root}/a.txt", "content": ""})
    assert failure.value.code == -32601
    [initialize] = await agent.wait_for("initialize")
    assert initialize.params["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": False}
