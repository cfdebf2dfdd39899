// The contract of benchmarks/measures.py on the official npm SDK.
import * as acp from "@agentclientprotocol/sdk";
import { Readable, Writable } from "node:stream";

const { agent, client } = acp.methods;
let sessions = 0;

const app = acp
  .agent({ name: "echo" })
  .onRequest(agent.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(agent.session.new, () => ({ sessionId: `s${++sessions}` }))
  .onNotification(agent.session.cancel, () => {})
  .onRequest(agent.session.prompt, async ({ params, client: peer }) => {
    const { sessionId } = params;
    const text = params.prompt[0].text;
    const send = (chunk) =>
      peer.notify(client.session.update, {
        sessionId,
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: chunk } },
      });
    if (text.startsWith("stream:")) {
      const [, count, size] = text.split(":");
      const chunk = "x".repeat(Number(size));
      for (let sent = 0; sent < Number(count); sent++) await send(chunk);
    } else await send(text);
    return { stopReason: "end_turn" };
  });

await app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin))).closed;
