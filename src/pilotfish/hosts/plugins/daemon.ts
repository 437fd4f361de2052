/**
 * The client of the daemon for plugins in TypeScript. `setup` joins it with each plugin into one file, since hosts load
 * single files; there it exports nothing.
 */
import { spawn } from "node:child_process";
import { lstatSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { type Socket, connect } from "node:net";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

// --- The daemon ----------------------------------------------------------------------------------------------------

const PROTOCOL = 1;

/** For an edit, unless the settings say otherwise: the daemon gives a cold server 10 s of it. */
const EDIT_MS = 15_000;
/** For whatever else may be told: the daemon takes 5 s at most. */
const MOMENT_MS = 7_000;
/** For `pilotfish daemon start`: usually half a second, many on a machine that swaps. */
const START_MS = 20_000;
/** Attempts to greet a daemon: one that is ending, or makes room for a newer one, is connected to again. */
const HELLOS = 3;
const MAX_MESSAGE = 64 * 1024 * 1024;
const MAX_HEADER = 8 * 1024;
/** Files of one call, and calls that run at once, whose old texts are kept. */
const MAX_OLD_TEXTS = 64;
/** Of one old text: sources are smaller, and the daemon does without. */
const MAX_OLD_BYTES = 1024 * 1024;
/** Bytes of a socket's path that the kernel takes, without the zero at its end. */
const MAX_SOCKET_PATH = process.platform === "linux" ? 107 : 103;
const WINDOWS = process.platform === "win32";
/** What the daemon's file says there: a port of this machine, its client's secret and its own. See `ipc/loopback.py`. */
const ENDPOINT = /^(\d{1,5}) ([0-9a-f]{64}) ([0-9a-f]{64})$/;

export type Kind = "edit" | "write" | "patch" | "read";
export type Touch = { paths: string[]; kind: Kind; before?: Record<string, string> };
export type Moment = { kind: "call" | "prompt" | "stop"; tentative?: boolean };
export type Feedback = { text: string; state: "fresh" | "partial" | "stale" | "unavailable"; reason?: string };
type Introduction = { cwd: string; host: string; conversation?: string };
type Settings = { command: string[]; home?: string; waitMs: number };
type Waiter = { resolve: (result: unknown) => void; reject: (error: Error) => void };

/** Why there is no answer; `code` is one of the daemon's own words for it. */
export class Failed extends Error {
	readonly code: string;
	constructor(message: string, code: string) {
		super(message);
		this.code = code;
	}
}

/** The daemon has ended or is ending; another one may run by now. */
class Gone extends Failed {
	constructor(message: string) {
		super(message, "shutting_down");
	}
}

/**
 * The daemon as one client session sees it: connected when needed, started when none runs.
 *
 * After a timeout, calls fail at once until the daemon has sent something: a hung daemon costs one wait, not one per
 * edit. Sockets never keep the host alive; a pending request does, by its timer.
 */
export class Daemon {
	readonly #introduction: Introduction;
	readonly #closing = new AbortController();
	#link: Promise<Link> | undefined;
	/** The connection, once `#link` has resolved. */
	#live: Link | undefined;
	#overdue = false;

	constructor(introduction: Introduction) {
		this.#introduction = introduction;
	}

	/** Begin to connect in the background. */
	open(): void {
		this.#opened().catch(() => undefined);
	}

	/** End the session; pending requests fail at once. */
	close(): void {
		this.#closing.abort(new Failed("the session is over", "shutting_down"));
		this.#link?.then((link) => link.close()).catch(() => undefined);
	}

	/** The feedback after an edit; rejects as `request` does. */
	async touched(touch: Touch, signal?: AbortSignal): Promise<Feedback> {
		const { before, ...known } = touch;
		try {
			return await this.request("touched", before ? touch : known, settingsOf().waitMs, signal);
		} catch (error) {
			// A daemon of an earlier version refuses what it does not know.
			if (!before || !(error instanceof Failed) || error.code !== "invalid_input") throw error;
			return this.request("touched", known, settingsOf().waitMs, signal);
		}
	}

	/**
	 * What is to be told beside an edit; empty where there is nothing, or no daemon that could say it. No daemon is
	 * started for it; one that is being started is waited for.
	 */
	async reached(moment: Moment, signal?: AbortSignal): Promise<string> {
		if (!this.#link || this.#live?.isOver) return "";
		const limit = Math.min(MOMENT_MS, settingsOf().waitMs);
		return this.request<Feedback>("reached", moment, limit, signal).then(
			(feedback) => feedback.text,
			() => "",
		);
	}

	/** The result of a method; rejects with the reason, at the latest after so many milliseconds. */
	async request<T>(method: string, params: unknown, milliseconds: number, signal?: AbortSignal): Promise<T> {
		const late = new AbortController();
		const timer = setTimeout(() => {
			this.#overdue = true;
			late.abort(new Failed(`the daemon did not answer within ${milliseconds / 1000} s`, "ETIMEDOUT"));
		}, milliseconds);
		const stop = AbortSignal.any([late.signal, this.#closing.signal, ...(signal ? [signal] : [])]);
		try {
			return (await this.#asked(method, params, stop).catch((error) => {
				// A change that may have been applied is not requested twice.
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

/** The texts of files before an edit: read when a tool is about to run, sent once it has run. */
export class OldTexts {
	readonly #kept = new Map<string, Record<string, string>>();

	/**
	 * Read the files of a call. A file that cannot be read has no text; one that does not exist, an empty one, but not
	 * in a patch: there it may be the new name of another file.
	 */
	keep(call: string, touch: Touch | undefined): void {
		if (touch === undefined || touch.kind === "read") return;
		const texts: Record<string, string> = {};
		for (const path of touch.paths.slice(0, MAX_OLD_TEXTS)) {
			const text = oldText(path, touch.kind === "patch" ? undefined : "");
			if (text !== undefined) texts[path] = text;
		}
		this.#kept.set(call, texts);
		// Of calls that never ended, the oldest is forgotten.
		for (const oldest of this.#kept.keys()) if (this.#kept.size > MAX_OLD_TEXTS) this.#kept.delete(oldest);
	}

	/** The touch of a call with the texts that were kept for it, which are forgotten. */
	joined(call: string, touch: Touch): Touch {
		const before = this.#kept.get(call);
		this.#kept.delete(call);
		return before && Object.keys(before).length ? { ...touch, before } : touch;
	}
}

function oldText(path: string, missing: string | undefined): string | undefined {
	try {
		const status = statSync(path);
		if (!status.isFile() || status.size > MAX_OLD_BYTES) return undefined;
		return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
	} catch (error) {
		return (error as NodeJS.ErrnoException).code === "ENOENT" ? missing : undefined;
	}
}

/** One connection: JSON-RPC in frames. */
class Link {
	readonly #socket: Socket;
	readonly #waiting = new Map<number, Waiter>();
	#unread = Buffer.alloc(0);
	#number = 0;

	/** `heard` is called for all data, and for the end. */
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
			this.#end("the daemon closed the connection");
		});
	}

	get isOver(): boolean {
		return this.#socket.destroyed;
	}

	close(): void {
		this.#socket.destroy();
	}

	async request(method: string, params: unknown, stop: AbortSignal): Promise<unknown> {
		if (this.isOver) throw new Gone("the daemon closed the connection");
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
				return this.close(); // malformed, and no caller could catch the error
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

/** The result of a promise, unless the signal comes first. */
function unless<T>(stop: AbortSignal, promise: Promise<T>): Promise<T> {
	return new Promise((resolve, reject) => {
		const give = () => reject(stop.reason instanceof Failed ? stop.reason : new Failed("cancelled", "cancelled"));
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
		const said = "no daemon at the expected socket; run pilotfish setup again";
		throw error instanceof Failed ? error : new Failed(said, "upgrade");
	});
}

/** The variables of this process, as the daemon takes them: digits, because they may hold any characters. */
function packed(): string {
	const entries = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
	return Buffer.from(entries.join("\0")).toString("hex");
}

/** What starts pilotfish where no `setup` has said it: the one on the PATH, else uv brings it. */
const BY_UV = "exec uvx --no-config --python '>=3.11' --from 'pilotfish[mcp]' pilotfish";
const FOUND = ["sh", "-c", `command -v pilotfish >/dev/null && exec pilotfish "$@"; ${BY_UV} "$@"`, "pilotfish"];

/** What `pilotfish setup` wrote beside this file. */
function settingsOf(): Settings {
	const settings = { command: WINDOWS ? ["pilotfish"] : FOUND, waitMs: EDIT_MS };
	try {
		return { ...settings, ...JSON.parse(readFileSync(new URL("pilotfish.json", import.meta.url), "utf8")) };
	} catch {
		return settings;
	}
}

/** Where one user's daemon is: the same rules as `ipc/rendezvous.py`. */
function placeOf(environment: NodeJS.ProcessEnv): { folder: string; socket: string } {
	const absolute = (path: string | undefined): path is string => path !== undefined && isAbsolute(path);
	const [named, users, usual] = WINDOWS
		? [environment.LOCALAPPDATA, environment.USERPROFILE, join("AppData", "Local")]
		: [environment.XDG_STATE_HOME, environment.HOME, join(".local", "state")];
	const base = absolute(named) ? named : join(absolute(users) ? users : homedir(), usual);
	const state = environment.PILOTFISH_HOME ? resolve(environment.PILOTFISH_HOME) : join(base, "pilotfish");
	const name = `daemon-${PROTOCOL}.sock`;
	const folder = join(state, "run");
	if (Buffer.byteLength(join(folder, name)) <= MAX_SOCKET_PATH) return { folder, socket: join(folder, name) };
	let short = folder;
	try {
		short = readlinkSync(join(folder, "short"));
	} catch {
		// No daemon has run here yet.
	}
	return { folder: short, socket: join(short, name) };
}

/** Folder and socket must be private to this user: no other user's daemon is spoken to. */
async function connected(place: { folder: string; socket: string }): Promise<Socket> {
	if (WINDOWS) return met(place.socket);
	const folder = lstatSync(place.folder);
	const file = lstatSync(place.socket);
	const own = process.geteuid?.();
	const isPrivate = folder.isDirectory() && folder.uid === own && !(folder.mode & 0o077);
	if (!isPrivate) throw new Failed(`not private to this user: ${place.folder}`, "untrusted");
	if (!file.isSocket() || file.uid !== own) throw new Failed(`not a socket of this user: ${place.socket}`, "untrusted");
	return new Promise((resolve, reject) => {
		const socket = connect(place.socket);
		socket.once("connect", () => resolve(socket));
		socket.once("error", (error: NodeJS.ErrnoException) => {
			// It ended between listening and accepting.
			reject(error.code === "ECONNRESET" ? new Gone("the daemon closed the connection") : error);
		});
	});
}

/** Connect to the port of a file that only this user reads. Whoever listens there without the secret is no daemon. */
function met(path: string): Promise<Socket> {
	const [, port, word = "", answer = ""] = ENDPOINT.exec(readFileSync(path, "latin1")) ?? [];
	return new Promise((resolve, reject) => {
		const refused = () => reject(Object.assign(new Error(`no daemon listens for ${path}`), { code: "ECONNREFUSED" }));
		if (!answer || Number(port) > 65535) return refused();
		const socket = connect(Number(port), "127.0.0.1");
		const heard = () => {
			const said: Buffer | null = socket.read(answer.length);
			if (said === null) return; // not all of it yet
			socket.off("readable", heard).off("error", refused).off("close", refused);
			if (said.toString("latin1") === answer) return resolve(socket);
			socket.destroy();
			refused();
		};
		socket.on("readable", heard).on("error", refused).on("close", refused);
		socket.setNoDelay(true).write(word);
	});
}

function started(command: string[], environment: NodeJS.ProcessEnv): Promise<void> {
	return new Promise((resolve, reject) => {
		const options = { cwd: "/", detached: true, windowsHide: true, stdio: "ignore", env: environment } as const;
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
			const shown = command === FOUND ? "pilotfish" : command.join(" ");
			const said = `the daemon did not start; to see why, run: ${shown} daemon start`;
			if (code === 0) resolve();
			else reject(new Failed(said, "server_start_failed"));
		});
	});
}

/** The files that a patch adds or changes, from its headers; deleted files are left out. */
export function patchedFiles(patch: string): string[] {
	const files: string[] = [];
	for (const [, verb, file] of patch.matchAll(/^\*\*\* (Add File|Update File|Move to): (.+)$/gm)) {
		if (verb === "Move to") files.pop();
		files.push(file!.trim());
	}
	if (files.length) return files;
	const headers = [...patch.matchAll(/^\+\+\+ (?:b\/)?([^\t\n]+)/gm)].map((header) => header[1]!.trim());
	return headers.filter((file) => file !== "/dev/null");
}

export function isText(value: unknown): value is string {
	return typeof value === "string" && value !== "";
}
