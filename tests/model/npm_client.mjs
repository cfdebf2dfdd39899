// Exercises everything ProbeAgent can show, with the official TypeScript SDK; prints what it saw as one JSON object.
// usage: node npm_client.mjs '[command, ...]'
import * as acp from "@agentclientprotocol/sdk";
import { spawn, spawnSync } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [command, ...args] = JSON.parse(process.argv[2]);
const { agent: agentMethods, client: clientMethods } = acp.methods;
const wire = [];
const updates = [];
const files = { "/notes.txt": "from the file" };
const terminals = new Map();

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

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = recorded(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));

const app = acp
  .client({ name: "everything" })
  .onNotification(clientMethods.session.update, ({ params }) => updates.push(params.update))
  .onNotification(clientMethods.elicitation.complete, ({ params }) => updates.push({ completed: params.elicitationId }))
  .onRequest(clientMethods.session.requestPermission, () => ({ outcome: { outcome: "selected", optionId: "y" } }))
  .onRequest(clientMethods.fs.readTextFile, ({ params }) => ({ content: files[params.path] }))
  .onRequest(clientMethods.fs.writeTextFile, ({ params }) => {
    files[params.path] = params.content;
    return {};
  })
  .onRequest(clientMethods.terminal.create, ({ params }) => {
    const ran = spawnSync(params.command, params.args, { encoding: "utf8" });
    terminals.set("t1", { output: ran.stdout, exitStatus: { exitCode: ran.status }, truncated: false });
    return { terminalId: "t1" };
  })
  .onRequest(clientMethods.terminal.waitForExit, ({ params }) => terminals.get(params.terminalId).exitStatus)
  .onRequest(clientMethods.terminal.output, ({ params }) => terminals.get(params.terminalId))
  .onRequest(clientMethods.terminal.release, ({ params }) => {
    terminals.delete(params.terminalId);
    return {};
  })
  .onRequest(clientMethods.elicitation.create, ({ params }) =>
    params.mode === "form" ? { action: "accept", content: { name: "Ada" } } : { action: "accept" },
  );

const seen = await app.connectWith(stream, async (agent) => {
  const initialized = await agent.request(agentMethods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true },
      terminal: true,
      elicitation: { form: {}, url: {} },
      session: { configOptions: { boolean: {} } },
    },
  });
  const opened = await agent.request(agentMethods.session.new, { cwd: "/", mcpServers: [] });
  const { sessionId } = opened;
  const said = async (text) => {
    const from = updates.length;
    await agent.request(agentMethods.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    return updates.slice(from);
  };
  const texts = (list) => list.map((update) => update.content?.text).filter(Boolean).join("");
  const kinds = (list) => [...new Set(list.map((update) => update.sessionUpdate ?? "completed"))];
  const words = {};
  for (const word of [
    "readfile:/notes.txt", "writefile:/new.txt", "term:echo hello", "perm", "plan", "elicit:form", "elicit:url",
    "image", "diff", "usage", "commands",
  ]) {
    const list = await said(word);
    words[word] = [texts(list), kinds(list)];
  }
  await agent.request(agentMethods.session.setMode, { sessionId, modeId: "code" });
  const set = await agent.request(agentMethods.session.setConfigOption, { sessionId, configId: "web", type: "boolean", value: true });
  const mode = texts(await said("mode"));
  const count = updates.length;
  const listed = await agent.request(agentMethods.session.list, {});
  await agent.request(agentMethods.session.close, { sessionId });
  await agent.request(agentMethods.session.load, { sessionId, cwd: "/", mcpServers: [] });
  const replayed = updates.length - count;
  await agent.request(agentMethods.session.close, { sessionId });
  await agent.request(agentMethods.session.resume, { sessionId, cwd: "/", mcpServers: [] });
  const resumed = texts(await said("mode"));
  await agent.request(agentMethods.session.delete, { sessionId });
  const left = await agent.request(agentMethods.session.list, {});
  return {
    loads: initialized.agentCapabilities.loadSession,
    modes: opened.modes.availableModes.map((each) => each.id),
    options: opened.configOptions.map((option) => option.type),
    set: set.configOptions.map((option) => option.currentValue),
    words, mode, resumed,
    written: files["/new.txt"],
    open: terminals.size,
    listed: listed.sessions.length,
    left: left.sessions.length,
    replayed: replayed > 20,
  };
});
console.log(JSON.stringify({ ...seen, wire }));
process.exit(0);
