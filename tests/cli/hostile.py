"""A folder that leaves a mark when anything in it is imported or read as settings."""

from pathlib import Path

MARKS = ("anyio.py", "acp_agents.py", "msgspec.py", "examples.py", "sitecustomize.py")


def fill(folder: Path, *, package: bool = True) -> None:
    """Put everything into a folder that could be mistaken for a part of the agent."""
    names = [*MARKS]
    if package:
        for name in ("acp_integration", "acp_fastapi", "acp_django"):
            (folder / name).mkdir()
            names += [f"{name}/__init__.py", f"{name}/__main__.py"]
    for name in names:
        (folder / name).write_text(
            f"open({str(folder / 'mark')!r}, 'a').write(__name__)\nraise SystemExit('hostile')\n"
        )
    (folder / "acp.toml").write_text("this is not TOML")
    (folder / "pyproject.toml").write_text("[tool.acp.agent]\nno-such-key = 1\n")
    (folder / ".env").write_text("ACP_AGENT_ENABLED=false\n")


def left_alone(folder: Path) -> bool:
    return not (folder / "mark").exists()
