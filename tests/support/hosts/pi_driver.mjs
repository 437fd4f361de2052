// Pi as an extension sees it, at the end of a pipe: one JSON object per line in, one per line out.
//
//     {"number": 1, "do": "fire", "with": {"event": "tool_result", "data": {…}}}  →  {"number": 1, "value": …}
//
// Ends by itself when its input has ended and nothing else keeps the process alive.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const cwd = process.argv[3];
const handlers = new Map();
const tools = new Map();
const commands = new Map();
const statuses = [];
const notices = [];
const aborts = new AbortController();
let component;
let active = ["read", "lsp"];
let open = false;
let renders = 0;

const theme = { fg: (_colour, text) => text, bold: (text) => text };
const tui = { terminal: { rows: 40 }, requestRender: () => renders++ };

function custom(factory) {
	return new Promise((resolve) => {
		const done = (value) => {
			open = false;
			resolve(value);
			component.dispose();
		};
		open = true;
		component = factory(tui, theme, {}, done);
	});
}

function contextOf({ hasUI = true, rpc = false } = {}) {
	const ui = {
		theme,
		setStatus: (key, text) => statuses.push([key, text]),
		notify: (text) => notices.push(text),
		custom: rpc ? async () => undefined : custom,
	};
	return { ui, hasUI, cwd, signal: aborts.signal, sessionManager: { getSessionId: () => "conversation" } };
}

const actions = {
	fire: ({ event, data }) => handlers.get(event)?.(data, contextOf()),
	tool: ({ name, parameters }) => tools.get(name).execute("call", parameters, aborts.signal, undefined, contextOf()),
	registered: () => [...tools.values()],
	command: async ({ name, ...where }) => {
		// A panel that is open has not been answered, and the command goes on.
		const ended = commands.get(name).handler("", contextOf(where)).then(() => "ended");
		return Promise.race([ended, new Promise((resolve) => setImmediate(() => open && resolve("open")))]);
	},
	key: ({ data }) => component.handleInput(data),
	render: ({ width, rows = 40 }) => {
		tui.terminal.rows = rows;
		return component.render(width);
	},
	abort: () => aborts.abort(),
	seen: () => ({ statuses, notices, active, open, renders }),
	resources: () => process.getActiveResourcesInfo(),
};

const pi = {
	on: (event, handler) => handlers.set(event, handler),
	registerTool: (tool) => tools.set(tool.name, tool),
	registerCommand: (name, command) => commands.set(name, command),
	getActiveTools: () => active,
	setActiveTools: (names) => {
		active = names;
	},
};

// As in Pi, what an extension prints is kept apart from what the host says.
console.log = (...words) => process.stderr.write(`${words.join(" ")}\n`);

const { default: extension } = await import(pathToFileURL(process.argv[2]).href);
extension(pi);
createInterface({ input: process.stdin }).on("line", async (line) => {
	const { number, do: action, with: what } = JSON.parse(line);
	const answer = await Promise.resolve()
		.then(() => actions[action](what ?? {}))
		.then((value) => ({ number, value: value ?? null }), (error) => ({ number, error: String(error?.stack ?? error) }));
	process.stdout.write(`${JSON.stringify(answer)}\n`);
});
