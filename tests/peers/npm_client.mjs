// Drives ProbeAgent with the official TypeScript SDK, and prints what it saw as one JSON object.
// usage: node npm_client.mjs '{"stdio": [command, ...]}' | '{"http": url}' | '{"websocket": url}'
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const target = JSON.parse(process.argv[2]);
const wire = [];
const methods = acp.methods;

function open() {
  if (target.http) return createHttpStream(target.http);
  if (target.websocket) return createWebSocketStream(target.websocket);
  const [command, ...args] = target.stdio;
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  return acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

function recorded(stream) {
  const tap = (from) =>
    new TransformStream({
      transform(message, controller) {
        wire.push({ from, message });
        controller.enqueue(message);
      },
    });
  const outgoing = tap("client");
  outgoing.readable.pipeTo(stream.writable).catch(() => {});
  return { readable: stream.readable.pipeThrough(tap("agent")), writable: outgoing.writable };
}

let choice = "y";
let waiters = [];
const updates = {};

function seen(sessionId, matches) {
  return new Promise((resolve) => {
    waiters.push({ sessionId, matches, resolve });
  });
}

const app = acp
  .client({ name: "conformance" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => ({
    outcome: { outcome: "selected", optionId: params.options.find((option) => option.optionId === choice).optionId },
  }))
  .onNotification(methods.client.session.update, ({ params }) => {
    (updates[params.sessionId] ??= []).push(params.update);
    waiters = waiters.filter((waiter) => {
      const met = waiter.sessionId === params.sessionId && waiter.matches(params.update);
      if (met) waiter.resolve();
      return !met;
    });
  });

const texts = (sessionId) => (updates[sessionId] ?? []).filter((u) => u.content?.text !== undefined).map((u) => u.content.text);

const result = await app.connectWith(recorded(open()), async (agent) => {
  const initialized = await agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const session = async () => (await agent.request(methods.agent.session.new, { cwd: "/", mcpServers: [] })).sessionId;
  const prompt = (sessionId, text) => agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const [first, second] = [await session(), await session()];

  const streamed = await prompt(first, "stream:50");
  const chunks = texts(first).length;
  const echoed = await prompt(second, "hello");

  choice = "y";
  const allowed = await prompt(first, "perm please");
  choice = "n";
  const refused = await prompt(first, "perm please");

  const waiting = seen(second, (update) => update.content?.text === "waiting");
  const turn = prompt(second, "wait_for_cancel please");
  await waiting;
  await agent.notify(methods.agent.session.cancel, { sessionId: second });
  const cancelled = await turn;

  return {
    protocolVersion: initialized.protocolVersion,
    distinct: first !== second,
    stopReasons: [streamed, echoed, allowed, refused, cancelled].map((answer) => answer.stopReason),
    chunks,
    echo: texts(second)[0],
    permissions: texts(first).filter((text) => text.startsWith("permission:")),
  };
});
console.log(JSON.stringify({ ...result, wire }));
process.exit(0);
