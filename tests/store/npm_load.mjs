// Loads a session with the official TypeScript SDK, asks what was said first, and prints what it saw as one JSON object.
// usage: node npm_load.mjs '{"http": url} or {"websocket": url}' SESSION
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const target = JSON.parse(process.argv[2]);
const sessionId = process.argv[3];
const methods = acp.methods;
const updates = [];

const app = acp.client({ name: "loader" }).onNotification(methods.client.session.update, ({ params }) => {
  updates.push(params.update);
});
const stream = target.http ? createHttpStream(target.http) : createWebSocketStream(target.websocket);
const seen = await app.connectWith(stream, async (agent) => {
  const { agentCapabilities } = await agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const { sessions } = await agent.request(methods.agent.session.list, {});
  await agent.request(methods.agent.session.load, { sessionId, cwd: "/", mcpServers: [] });
  const replayed = [...updates];
  await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "first" }] });
  return {
    loadSession: agentCapabilities.loadSession,
    listed: sessions.map((session) => session.sessionId),
    replayed,
    answer: updates.at(-1).content.text,
  };
});
console.log(JSON.stringify(seen));
process.exit(0);
