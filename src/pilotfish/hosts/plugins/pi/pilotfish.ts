/**
 * Pilotfish in Pi: after an edit the model reads what it broke; the tool `lsp` asks servers, and `/lsp` shows them.
 *
 * - `tool_result` is the one place where output changes: text is appended, and the result itself is kept. Errors are
 *   shown to the person in the status line and never to the model: no edit looks as if it had failed.
 * - `tool_execution_end` only writes the status line, since Pi does not show a person what was appended.
 * - `tool_call` reads the text before an edit, which tells new errors from old ones.
 * - After a read the server is started in the background.
 * - After any other tool, and with a prompt, the model reads what came late and what commands have broken; `agent_end`
 *   is where it hears what it left, and goes on.
 * - The session ends with `session_shutdown`, or else with the socket: Pi does not always report its end.
 *
 * `pilotfish setup pi` writes this file, joined with `daemon.ts`, into `~/.pi/agent/extensions/` and writes `pilotfish.json` beside it:
 *
 *     {"command": ["/absolute/python", "-I", "-m", "pilotfish"], "home": "/absolute/PILOTFISH_HOME"}
 *
 * `command` runs pilotfish; `daemon start` is added to it when no daemon listens. `home` is there only where it is not
 * the default, and the variable of that name goes before it; `waitMs`, too, only where an edit shall wait for longer or
 * shorter than usual. Without the file, `pilotfish` is looked for on the PATH.
 *
 * It imports types and node's own modules, so that it runs in every Pi as it is.
 */
import { homedir } from "node:os";
import { basename, resolve } from "node:path";
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";
import { Daemon, Failed, type Feedback, type Kind, OldTexts, type Touch, isText, patchedFiles } from "../daemon.ts";

/** For a question: the daemon gives a cold server 60 s. */
const ASK_MS = 90_000;
/** For a look at the servers: nothing is started for it, but the daemon may be. */
const STATUS_MS = 15_000;
/** How often an open panel looks again. */
const REFRESH_MS = 2_000;
const PANEL = { anchor: "center", width: 82, maxHeight: "80%", margin: 1 } as const;
/** Columns of the status line that are ours: others write there, too. */
const MAX_NOTE = 100;

const KINDS = new Map<string, Kind>([
	["edit", "edit"],
	["write", "write"],
	["apply_patch", "patch"],
	["patch", "patch"],
	["read", "read"],
]);

export default function pilotfish(pi: ExtensionAPI): void {
	let daemon: Daemon | undefined;
	let panel: Panel | undefined;
	const notes = new Map<string, string>();
	const oldTexts = new OldTexts();

	function daemonOf(ctx: ExtensionContext): Daemon {
		daemon ??= new Daemon({ cwd: ctx.cwd, host: "pi", conversation: ctx.sessionManager.getSessionId() });
		return daemon;
	}

	pi.on("session_start", (_event, ctx) => {
		ctx.ui.setStatus("pilotfish", undefined);
		// In the background: until the configuration is known, the tool is active.
		daemonOf(ctx)
			.request<boolean>("tools", null, STATUS_MS)
			.then((wanted) => wanted || pi.setActiveTools(pi.getActiveTools().filter((name) => name !== "lsp")))
			.catch(() => undefined);
	});

	pi.on("session_shutdown", () => {
		panel?.close();
		daemon?.close();
		daemon = undefined;
		notes.clear();
	});

	pi.on("tool_call", (event, ctx) => {
		try {
			oldTexts.keep(event.toolCallId, touchOf(event.toolName, event.input, ctx.cwd));
		} catch {
			// Pi would not run the tool. Without an old text there is feedback all the same.
		}
	});

	pi.on("tool_result", async (event, ctx) => {
		try {
			const touch = event.isError ? undefined : touchOf(event.toolName, event.input, ctx.cwd, event.details);
			if (touch?.kind === "read") daemonOf(ctx).touched(touch, ctx.signal).catch(() => undefined);
			if (touch === undefined || touch.kind === "read") {
				return appended(event.content, await daemonOf(ctx).reached({ kind: "call" }, ctx.signal));
			}
			const feedback = await daemonOf(ctx).touched(oldTexts.joined(event.toolCallId, touch), ctx.signal);
			notes.set(event.toolCallId, noteOf(touch, feedback));
			return appended(event.content, feedback.text);
		} catch (error) {
			notes.set(event.toolCallId, `no verdict: ${reasonOf(error)}`);
			return undefined;
		}
	});

	pi.on("before_agent_start", async (_event, ctx) => {
		const text = await daemonOf(ctx).reached({ kind: "prompt" });
		return text ? { message: { customType: "pilotfish", content: text, display: true } } : undefined;
	});

	pi.on("agent_end", async (event, ctx) => {
		const last = event.messages.at(-1);
		// A person who stops the agent wants it to stop.
		if (last?.role === "assistant" && ["aborted", "error"].includes(last.stopReason)) return;
		const text = await daemonOf(ctx).reached({ kind: "stop" });
		if (text) pi.sendUserMessage(text, { deliverAs: "followUp" });
	});

	pi.on("tool_execution_end", (event, ctx) => {
		const note = notes.get(event.toolCallId);
		if (notes.delete(event.toolCallId) && note) ctx.ui.setStatus("pilotfish", cut(`lsp: ${clean(note)}`, MAX_NOTE));
	});

	pi.registerTool({
		name: "lsp",
		label: "LSP",
		description: DESCRIPTION,
		promptSnippet: "Ask language servers for definitions, references, types, symbols, calls, diagnostics and renames",
		parameters: PARAMETERS as never,
		async execute(_id, params, signal, _update, ctx) {
			const answer = await answered(daemonOf(ctx), params as Question, signal);
			return { content: [{ type: "text", text: JSON.stringify(answer) }], details: answer };
		},
	});

	pi.registerCommand("lsp", {
		description: "Show the language servers",
		handler: async (_arguments, ctx) => {
			const daemon = daemonOf(ctx);
			const look = (stop?: AbortSignal) => daemon.request<Snapshot>("status", null, STATUS_MS, stop);
			let opened = false;
			if (ctx.hasUI) {
				await ctx.ui.custom<void>(
					(tui, theme, _keys, done) => {
						opened = true;
						const rows = () => Math.floor(tui.terminal.rows * 0.8);
						panel = new Panel({ look, theme, rows, changed: () => tui.requestRender(), done: () => done() });
						return panel;
					},
					{ overlay: true, overlayOptions: PANEL },
				);
				panel = undefined;
			}
			if (!opened) tell(ctx, await look().then(summaryOf, (error) => `No daemon: ${reasonOf(error)}`));
		},
	});
}

/** A result with a text after it. Pi puts one line end between two texts, so this makes a blank line. */
function appended<Content>(content: Content[], text: string): { content: (Content | Text)[] } | undefined {
	return text ? { content: [...content, { type: "text", text: `\n${text}` }] } : undefined;
}

type Text = { type: "text"; text: string };

/** Tell the person where no panel is possible. Pi keeps what is printed apart from its own output. */
function tell(ctx: ExtensionContext, text: string): void {
	if (ctx.hasUI) ctx.ui.notify(text, "info");
	else console.log(text);
}

/** The files that a tool of Pi has touched; undefined for other tools. */
function touchOf(
	tool: string,
	input: Record<string, unknown>,
	cwd: string,
	details?: unknown,
): Touch | undefined {
	const kind = KINDS.get(tool);
	if (kind === undefined) return undefined;
	const patched = Object.values(input).filter(isText).flatMap(patchedFiles);
	const own = [input.path ?? input.file_path ?? input.filePath].filter(isText);
	const named = kind !== "patch" ? own : patched.length ? patched : [...own, ...filesIn(details)];
	const paths = [...new Set(named.map((path) => placed(path, cwd)))];
	return paths.length ? { paths, kind } : undefined;
}

const LISTS = ["files", "paths", "changes", "changedFiles", "filesChanged", "modified", "created", "added", "updated"];

/** The files that a patch tool says it has changed, where its input names none: in lists, or in a diff. */
function filesIn(details: unknown): string[] {
	if (typeof details !== "object" || details === null) return [];
	const said = details as Record<string, unknown>;
	const listed = LISTS.flatMap((key) => (Array.isArray(said[key]) ? (said[key] as unknown[]) : []));
	const named = listed.map((item) => {
		if (typeof item !== "object" || item === null) return item;
		const { path, filePath, file } = item as Record<string, unknown>;
		return path ?? filePath ?? file;
	});
	const diffs = [said.diff, said.patch].filter(isText);
	const written = diffs.flatMap((diff) => [...diff.matchAll(/^\+\+\+ (?:b\/)?([^\t\n]+)/gm)].map((line) => line[1]!));
	return [...named.filter(isText), ...written.filter((path) => path !== "/dev/null")];
}

/** A path as Pi's own tools read it. */
function placed(path: string, cwd: string): string {
	const plain = path.replace(/^@/, "").replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, " ");
	return resolve(cwd, plain.replace(/^~(?=\/|$)/, () => homedir()));
}

/** The result of an edit, for the person. Only a fresh verdict may say that there are no errors. */
function noteOf(touch: Touch, feedback: Feedback): string {
	const files = touch.paths.map((path) => basename(path)).join(", ");
	if (!feedback.text && feedback.state === "fresh") return `no errors in ${files}`;
	if (!feedback.text) return `no verdict on ${files}: ${feedback.reason}`;
	const found = [...feedback.text.matchAll(/^(ERROR|WARNING|INFO|HINT) \[/gm)].map((line) => line[1]!.toLowerCase());
	const counts = [...new Set(found)].map((word) => counted(found.filter((each) => each === word).length, word));
	return `${counts.join(", ") || "findings"} after the edit of ${files}`;
}

function counted(number: number, noun: string): string {
	return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function reasonOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

// --- The tool ------------------------------------------------------------------------------------------------------

type Envelope = { ok: boolean; data: unknown };
type Question = { operation: string; [field: string]: unknown };

/** The daemon's answer; where there is none, one in the same shape that says so. */
async function answered(daemon: Daemon, question: Question, signal: AbortSignal | undefined): Promise<unknown> {
	const started = Date.now();
	try {
		const answer = await daemon.request<Envelope>("ask", question, ASK_MS, signal);
		// In Pi a hover always has contents; that there are none is said by `meta.empty`.
		const bare = question.operation === "hover" && answer.ok && answer.data === null;
		return bare ? { ...answer, data: { contents: [] } } : answer;
	} catch (error) {
		const reason = reasonOf(error);
		const code = error instanceof Failed ? error.code : "bug";
		const durationMs = Date.now() - started;
		const timedOut = code === "ETIMEDOUT";
		return {
			ok: false,
			operation: question.operation,
			data: null,
			errors: [{ serverId: "pilotfish", message: reason, code }],
			meta: { durationMs, serverHits: 0, partial: false, state: "unavailable", timedOut, reason },
		};
	}
}

// Generated by tools/write_docs.py: lsp-tool.
const DESCRIPTION =
	"Ask the language servers about code. A place is filePath, line, character (1-based), or symbol (with " +
	"filePath and line if known). documentSymbol: filePath, depth?, kinds?, limit?, offset?; workspaceSymbol: " +
	"query, filePath?, kinds?, limit?, offset?; diagnostics: filePath, text?, severity?; renameFile: filePath, " +
	"newPath, apply?; codeActions: filePath, line, character?, kind?, action?, apply?. The others take a place; " +
	"goToImplementation also takes limit?, offset?; findReferences also takes includeDeclaration?, limit?, " +
	"offset?; incomingCalls also takes limit?, offset?, callHierarchyItem?; outgoingCalls also takes limit?, " +
	"offset?, callHierarchyItem?; supertypes also takes limit?, offset?, typeHierarchyItem?; subtypes also takes " +
	"limit?, offset?, typeHierarchyItem?; rename also takes newName, apply?; editSymbol also takes edit, text?, " +
	"digest?, apply?.";

const PARAMETERS = {
	type: "object",
	properties: {
		operation: {"type": "string", "enum": ["goToDefinition", "goToDeclaration", "goToTypeDefinition", "goToImplementation", "findReferences", "hover", "signature", "documentSymbol", "workspaceSymbol", "prepareCallHierarchy", "incomingCalls", "outgoingCalls", "supertypes", "subtypes", "diagnostics", "rename", "renameFile", "codeActions", "source", "explore", "impact", "editSymbol"]},
		filePath: {"type": "string"},
		line: {"type": "integer"},
		character: {"type": "integer"},
		symbol: {"type": "string"},
		offset: {"type": "integer"},
		includeDeclaration: {"type": "boolean", "description": "Default true"},
		depth: {"type": "integer"},
		kinds: {"type": "string", "description": "class,method; all: locals too"},
		query: {"type": "string", "description": "Name or part of it"},
		text: {"type": "string", "description": "Text, not on disk"},
		severity: {"type": "string", "description": "Least: error, warning, information, hint"},
		newName: {"type": "string"},
		apply: {"type": "boolean", "description": "Default: preview"},
		newPath: {"type": "string"},
		kind: {"type": "string", "description": "Such as quickfix"},
		action: {"type": "string", "description": "Id or title: shows its diff"},
		edit: {"type": "string", "description": "replace, before, after or delete"},
		digest: {"type": "string", "description": "From source: refuses if the text changed"},
	},
	required: ["operation"],
};
// End of lsp-tool.

// --- The panel -----------------------------------------------------------------------------------------------------

type Counts = { error: number; warning: number; info: number; hint: number };
type Row = {
	serverId: string;
	source: string;
	disabled: boolean;
	extensions: string[];
	configuredRoots: string[];
	connectedRoots: string[];
	spawningRoots: string[];
	broken?: { attempts: number; retryAt: number; lastError: string };
	unavailable?: string;
	diagnostics?: Counts;
	lastSeenAt?: number;
};
type Snapshot = { rows: Row[]; totals: Record<string, number> };
type Theme = ExtensionContext["ui"]["theme"];
type Colour = Parameters<Theme["fg"]>[0];
/** A piece of a line: its text, and how to paint it. */
type Piece = [text: string, colour?: Colour];

const COLOURS: Record<string, Colour> = {
	broken: "error",
	spawning: "warning",
	connected: "success",
	idle: "muted",
	unavailable: "dim",
	disabled: "dim",
};
const HINT = "j/k move · Enter details · / filter · r refresh · ? help · q close";
const HELP = [
	"↑ ↓ j k   move           g G       first, last",
	"Enter     show details   /         filter by id, state or extension",
	"r Ctrl+R  look again     Esc       leave the filter, then the panel",
	"?         this help      q         close",
	"● connected  ◐ starting  ! broken  ○ idle  - unavailable or disabled",
];
const SIGNS: Record<string, string> = { connected: "●", spawning: "◐", broken: "!", idle: "○" };

type Surroundings = {
	look: (stop: AbortSignal) => Promise<Snapshot>;
	theme: Theme;
	/** Lines that the panel may have. */
	rows: () => number;
	changed: () => void;
	done: () => void;
};

/** `/lsp`: the servers in a centred box. It looks again while it is open; its timer ends with it. */
class Panel {
	readonly #around: Surroundings;
	readonly #expanded = new Set<string>();
	readonly #timer: NodeJS.Timeout;
	readonly #over = new AbortController();
	#snapshot: Snapshot | undefined;
	#trouble = "";
	#selected = "";
	#filter = "";
	#filtering = false;
	#help = false;
	#looking = false;

	constructor(around: Surroundings) {
		this.#around = around;
		this.#timer = setInterval(() => this.#refresh(), REFRESH_MS);
		this.#refresh();
	}

	invalidate(): void {}

	dispose(): void {
		clearInterval(this.#timer);
		this.#over.abort();
	}

	close(): void {
		this.dispose();
		this.#around.done();
	}

	handleInput(data: string): void {
		for (const key of keysOf(data)) this.#filtering ? this.#type(key) : this.#press(key);
		this.#around.changed();
	}

	/** Lines of exactly `width` columns, at most as many as fit: Pi does not survive a line that is too wide. */
	render(width: number): string[] {
		const inner = Math.max(width - 4, 1);
		const head = [this.#totals(), ...this.#filterLine()];
		const foot: Piece[][] = this.#help ? HELP.map((line) => [[line, "dim"]]) : [[[HINT, "dim"]]];
		const body = this.#body(Math.max(this.#around.rows() - head.length - foot.length - 4, 1));
		const border = (text: string) => this.#around.theme.fg("border", text);
		const rule = border(`├${"─".repeat(inner + 2)}┤`);
		const line = (pieces: Piece[]) => `${border("│")} ${this.#painted(pieces, inner)} ${border("│")}`;
		const title = cut("─ Language servers ", inner + 2);
		const top = border(`╭${title}${"─".repeat(inner + 2 - columns(title))}╮`);
		const bottom = border(`╰${"─".repeat(inner + 2)}╯`);
		return [top, ...head.map(line), rule, ...body.map(line), rule, ...foot.map(line), bottom];
	}

	#type(key: string): void {
		if (key === "escape") this.#filter = "";
		if (key === "escape" || key === "enter") this.#filtering = false;
		else if (key === "backspace") this.#filter = [...this.#filter].slice(0, -1).join("");
		else if ([...key].length === 1) this.#filter += key;
	}

	#press(key: string): void {
		const ids = this.#rows().map((row) => row.serverId);
		const at = Math.max(ids.indexOf(this.#selected), 0);
		const go = (index: number) => {
			this.#selected = ids[Math.min(Math.max(index, 0), ids.length - 1)] ?? "";
		};
		if (key === "down" || key === "j") go(at + 1);
		else if (key === "up" || key === "k") go(at - 1);
		else if (key === "g") go(0);
		else if (key === "G") go(ids.length - 1);
		else if (key === "enter") this.#toggle(ids[at]);
		else if (key === "/") this.#filtering = true;
		else if (key === "r" || key === "ctrl+r") this.#refresh();
		else if (key === "?") this.#help = !this.#help;
		else if (key === "q" || key === "escape") this.close();
	}

	#toggle(id: string | undefined): void {
		if (id !== undefined && !this.#expanded.delete(id)) this.#expanded.add(id);
	}

	#refresh(): void {
		if (this.#looking) return;
		this.#looking = true;
		const seen = (snapshot: Snapshot | undefined, trouble: string) => {
			this.#snapshot = snapshot ?? this.#snapshot;
			this.#trouble = trouble;
			this.#looking = false;
			this.#around.changed();
		};
		const looking = this.#around.look(this.#over.signal);
		looking.then((snapshot) => seen(snapshot, ""), (error) => seen(undefined, reasonOf(error)));
	}

	#rows(): Row[] {
		const sought = this.#filter.toLowerCase();
		const text = (row: Row) => [row.serverId, stateOf(row), ...row.extensions].join(" ").toLowerCase();
		return (this.#snapshot?.rows ?? []).filter((row) => text(row).includes(sought));
	}

	#totals(): Piece[] {
		if (this.#trouble) return [[`The daemon cannot be asked: ${this.#trouble}`, "error"]];
		if (!this.#snapshot) return [["looking …", "muted"]];
		return [[totalsOf(this.#snapshot), "muted"]];
	}

	#filterLine(): Piece[][] {
		return this.#filtering || this.#filter ? [[[`/${this.#filter}${this.#filtering ? "▏" : ""}`, "accent"]]] : [];
	}

	/** The lines of the rows, as many as fit, the selected one among them. */
	#body(height: number): Piece[][] {
		const rows = this.#rows();
		if (!rows.length) return [[[this.#emptiness(), "muted"]]];
		const selected = rows.find((row) => row.serverId === this.#selected) ?? rows[0]!;
		const wide = Math.max(...rows.map((row) => columns(row.serverId)));
		const lines: Piece[][] = [];
		let first = 0;
		for (const row of rows) {
			if (row === selected) first = lines.length;
			lines.push(rowLine(row, row === selected, wide));
			const details = this.#expanded.has(row.serverId) ? detailsOf(row) : [];
			lines.push(...details.map((text): Piece[] => [[`      ${text}`, "dim"]]));
		}
		const start = Math.min(Math.max(first - Math.floor(height / 2), 0), Math.max(lines.length - height, 0));
		return lines.slice(start, start + height);
	}

	#emptiness(): string {
		if (!this.#snapshot) return "";
		return this.#snapshot.rows.length ? "no rows match filter" : "no servers configured";
	}

	#painted(pieces: Piece[], width: number): string {
		let room = width;
		let line = "";
		for (const [text, colour] of pieces) {
			const shown = cut(clean(text), room);
			room -= columns(shown);
			line += colour ? this.#around.theme.fg(colour, shown) : shown;
		}
		return line + " ".repeat(room);
	}
}

/** The gravest word that fits a row, as the daemon orders them. */
function stateOf(row: Row): string {
	if (row.disabled) return "disabled";
	if (row.broken) return "broken";
	if (row.spawningRoots.length) return "spawning";
	if (row.connectedRoots.length) return "connected";
	return row.unavailable ? "unavailable" : "idle";
}

function rowLine(row: Row, selected: boolean, wide: number): Piece[] {
	const state = stateOf(row);
	const id = row.serverId + " ".repeat(wide - columns(row.serverId));
	return [
		[selected ? "› " : "  ", "accent"],
		[`${SIGNS[state] ?? "-"} `, COLOURS[state]],
		[`${id}  `, selected ? "accent" : undefined],
		[`${state.padEnd(11)}  `, COLOURS[state]],
		[`${row.diagnostics ? `${foundIn(row.diagnostics)}  ` : ""}`, "warning"],
		[row.extensions.slice(0, 6).join(" "), "dim"],
	];
}

function detailsOf(row: Row): string[] {
	const roots = (word: string, folders: string[]) => folders.map((folder) => `${word}: ${folder}`);
	const resting = row.configuredRoots.filter((root) => ![...row.connectedRoots, ...row.spawningRoots].includes(root));
	return [
		`configured by: ${row.source}`,
		`files: ${row.extensions.join(" ")}`,
		...roots("runs in", row.connectedRoots),
		...roots("starts in", row.spawningRoots),
		...roots("known in", resting),
		...(row.broken ? [`broken: ${row.broken.lastError}`, retryOf(row.broken)] : []),
		...(row.unavailable ? [`unavailable: ${row.unavailable}`] : []),
		...(row.diagnostics ? [`found: ${foundIn(row.diagnostics)}`] : []),
		...(row.lastSeenAt ? [`last used: ${new Date(row.lastSeenAt).toLocaleTimeString()}`] : []),
	];
}

function retryOf(broken: { attempts: number; retryAt: number }): string {
	const when = broken.retryAt > Date.now() ? `at ${new Date(broken.retryAt).toLocaleTimeString()}` : "when it is needed";
	return `failed ${counted(broken.attempts, "time")}, next attempt ${when}`;
}

function foundIn(counts: Counts): string {
	const words = (["error", "warning", "info", "hint"] as const).filter((word) => counts[word]);
	return words.map((word) => counted(counts[word], word)).join(", ") || "nothing found";
}

function totalsOf(snapshot: Snapshot): string {
	const { configured = 0, ...states } = snapshot.totals;
	const said = Object.entries(states).filter(([, count]) => count);
	return [counted(configured, "server"), ...said.map(([state, count]) => `${count} ${state}`)].join(" · ");
}

/** The panel in a few lines, for where none can be shown: totals, and what is in trouble or at work. */
function summaryOf(snapshot: Snapshot): string {
	if (!snapshot.rows.length) return "Language servers: no servers configured";
	const told = snapshot.rows.filter((row) => ["broken", "spawning", "connected"].includes(stateOf(row))).slice(0, 8);
	const line = (row: Row) => {
		const more = row.broken?.lastError ?? (row.diagnostics ? foundIn(row.diagnostics) : row.connectedRoots.join(" "));
		return clean(`  ${row.serverId}: ${stateOf(row)}${more ? `, ${more}` : ""}`);
	};
	return [`Language servers: ${totalsOf(snapshot)}`, ...told.map(line)].join("\n");
}

/** The keys in what a terminal sent: in the old way, in Kitty's and in xterm's. Releases are no keys. */
function keysOf(data: string): string[] {
	const arrow = /^\x1b(?:\[|O)(?:1;\d+(?::(\d))?)?([AB])$/.exec(data);
	if (arrow) return arrow[1] === "3" ? [] : [arrow[2] === "A" ? "up" : "down"];
	const kitty = /^\x1b\[(\d+)(?::\d*)*(?:;(\d+)(?::(\d))?)?(?:;[\d:]*)?u$/.exec(data);
	if (kitty) return kitty[3] === "3" ? [] : [keyOf(Number(kitty[1]), Number(kitty[2] ?? 1))];
	const xterm = /^\x1b\[27;(\d+);(\d+)~$/.exec(data);
	if (xterm) return [keyOf(Number(xterm[2]), Number(xterm[1]))];
	const pasted = data.replace(/\x1b\[20[01]~/g, "");
	return pasted.startsWith("\x1b") && pasted !== "\x1b" ? [] : [...pasted].map((each) => keyOf(each.codePointAt(0)!, 1));
}

const NAMED = new Map([
	[8, "backspace"],
	[10, "enter"],
	[13, "enter"],
	[18, "ctrl+r"],
	[27, "escape"],
	[127, "backspace"],
]);

function keyOf(code: number, modifiers: number): string {
	const [shift, control] = [(modifiers - 1) & 1, (modifiers - 1) & 4];
	const character = String.fromCodePoint(code);
	if (control) return `ctrl+${character}`;
	return NAMED.get(code) ?? (code < 32 ? "" : shift ? character.toUpperCase() : character);
}

/** Text that can do nothing to a terminal, in characters whose width is known. */
function clean(text: string): string {
	return text.normalize("NFC").replace(/[\n\t]/g, " ").replace(/[\p{C}\p{M}]/gu, "");
}

/** Letters and signs of East Asia, and pictures: two columns each, or perhaps one. */
const WIDE = [
	/[\u1100-\u115f\u231a-\u23f3\u25fd-\u25fe\u2614-\u27bf\u2b1b-\u2b55\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3]/,
	/[\uf900-\ufaff\ufe10-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2fb}\u{1f000}-\u{3fffd}]/u,
];

/** Columns of a text in a terminal: rather one too many than one too few. */
function columns(text: string): number {
	return [...text].reduce((sum, each) => sum + (WIDE.some((wide) => wide.test(each)) ? 2 : 1), 0);
}

/** As much of a text as fits, with … where something was left out. */
function cut(text: string, width: number): string {
	if (columns(text) <= width) return text;
	let kept = "";
	for (const each of text) {
		if (columns(kept + each) >= width) break;
		kept += each;
	}
	return width > 0 ? `${kept}…` : "";
}
