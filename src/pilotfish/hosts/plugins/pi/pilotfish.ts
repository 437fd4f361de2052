/**
 * Pilotfish in Pi: after an edit the model reads what it broke; the tool `lsp` asks servers, and `/lsp` shows them.
 *
 * - `tool_result` is the one place where output changes: text is appended, and what was there stays as it is. What goes
 *   wrong is shown to the person in the status line and never to the model: no edit looks as if it had failed.
 * - `tool_execution_end` only writes the status line, since Pi does not show a person what was appended.
 * - A file that was read is made ready, and nobody waits for it.
 * - The session ends with `session_shutdown`, or else with our socket: Pi does not always say when it ends.
 *
 * `pilotfish setup pi` copies this file into `~/.pi/agent/extensions/` and writes `pilotfish.json` beside it:
 *
 *     {"command": ["/absolute/python", "-I", "-m", "pilotfish"], "home": "/absolute/PILOTFISH_HOME"}
 *
 * `command` runs pilotfish; `daemon start` is added to it when no daemon listens. `home` is there only where it is not
 * the default, and the variable of that name goes before it; `waitMs`, too, only where an edit shall wait for longer or
 * shorter than usual. Without the file, `pilotfish` is looked for on the PATH.
 *
 * One file with types and node's own modules for imports, so that it runs in every Pi as it is; that makes it long.
 */
import { spawn } from "node:child_process";
import { lstatSync, readFileSync } from "node:fs";
import { type Socket, connect } from "node:net";
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";

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

	function daemonOf(ctx: ExtensionContext): Daemon {
		daemon ??= new Daemon({ cwd: ctx.cwd, host: "pi", conversation: ctx.sessionManager.getSessionId() });
		return daemon;
	}

	pi.on("session_start", (_event, ctx) => {
		ctx.ui.setStatus("pilotfish", undefined);
		// Nobody waits for it: until the configuration has been heard, the tool is there.
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

	pi.on("tool_result", async (event, ctx) => {
		try {
			const touch = event.isError ? undefined : touchOf(event.toolName, event.input, ctx.cwd);
			if (touch === undefined) return undefined;
			const asking = daemonOf(ctx).touched(touch, ctx.signal);
			if (touch.kind === "read") {
				asking.catch(() => undefined);
				return undefined;
			}
			const feedback = await asking;
			notes.set(event.toolCallId, noteOf(touch, feedback));
			// Pi puts one line end between two texts, so this makes a blank line.
			return feedback.text ? { content: [...event.content, { type: "text", text: `\n${feedback.text}` }] } : undefined;
		} catch (error) {
			notes.set(event.toolCallId, `no verdict: ${reasonOf(error)}`);
			return undefined;
		}
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

/** To the person where no panel can be. Pi keeps what is printed apart from its own output. */
function tell(ctx: ExtensionContext, text: string): void {
	if (ctx.hasUI) ctx.ui.notify(text, "info");
	else console.log(text);
}

/** What a tool of Pi has touched; undefined when that is none of our business. */
function touchOf(tool: string, input: Record<string, unknown>, cwd: string): Touch | undefined {
	const kind = KINDS.get(tool);
	if (kind === undefined) return undefined;
	const texts = Object.values(input).filter(isText);
	const named = kind === "patch" ? texts.flatMap(patchedFiles) : [input.path ?? input.file_path ?? input.filePath];
	const paths = named.filter(isText).map((path) => placed(path, cwd));
	return paths.length ? { paths, kind } : undefined;
}

/** A path as Pi's own tools read it. */
function placed(path: string, cwd: string): string {
	const plain = path.replace(/^@/, "").replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, " ");
	return resolve(cwd, plain.replace(/^~(?=\/|$)/, () => homedir()));
}

/** What an edit brought, for the person. Only a fresh verdict may say that there is nothing. */
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

type Question = { operation: string; [field: string]: unknown };

/** The daemon's answer; where there is none, one in the same shape that says so. */
async function answered(daemon: Daemon, question: Question, signal: AbortSignal | undefined): Promise<unknown> {
	const started = Date.now();
	try {
		return await daemon.request("ask", question, ASK_MS, signal);
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

const DESCRIPTION = 
	"Ask the language servers about code. A place is filePath, line, character (1-based), or symbol (with filePath " +
	"and line if known). documentSymbol: filePath; workspaceSymbol: query, filePath?; diagnostics: filePath, text?; " +
	"renameFile: filePath, newPath, apply?; codeActions: filePath, line, character?, kind?, action?, apply?. The " +
	"others take a place; findReferences also takes includeDeclaration?; incomingCalls also takes " +
	"callHierarchyItem?; outgoingCalls also takes callHierarchyItem?; supertypes also takes typeHierarchyItem?; " +
	"subtypes also takes typeHierarchyItem?; rename also takes newName, apply?.";

const PARAMETERS = {
	type: "object",
	properties: {
		operation: {
			type: "string",
			enum: [
				"goToDefinition", "goToDeclaration", "goToTypeDefinition", "goToImplementation", "findReferences",
				"hover", "signature", "documentSymbol", "workspaceSymbol", "prepareCallHierarchy", "incomingCalls",
				"outgoingCalls", "supertypes", "subtypes", "diagnostics", "rename", "renameFile", "codeActions",
			],
		},
		filePath: { type: "string" },
		line: { type: "integer", minimum: 1 },
		character: { type: "integer", minimum: 1 },
		symbol: { type: "string", description: "Such as Class.method" },
		includeDeclaration: { type: "boolean", description: "Default true" },
		query: { type: "string", description: "Name or part of it" },
		callHierarchyItem: { type: "object", description: "From an earlier answer" },
		typeHierarchyItem: { type: "object", description: "From an earlier answer" },
		text: { type: "string", description: "Proposed content, not on disk" },
		newName: { type: "string" },
		apply: { type: "boolean", description: "Default: preview" },
		newPath: { type: "string" },
		kind: { type: "string", description: "Such as quickfix" },
		action: { type: "string", description: "Number or title: shows its diff" },
	},
	required: ["operation"],
	additionalProperties: false,
};

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

// --- The daemon: from here on the same text in every plugin --------------------------------------------------------

const PROTOCOL = 1;

/** For an edit, where the settings say nothing: the daemon gives a cold server 10 s of it. */
const EDIT_MS = 15_000;
/** Until `pilotfish daemon start` is back: half a second here, many on a machine that swaps. */
const START_MS = 20_000;
/** A daemon that is just ending, or makes room for a newer one, is asked for again: twice is what happens. */
const HELLOS = 3;
const MAX_MESSAGE = 64 * 1024 * 1024;
const MAX_HEADER = 8 * 1024;
/** Bytes of a socket's path that the kernel takes, without the zero at its end. */
const MAX_SOCKET_PATH = process.platform === "linux" ? 107 : 103;

type Kind = "edit" | "write" | "patch" | "read";
type Touch = { paths: string[]; kind: Kind };
type Feedback = { text: string; state: "fresh" | "partial" | "stale" | "unavailable"; reason?: string };
type Introduction = { cwd: string; host: string; conversation?: string };
type Settings = { command: string[]; home?: string; waitMs: number };
type Waiter = { resolve: (result: unknown) => void; reject: (error: Error) => void };

/** Why there is no answer; `code` is one of the daemon's own words for it. */
class Failed extends Error {
	readonly code: string;
	constructor(message: string, code: string) {
		super(message);
		this.code = code;
	}
}

/** The daemon has left, or is leaving; another one may be there by now. */
class Gone extends Failed {
	constructor(message: string) {
		super(message, "shutting_down");
	}
}

/**
 * The daemon as one client session sees it: connected when needed, started when none runs.
 *
 * Whoever has waited in vain does not wait again until the daemon has said something, so that one which hangs costs one
 * wait and not one per edit. Sockets never keep the host alive; what somebody waits for does, by its timer.
 */
class Daemon {
	readonly #introduction: Introduction;
	readonly #closing = new AbortController();
	#link: Promise<Link> | undefined;
	/** What `#link` brought. */
	#live: Link | undefined;
	#overdue = false;

	constructor(introduction: Introduction) {
		this.#introduction = introduction;
	}

	/** Begin to connect; nobody waits for it. */
	open(): void {
		this.#opened().catch(() => undefined);
	}

	/** End the session. Whoever waits for an answer is told at once. */
	close(): void {
		this.#closing.abort(new Failed("the session is over", "shutting_down"));
		this.#link?.then((link) => link.close()).catch(() => undefined);
	}

	/** What there is to say about an edit; an `Error` as for `request`. */
	touched(touch: Touch, signal?: AbortSignal): Promise<Feedback> {
		return this.request("touched", touch, settingsOf().waitMs, signal);
	}

	/** The result of a method, or an `Error` with the reason, at the latest after so many milliseconds. */
	async request<T>(method: string, params: unknown, milliseconds: number, signal?: AbortSignal): Promise<T> {
		const late = new AbortController();
		const timer = setTimeout(() => {
			this.#overdue = true;
			late.abort(new Failed(`the daemon did not answer within ${milliseconds / 1000} s`, "ETIMEDOUT"));
		}, milliseconds);
		const stop = AbortSignal.any([late.signal, this.#closing.signal, ...(signal ? [signal] : [])]);
		try {
			return (await this.#asked(method, params, stop).catch((error) => {
				// What may have been done already is not done twice.
				if (!(error instanceof Gone) || (params as { apply?: unknown } | null)?.apply) throw error;
				return this.#asked(method, params, stop);
			})) as T;
		} finally {
			clearTimeout(timer);
		}
	}

	async #asked(method: string, params: unknown, stop: AbortSignal): Promise<unknown> {
		if (stop.aborted) await unless(stop, Promise.resolve());
		const opening = this.#opened();
		if (this.#overdue) {
			opening.catch(() => undefined);
			throw new Failed("the daemon does not answer", "ETIMEDOUT");
		}
		return (await unless(stop, opening)).request(method, params, stop);
	}

	#opened(): Promise<Link> {
		if (this.#live?.isOver) {
			this.#live = undefined;
			this.#link = undefined;
		}
		this.#link ??= this.#introduced();
		return this.#link;
	}

	async #introduced(): Promise<Link> {
		try {
			for (let attempt = 1; ; attempt++) {
				let link: Link | undefined;
				try {
					link = new Link(await reached(), () => {
						this.#overdue = false;
					});
					const said = { protocol: PROTOCOL, pid: process.pid, environment: packed(), ...this.#introduction };
					await link.request("hello", said, this.#closing.signal);
					this.#live = link;
					return link;
				} catch (error) {
					link?.close();
					if (!(error instanceof Gone)) throw error;
					if (attempt === HELLOS) throw new Failed(error.message, error.code);
				}
			}
		} catch (error) {
			this.#link = undefined;
			throw error;
		}
	}
}

/** One connection: JSON-RPC in frames. */
class Link {
	readonly #socket: Socket;
	readonly #waiting = new Map<number, Waiter>();
	#unread = Buffer.alloc(0);
	#number = 0;

	/** `heard` is told of every sign of life, the last one included. */
	constructor(socket: Socket, heard: () => void) {
		this.#socket = socket;
		socket.unref();
		socket.on("data", (data: Buffer) => {
			heard();
			this.#take(data);
		});
		socket.on("error", () => undefined); // "close" follows
		socket.on("close", () => {
			heard();
			this.#end("the daemon hung up");
		});
	}

	get isOver(): boolean {
		return this.#socket.destroyed;
	}

	close(): void {
		this.#socket.destroy();
	}

	async request(method: string, params: unknown, stop: AbortSignal): Promise<unknown> {
		if (this.isOver) throw new Gone("the daemon hung up");
		const id = ++this.#number;
		const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
		this.#send({ id, method, params });
		try {
			return await unless(stop, answer);
		} finally {
			if (this.#waiting.delete(id) && !this.isOver) this.#send({ method: "$/cancelRequest", params: { id } });
		}
	}

	#send(message: object): void {
		const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
		this.#socket.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
	}

	#take(data: Buffer): void {
		this.#unread = Buffer.concat([this.#unread, data]);
		for (;;) {
			const start = this.#unread.indexOf("\r\n\r\n") + 4;
			const length = Number(/^Content-Length: *(\d+)/im.exec(this.#unread.toString("latin1", 0, start))?.[1] ?? NaN);
			if (start < 4 ? this.#unread.length > MAX_HEADER : !(length <= MAX_MESSAGE)) return this.close();
			if (start < 4 || this.#unread.length < start + length) return;
			const body = this.#unread.toString("utf8", start, start + length);
			this.#unread = this.#unread.subarray(start + length);
			try {
				this.#hear(JSON.parse(body));
			} catch {
				return this.close(); // that was no message, and nobody above could catch it
			}
		}
	}

	#hear(message: any): void {
		if (message.method === "closing") return this.#end(String(message.params?.message));
		const waiter = this.#waiting.get(message.id);
		if (!this.#waiting.delete(message.id) || !waiter) return;
		if (!message.error) return waiter.resolve(message.result);
		const failure = failureOf(message.error);
		waiter.reject(failure);
		if (failure instanceof Gone) this.#end(failure.message);
	}

	#end(why: string): void {
		for (const waiter of this.#waiting.values()) waiter.reject(new Gone(why));
		this.#waiting.clear();
		this.close();
	}
}

function failureOf(error: { message: string; data?: { kind?: string; code?: string; hint?: string } }): Error {
	const { kind, code = "protocol_error", hint } = error.data ?? {};
	const message = hint ? `${error.message}. ${hint}` : error.message;
	const leaving = kind === "unavailable" && ["upgrade", "shutting_down"].includes(code);
	return leaving ? new Gone(message) : new Failed(message, code);
}

/** What a promise brings, unless the signal comes first. */
function unless<T>(stop: AbortSignal, promise: Promise<T>): Promise<T> {
	return new Promise((resolve, reject) => {
		const give = () => reject(stop.reason instanceof Failed ? stop.reason : new Failed("given up", "cancelled"));
		if (stop.aborted) return give();
		stop.addEventListener("abort", give, { once: true });
		promise.then(resolve, reject).finally(() => stop.removeEventListener("abort", give));
	});
}

/** A connection to the daemon, which is started when none listens. */
async function reached(): Promise<Socket> {
	const settings = settingsOf();
	const environment = { ...(settings.home ? { PILOTFISH_HOME: settings.home } : {}), ...process.env };
	try {
		return await connected(placeOf(environment));
	} catch (error) {
		if (!["ENOENT", "ENOTDIR", "ECONNREFUSED"].includes(String((error as NodeJS.ErrnoException).code))) throw error;
	}
	await started(settings.command, environment);
	return connected(placeOf(environment)).catch((error) => {
		const said = "the daemon is not where this plugin looks for it; run pilotfish setup again";
		throw error instanceof Failed ? error : new Failed(said, "upgrade");
	});
}

/** The variables of this process, as the daemon takes them: digits, because they may hold any characters. */
function packed(): string {
	const entries = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
	return Buffer.from(entries.join("\0")).toString("hex");
}

/** What `pilotfish setup` wrote beside this file. */
function settingsOf(): Settings {
	const settings = { command: ["pilotfish"], waitMs: EDIT_MS };
	try {
		return { ...settings, ...JSON.parse(readFileSync(new URL("pilotfish.json", import.meta.url), "utf8")) };
	} catch {
		return settings;
	}
}

/** Where one user's daemon is: the same rules as `surfaces/rendezvous.py`. */
function placeOf(environment: NodeJS.ProcessEnv): { folder: string; socket: string } {
	const absolute = (path: string | undefined): path is string => path !== undefined && isAbsolute(path);
	const home = absolute(environment.HOME) ? environment.HOME : homedir();
	const base = absolute(environment.XDG_STATE_HOME) ? environment.XDG_STATE_HOME : join(home, ".local", "state");
	const state = environment.PILOTFISH_HOME ? resolve(environment.PILOTFISH_HOME) : join(base, "pilotfish");
	const name = `daemon-${PROTOCOL}.sock`;
	const folder = join(state, "run");
	if (Buffer.byteLength(join(folder, name)) <= MAX_SOCKET_PATH) return { folder, socket: join(folder, name) };
	let digest = 0xcbf29ce484222325n;
	for (const byte of Buffer.from(state)) digest = ((digest ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
	const short = `/tmp/pilotfish-${process.geteuid?.()}-${digest.toString(16).padStart(16, "0")}`;
	return { folder: short, socket: join(short, name) };
}

/** Everything on the way to the socket must be ours alone: nobody else's daemon is spoken to. */
async function connected(place: { folder: string; socket: string }): Promise<Socket> {
	const folder = lstatSync(place.folder);
	const file = lstatSync(place.socket);
	const own = process.geteuid?.();
	const isPrivate = folder.isDirectory() && folder.uid === own && !(folder.mode & 0o077);
	if (!isPrivate) throw new Failed(`not ours alone: ${place.folder}`, "untrusted");
	if (!file.isSocket() || file.uid !== own) throw new Failed(`no socket of ours: ${place.socket}`, "untrusted");
	return new Promise((resolve, reject) => {
		const socket = connect(place.socket);
		socket.once("connect", () => resolve(socket));
		socket.once("error", (error: NodeJS.ErrnoException) => {
			// It listened when we knocked, and ended before it looked.
			reject(error.code === "ECONNRESET" ? new Gone("the daemon hung up") : error);
		});
	});
}

function started(command: string[], environment: NodeJS.ProcessEnv): Promise<void> {
	return new Promise((resolve, reject) => {
		const options = { cwd: "/", detached: true, stdio: "ignore", env: environment } as const;
		const child = spawn(command[0]!, [...command.slice(1), "daemon", "start"], options);
		const timer = setTimeout(() => child.kill("SIGKILL"), START_MS);
		timer.unref();
		child.unref();
		child.once("error", (error) => {
			clearTimeout(timer);
			reject(new Failed(`pilotfish cannot be run: ${error.message}`, "server_start_failed"));
		});
		child.once("exit", (code) => {
			clearTimeout(timer);
			const said = `the daemon could not be started; ask: ${command.join(" ")} daemon start`;
			if (code === 0) resolve();
			else reject(new Failed(said, "server_start_failed"));
		});
	});
}

/** The files that a patch adds or changes, from its headers. Deleting alone is no change that anybody could judge. */
function patchedFiles(patch: string): string[] {
	const files: string[] = [];
	for (const [, verb, file] of patch.matchAll(/^\*\*\* (Add File|Update File|Move to): (.+)$/gm)) {
		if (verb === "Move to") files.pop();
		files.push(file!.trim());
	}
	if (files.length) return files;
	const headers = [...patch.matchAll(/^\+\+\+ (?:b\/)?([^\t\n]+)/gm)].map((header) => header[1]!.trim());
	return headers.filter((file) => file !== "/dev/null");
}

function isText(value: unknown): value is string {
	return typeof value === "string" && value !== "";
}
