"""An agent without any library that streams as fast as it can, so that what is measured is the client."""

import json
import os
import sys

BATCH = 64


def answer(request: dict, result: dict) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def stream(session: str, count: int, size: int) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * size}}
    params = {"sessionId": session, "update": update}
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"
    for _ in range(count // BATCH):
        write(line * BATCH)
    write(line * (count % BATCH))


for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        answer(request, {"protocolVersion": 1, "agentCapabilities": {}})
    elif request.get("method") == "session/new":
        answer(request, {"sessionId": "s"})
    elif request.get("method") == "session/prompt":
        _, count, size = request["params"]["prompt"][0]["text"].split(":")
        stream("s", int(count), int(size))
        answer(request, {"stopReason": "end_turn"})
