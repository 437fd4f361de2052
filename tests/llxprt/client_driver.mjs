// LLxprt's core at the end of a pipe: one call of the client per line in, its answer out.
//
//     {"call": "checkFile", "with": ["a.fake"]}  →  {"value": […]}
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [, , module, root, config, command] = process.argv;
const { LspServiceClient } = await import(pathToFileURL(module).href);
const verdicts = [];
const onVerdict = (verdict) => verdicts.push(verdict);
const client = new LspServiceClient(JSON.parse(config), root, { command: JSON.parse(command), onVerdict });

/** An MCP client in short: the answers to some requests, on the streams that the client gives. */
async function mcp(requests) {
	const streams = client.getMcpTransportStreams();
	const answers = [];
	const lines = createInterface({ input: streams.readable });
	const done = new Promise((resolve) => {
		lines.on("line", (line) => {
			const message = JSON.parse(line);
			if (message.id !== undefined && answers.push(message) === requests.filter((one) => one.id).length) resolve();
		});
	});
	for (const request of requests) streams.writable.write(`${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`);
	await done;
	lines.close();
	return answers;
}

const others = {
	state: () => client.state,
	reason: () => client.unavailableReason ?? null,
	streams: () => client.getMcpTransportStreams() !== null,
	verdicts: () => verdicts,
	aborted: (path) => client.checkFile(path, undefined, AbortSignal.abort()),
	mcp,
};

for await (const line of createInterface({ input: process.stdin })) {
	const { call, with: given } = JSON.parse(line);
	const value = await (others[call] ?? client[call].bind(client))(...given);
	process.stdout.write(`${JSON.stringify({ value: value ?? null })}\n`);
}
await client.shutdown();
