"""Serves the probe agent at /acp: `uvicorn examples.fastapi_app.main:app`."""

from fastapi import FastAPI

from acp_fastapi import AcpFastAPI
from examples.agents import ProbeAgent

agents = AcpFastAPI(ProbeAgent)

app = FastAPI(title="An application with an agent")
app.include_router(agents.router)


@app.get("/")
async def index() -> dict[str, str]:
    return {"agent": "/acp"}
