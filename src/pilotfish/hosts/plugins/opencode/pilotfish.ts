/**
 * Pilotfish in OpenCode: after an edit the model reads what it broke.
 *
 * - `tool.execute.after` appends to the result of OpenCode's own tools; the result itself is kept, and the results of
 *   MCP servers, which have another shape, are left alone. After a read the server is started in the background.
 * - After any other tool the model reads what came late and what commands have broken. When a session is idle it hears
 *   what it left, and goes on. `opencode run` ends as soon as it is idle: there the model hears that after each text
 *   that may be its last, and if a tool call follows after all, what was said is taken back before that runs.
 * - `tool.execute.before` reads the text before an edit, which tells new errors from old ones.
 * - No hook throws: OpenCode would take that for a failure of the edit. Errors are in OpenCode's log.
 * - `event` connects when a session begins; `dispose`, or else the end of the socket, ends ours.
 * - OpenCode's own `lsp` would report everything twice: if it is on, the person is warned once.
 *
 * `pilotfish setup opencode` writes this file, joined with `daemon.ts`, into `~/.config/opencode/plugin/` and writes `pilotfish.json` beside it:
 *
 *     {"command": ["/absolute/python", "-I", "-m", "pilotfish"], "home": "/absolute/PILOTFISH_HOME"}
 *
 * `command` runs pilotfish; `daemon start` is added to it when no daemon listens. `home` is there only where it is not
 * the default, and the variable of that name goes before it; `waitMs`, too, only where an edit shall wait for longer or
 * shorter than usual. Without the file, `pilotfish` is looked for on the PATH.
 */
import { resolve } from "node:path";
import type { Hooks, PluginInput } from "@opencode-ai/plugin";
import { Daemon, type Kind, OldTexts, type Touch, isText, patchedFiles } from "../daemon.ts";

const TWICE = "OpenCode's own lsp is on and repeats what Pilotfish says: set lsp to false in opencode.json";

const KINDS = new Map<string, Kind>([
	["edit", "edit"],
	["multiedit", "edit"],
	["write", "write"],
	["apply_patch", "patch"],
	["patch", "patch"],
	["read", "read"],
]);

/** The options of OpenCode that take a word, which is no command. */
const VALUED = new Set([
	"--log-level", "--port", "--hostname", "--mdns-domain", "--cors", "-m", "--model", "-s", "--session",
	"--prompt", "--agent", "--replay-limit", "--command", "--format", "-f", "--file", "--title", "--attach",
	"-p", "--password", "-u", "--username", "--dir", "--variant",
]);

/** The commands of OpenCode. Without one it opens its screen, in the folder that a word may name. */
const COMMANDS = new Set([
	"run", "serve", "web", "acp", "attach", "mcp", "agent", "auth", "providers", "models", "session", "stats", "export",
	"import", "github", "pr", "plugin", "plug", "debug", "upgrade", "uninstall", "completion", "generate", "db",
]);

/** Whether this program ends with the turn. */
const ENDS_WITH_TURN = commandOf(process.argv.slice(2)) === "run";

/** A part of a message that the SDK has no method for. */
interface Raw {
	delete(request: { url: string; path: Record<string, string> }): Promise<unknown>;
}

interface Said {
	message: string;
	part: string;
}

export const Pilotfish = async ({ client, directory }: PluginInput): Promise<Hooks> => {
	const daemon = new Daemon({ cwd: directory, host: "opencode" });
	const oldTexts = new OldTexts();
	const children = new Set<string>();
	const aborted = new Set<string>();
	/** By session: the agent and the model that a person asked, who shall also hear what we say. */
	const asked = new Map<string, { agent: string; model: { providerID: string; modelID: string } }>();
	/** By session: what was said after a text that may be the last one. */
	const said = new Map<string, Said>();
	/** Sessions whose model has called a tool in this step. */
	const calling = new Set<string>();
	let ownServers = false;

	/** Not awaited: OpenCode answers this itself, perhaps only after the hook that asks. */
	function quietly(telling: () => Promise<unknown>): void {
		Promise.resolve().then(telling).catch(() => undefined);
	}

	function log(level: "info" | "warn", message: string): void {
		quietly(() => client.app.log({ body: { service: "pilotfish", level, message } }));
	}

	function warn(): void {
		log("warn", TWICE);
		quietly(() => client.tui.showToast({ body: { message: TWICE, variant: "warning" } }));
	}

	async function append(touch: Touch, output: { output: string }): Promise<void> {
		const { text, state, reason } = await daemon.touched(touch);
		if (text) output.output += `\n\n${text}`;
		else if (state !== "fresh") log("info", `no verdict on ${touch.paths.join(", ")}: ${reason}`);
	}

	async function beforeStop(session: string): Promise<void> {
		if (aborted.delete(session) || children.has(session)) return;
		const text = await daemon.reached({ kind: "stop" });
		if (text) await client.session.promptAsync({ path: { id: session }, body: bodyOf(session, text) });
	}

	/** OpenCode goes on by itself when there is a message that is newer than the last answer. */
	async function perhapsBeforeStop(session: string): Promise<void> {
		if (children.has(session) || calling.has(session) || said.has(session)) return;
		const text = await daemon.reached({ kind: "stop", tentative: true });
		if (!text || calling.has(session)) return;
		const body = { ...bodyOf(session, text), noReply: true };
		const message = (await client.session.prompt({ path: { id: session }, body })).data;
		const part = message?.parts[0];
		if (!part) return;
		said.set(session, { message: part.messageID, part: part.id });
		if (calling.has(session)) await takeBack(session);
	}

	async function takeBack(session: string): Promise<void> {
		const { message, part } = said.get(session) ?? {};
		if (!said.delete(session) || !message || !part) return;
		const raw = (client as unknown as { _client: Raw })._client;
		const url = "/session/{id}/message/{messageID}/part/{partID}";
		await raw.delete({ url, path: { id: session, messageID: message, partID: part } });
	}

	function bodyOf(session: string, text: string) {
		return { ...asked.get(session), parts: [{ type: "text" as const, text }] };
	}

	async function caught(what: string, work: () => Promise<void>): Promise<void> {
		await work().catch((error) => log("info", `${what}: ${error instanceof Error ? error.message : error}`));
	}

	return {
		config: async (config) => {
			ownServers = Boolean(config?.lsp);
		},
		event: async ({ event }) => {
			if (event?.type === "session.created") {
				daemon.open();
				if (event.properties?.info?.parentID) children.add(event.properties.info.id);
				if (ownServers) warn();
				ownServers = false;
			}
			// A person who stops the agent wants it to stop.
			if (event?.type === "session.error") aborted.add(event.properties?.sessionID ?? "");
			if (event?.type === "session.idle") quietly(() => beforeStop(event.properties?.sessionID));
		},
		"chat.message": async (input, output) => {
			const { agent, model } = output?.message ?? {};
			if (agent && model) asked.set(input.sessionID, { agent, model });
		},
		"experimental.text.complete": async (input) => {
			if (ENDS_WITH_TURN) await caught("nothing said before a stop", () => perhapsBeforeStop(input.sessionID));
		},
		"experimental.chat.messages.transform": async (_input, output) => {
			const session = output?.messages?.at(-1)?.info.sessionID ?? "";
			calling.delete(session);
			// The model reads it now.
			if (said.delete(session)) await daemon.reached({ kind: "stop" });
		},
		"tool.execute.before": async (input, output) => {
			calling.add(input.sessionID);
			await caught("not taken back", () => takeBack(input.sessionID));
			try {
				oldTexts.keep(input.callID, touchOf(input.tool, output.args, directory));
			} catch (error) {
				log("info", `no old text: ${error instanceof Error ? error.message : error}`);
			}
		},
		"tool.execute.after": async (input, output) => {
			try {
				if (typeof output?.output !== "string") return;
				const touch = touchOf(input.tool, input.args, directory);
				if (touch && touch.kind !== "read") return await append(oldTexts.joined(input.callID, touch), output);
				if (touch) daemon.touched(touch).catch(() => undefined);
				const text = await daemon.reached({ kind: "call" });
				if (text) output.output += `\n\n${text}`;
			} catch (error) {
				log("info", `no verdict: ${error instanceof Error ? error.message : error}`);
			}
		},
		dispose: async () => daemon.close(),
	};
};

/** The command of a command line: an option that is newer than our list may take a word, too, so only commands count. */
function commandOf(words: string[]): string | undefined {
	return words.find((word, place) => COMMANDS.has(word) && !VALUED.has(words[place - 1] ?? ""));
}

/** The files that a tool of OpenCode has touched; undefined for other tools. */
function touchOf(tool: string, input: Record<string, unknown> | undefined, directory: string): Touch | undefined {
	const kind = KINDS.get(tool);
	if (kind === undefined || !input) return undefined;
	const texts = Object.values(input).filter(isText);
	const named = kind === "patch" ? texts.flatMap(patchedFiles) : [input.filePath];
	const paths = named.filter(isText).map((path) => resolve(directory, path));
	return paths.length ? { paths, kind } : undefined;
}
