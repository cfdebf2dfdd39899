// Makes a session on one HTTP connection, loads it over a fresh one, fails to load another, and prints what it saw.
// usage: node npm_load.mjs URL
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";

const url = process.argv[2];
const methods = acp.methods;
const updates = [];
const client = acp
  .client({ name: "loader" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push([params.sessionId, params.update.content.text]);
  });
const initialize = (agent) => agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
const prompt = (agent, sessionId, text) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

const made = await client.connectWith(createHttpStream(url), async (agent) => {
  await initialize(agent);
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: "/", mcpServers: [] });
  await prompt(agent, sessionId, "first");
  return sessionId;
});

updates.length = 0;
const seen = await client.connectWith(createHttpStream(url), async (agent) => {
  await initialize(agent);
  const load = (sessionId) => agent.request(methods.agent.session.load, { sessionId, cwd: "/", mcpServers: [] });
  const failed = await load("gone").then(() => null, (error) => error.code);
  await load(made);
  const replayed = updates.map(([sessionId, text]) => [sessionId === made, text]);
  const answer = await prompt(agent, made, "second");
  return { failed, replayed, stopReason: answer.stopReason, last: updates.at(-1)[1] };
});
console.log(JSON.stringify(seen));
