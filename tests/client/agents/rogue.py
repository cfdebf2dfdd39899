"""An agent that misbehaves as its first argument says; it speaks JSON lines on its own, to be as rude as it likes."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "polite"
STAGE = sys.argv[2] if len(sys.argv) > 2 else ""


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def say(text, **more):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}
    send({"method": "session/update", "params": {"sessionId": "s", "update": update}})


def result(method):
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {}}
    return {"sessionId": "s"} if method == "session/new" else {"stopReason": "end_turn"}


def misbehave(message):
    method = message["method"]
    if MODE == "dies" and method == STAGE:
        print("about to fail", file=sys.stderr, flush=True)
        os._exit(3)
    if MODE == "killed" and method == STAGE:
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "silent" and method == STAGE:
        return True
    if MODE == "deaf" and method == STAGE:
        time.sleep(60)
    if MODE == "closes" and method == STAGE:
        os.close(1)
        time.sleep(60)
    if method != "session/prompt":
        if MODE == "early" and method == "session/new":
            say("before the session")
        return False
    if MODE == "stderr":
        for number in range(10_000):
            print(f"{number:099}", file=sys.stderr)
    elif MODE == "banner":
        write(b'\x1b[32mWelcome!\x1b[0m\r\n\r\n42\nnull\n"x"\n[{}]\n{not json\n\xff\xfe\n')
    elif MODE == "utf8":
        write(
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
            b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\xffb"}}}}\n'
        )
    elif MODE == "long":
        say("x" * 20_000_000)
    elif MODE == "unknown":
        say("?", sessionUpdate="hologram")
    elif MODE == "environment":
        say(json.dumps(dict(os.environ)))
    elif MODE == "directory":
        say(os.getcwd())
    elif MODE == "grandchild":
        child = subprocess.Popen([sys.executable, __file__, "sleeper", STAGE])
        say(str(child.pid))
        if STAGE == "orphan":
            os._exit(0)
    else:
        say("hello")
    return False


def sleeper():
    if STAGE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(300)


def main():
    if MODE == "sleeper":
        sleeper()
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "tui":
        write(b"\x1b[2J\x1b[HChoose: [1] yes [2] no\n")
        time.sleep(60)
    print("rogue agent is up", file=sys.stderr, flush=True)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message and not misbehave(message):
            send({"id": message["id"], "result": result(message["method"])})
    if MODE in ("stubborn", "lingering"):
        time.sleep(60)


main()
