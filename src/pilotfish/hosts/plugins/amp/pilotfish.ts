// @i-know-the-amp-plugin-api-is-wip-and-very-experimental-right-now
// Written by `pilotfish setup amp`: after an edit, Amp's model reads what language servers say of it.
import { spawn } from "node:child_process";

const COMMAND: string[] = ["pilotfish", "hook", "amp"];

/** What Pilotfish has to say about an event: nothing where it cannot be asked, for no edit may fail by it. */
function ask(event: string, thread: string, files: string[] = []): Promise<string> {
  return new Promise((answer) => {
    try {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
      let said = "";
      child.stdout.on("data", (data) => (said += data));
      child.on("error", () => answer(""));
      child.on("close", () => answer(said.trim()));
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify({ event, files, session: thread, cwd: process.cwd() }));
    } catch {
      answer("");
    }
  });
}

/** The output of a tool with a text after it, whatever its form. */
function appended(output: unknown, text: string): unknown {
  if (output === undefined || output === null) return text;
  if (typeof output === "string") return `${output}\n\n${text}`;
  return Array.isArray(output) ? [...output, text] : { ...(output as object), pilotfish: text };
}

export default function (amp: any) {
  amp.on("session.start", async (event: any) => {
    if (event.thread?.id) await ask("began", event.thread.id);
  });
  amp.on("tool.result", async (event: any) => {
    if (event.status !== "done") return undefined;
    const files = (amp.helpers.filesModifiedByToolCall(event) ?? []).map((uri: unknown) =>
      amp.helpers.filePathFromURI(uri),
    );
    const text = await ask(files.length ? "touched" : "called", event.thread.id, files);
    return text ? { status: "done", output: appended(event.output, text) } : undefined;
  });
  amp.on("agent.end", async (event: any) => {
    const userMessage = event.status === "done" ? await ask("stopping", event.thread.id) : "";
    return userMessage ? { action: "continue", userMessage } : undefined;
  });
}
