// An agent on the official TypeScript SDK: on stdio, or over HTTP and WebSocket on a port of its own that it prints.
import * as acp from "@agentclientprotocol/sdk";
import http from "node:http";
import { Readable, Writable } from "node:stream";

let sessions = 0;
const { agent, client: toClient } = acp.methods;
const make = () =>
  acp
    .agent({ name: "npm" })
    .onRequest(agent.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
    .onRequest(agent.session.new, () => ({ sessionId: `s${++sessions}` }))
    .onNotification(agent.session.cancel, () => {})
    .onRequest(agent.session.prompt, async ({ params, client }) => {
      const { sessionId } = params;
      const text = params.prompt[0].text;
      const say = (said) =>
        client.notify(toClient.session.update, {
          sessionId,
          update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: said } },
        });
      if (text === "ask") {
        const answer = await client.request(toClient.session.requestPermission, {
          sessionId,
          toolCall: { toolCallId: "1", title: "Delete" },
          options: [{ optionId: "y", name: "Yes", kind: "allow_once" }],
        });
        await say(answer.outcome.outcome);
      } else for (let number = 0; number < Number(text); number++) await say(`${number} `);
      return { stopReason: "end_turn" };
    });

if (process.argv[2] === "serve") {
  const { AcpServer } = await import("@agentclientprotocol/sdk/experimental/server");
  const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await import(
    "@agentclientprotocol/sdk/experimental/node"
  );
  const { WebSocketServer } = await import("ws");
  const served = new AcpServer({ createAgent: make });
  const server = http.createServer(createNodeHttpHandler(served));
  server.on("upgrade", createNodeWebSocketUpgradeHandler(served, new WebSocketServer({ noServer: true })));
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
} else {
  await make().connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin))).closed;
}
