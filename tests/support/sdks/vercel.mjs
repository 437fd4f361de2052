// Plays an agent of the Vercel AI SDK on its own mock model: breaks a file, wants to stop, mends it, stops.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { generateText, stepCountIs, tool } from "ai";
import * as mocks from "ai/test";
import { z } from "zod";

const BROKEN = 'def f() -> int:\n    return "x"\n';
const EDITS = [BROKEN, null, BROKEN.replace('"x"', "1"), null];
const read = [];
const Mock = mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3;
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

const model = new Mock({
  doGenerate: async ({ prompt }) => {
    read.push(JSON.stringify(prompt));
    const text = EDITS[read.length - 1];
    const content =
      text === null
        ? [{ type: "text", text: "Done." }]
        : [{ type: "tool-call", toolCallId: `c${read.length}`, toolName: "edit_file", input: JSON.stringify({ path: "a.py", text }) }];
    const finish = text === null ? "stop" : "tool-calls";
    return { content, finishReason: { unified: finish, raw: finish }, usage, warnings: [] };
  },
});
const [task, messages, stopWhen] = ["Write a.py.", [], stepCountIs(20)];
execFileSync("pilotfish", ["hook", "plain"], { input: JSON.stringify({ session: "1", files: ["a.py"] }) });

// THE PAGE
console.log(JSON.stringify(read));
