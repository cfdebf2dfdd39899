"""An agent that keeps its sessions itself: it loads, resumes, lists, closes and deletes them."""

from dataclasses import dataclass, field
from typing import Any

from acp_integration import AcpSession, PromptContext, RequestError, acp_agent, on
from acp_integration.context import ConnectedClient

PAGE = 20


@dataclass
class Notebook:
    owner: str
    cwd: str
    title: str = "Empty notebook"
    notes: list[str] = field(default_factory=list)


@acp_agent(name="notebook", title="Notebook", version="1.0.0")
class NotebookAgent:
    """Writes down what it is told, and reads it back: each session is a notebook."""

    def __init__(self) -> None:
        self._notebooks: dict[str, Notebook] = {}

    @on.new_session
    async def new(self, session: AcpSession, client: ConnectedClient) -> None:
        self._notebooks[session.id] = Notebook(client.name or "", session.cwd)
        await session.send_commands({"read": "Reads all notes back"})

    @on.load_session
    async def load(self, session: AcpSession) -> None:
        for note in self._notebook(session.id).notes:
            await session.send_user_message(note)
            await session.send_message("Noted.")

    @on.resume_session
    async def resume(self, session_id: str) -> None:
        self._notebook(session_id)

    @on.list_sessions
    async def listed(self, cwd: str | None, cursor: str | None) -> dict[str, Any]:
        found = [
            {"sessionId": session_id, "cwd": notebook.cwd, "title": notebook.title}
            for session_id, notebook in self._notebooks.items()
            if cwd in (None, notebook.cwd)
        ]
        start = int(cursor or 0)
        page = {"sessions": found[start : start + PAGE]}
        return page if start + PAGE >= len(found) else {**page, "nextCursor": str(start + PAGE)}

    @on.close_session
    async def close(self, session_id: str) -> None:
        self._notebook(session_id)

    @on.delete_session
    async def delete(self, session_id: str) -> None:
        self._notebooks.pop(session_id, None)

    @on.prompt
    async def answer(self, turn: PromptContext) -> str:
        notebook = self._notebook(turn.session.id)
        if turn.command is not None and turn.command.name == "read":
            return "\n".join(notebook.notes) or "Nothing yet."
        if not notebook.notes:
            notebook.title = turn.text[:40]
            await turn.send_session_info(title=notebook.title)
        notebook.notes.append(turn.text)
        return "Noted."

    def _notebook(self, session_id: str) -> Notebook:
        if session_id not in self._notebooks:
            raise RequestError(-32002, "There is no such notebook", {"sessionId": session_id})
        return self._notebooks[session_id]
