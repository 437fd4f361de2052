// Plays an agent of the Claude Agent SDK; its model is the one that ANTHROPIC_BASE_URL names, which keeps what it reads.
import { query } from "@anthropic-ai/claude-agent-sdk";

// THE PAGE
const own = { pathToClaudeCodeExecutable: process.env.CLAUDE, permissionMode: "bypassPermissions", settingSources: [] };
const run = { ...options, ...own, allowDangerouslySkipPermissions: true, cwd: process.cwd() };
for await (const _message of query({ prompt: "Write b.py.", options: run })) {
}
