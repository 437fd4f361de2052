// OpenCode as a plugin sees it, at the end of a pipe: as `pi_driver.mjs`, with the hooks of OpenCode.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const logged = [];
const toasts = [];
const prompts = [];
const client = {
	session: {
		prompt: async ({ body }) => {
			prompts.push(body.parts[0].text);
			return { data: { parts: [{ messageID: "message", id: "part" }] } };
		},
	},
	app: { log: async ({ body }) => logged.push([body.level, body.message]) },
	tui: { showToast: async ({ body }) => toasts.push(body.message) },
};

// The words after these two are those of OpenCode's own command line.
const [plugin, directory] = process.argv.splice(2, 2);
const { Pilotfish } = await import(pathToFileURL(plugin).href);
const hooks = await Pilotfish({ client, directory, worktree: "/" });

const actions = {
	before: ({ tool, args, call }) => hooks["tool.execute.before"]({ tool, sessionID: "session", callID: call }, { args }),
	after: async ({ tool, args, output, call = "call" }) => {
		await hooks["tool.execute.after"]({ tool, sessionID: "session", callID: call, args }, output);
		return output;
	},
	said: () => hooks["experimental.text.complete"]({ sessionID: "session", messageID: "message", partID: "part" }, {}),
	step: () =>
		hooks["experimental.chat.messages.transform"]({}, { messages: [{ info: { sessionID: "session" } }] }),
	event: ({ event }) => hooks.event({ event }),
	config: ({ config }) => hooks.config(config),
	dispose: () => hooks.dispose(),
	hooks: () => Object.keys(hooks),
	seen: () => ({ logged, toasts, prompts }),
	resources: () => process.getActiveResourcesInfo(),
};

createInterface({ input: process.stdin }).on("line", async (line) => {
	const { number, do: action, with: what } = JSON.parse(line);
	const answer = await Promise.resolve()
		.then(() => actions[action](what ?? {}))
		.then((value) => ({ number, value: value ?? null }), (error) => ({ number, error: String(error?.stack ?? error) }));
	process.stdout.write(`${JSON.stringify(answer)}\n`);
});
