/**
 * A client of `pilotfish service`, as LLxprt Code's core has one of its own service.
 *
 *     const client = new LspServiceClient({ servers: [] }, "/absolute/project");
 *     await client.start();
 *     await client.checkFile("/absolute/project/src/a.ts");
 *     await client.shutdown();
 *
 * Nothing here throws for what the service does: without one there are no diagnostics, and `unavailableReason` says why.
 * A service that has ended is not started again: its host decides that, with a new client.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

const READY_MS = 10_000;
/** For `lsp/shutdown`: the service stops its servers within 2.5 s. */
const SHUTDOWN_MS = 3_000;
/** Between a request to end and the end by force. */
const GRACE_MS = 2_000;
const MAX_MESSAGE = 64 * 1024 * 1024;
const MAX_REASON = 500;

export type Severity = "error" | "warning" | "info" | "hint";

export type Diagnostic = {
	file: string;
	/** From 1, as `character`, which counts Unicode code points. */
	line: number;
	character: number;
	severity: Severity;
	/** On one line, `<`, `>` and `&` escaped. */
	message: string;
	code?: string;
	source?: string;
};

export type ServerStatus = {
	id: string;
	status: "active" | "starting" | "broken" | "disabled" | "unavailable" | "idle";
	language: string;
	healthy: boolean;
	serverPid?: number;
	/** Why it is broken or unavailable. */
	detail?: string;
};

export type ServerConfig = {
	id: string;
	command: string;
	args?: string[];
	extensions?: string[];
	env?: Record<string, string>;
	workspaceRootMarkers?: string[];
	initializationOptions?: Record<string, unknown>;
};

/** The settings of LLxprt's `lsp`; what is absent is as `pilotfish` has it by default. */
export type LspConfig = {
	servers?: ServerConfig[] | Record<string, Partial<ServerConfig> & { enabled?: boolean }>;
	diagnosticTimeout?: number;
	firstTouchTimeout?: number;
	requestTimeout?: number;
	includeSeverities?: Severity[];
	maxDiagnosticsPerFile?: number;
	maxProjectDiagnosticsFiles?: number;
	navigationTools?: boolean;
};

/** Why a file that was checked has no verdict. */
export type Verdict = { filePath: string; state: "partial" | "stale" | "unavailable"; reason?: string };

export type State = "never-started" | "alive" | "dead";

export type Options = {
	/** How to run the service; `pilotfish service` on the PATH unless it is given. */
	command?: string[];
	env?: NodeJS.ProcessEnv;
	/** Called for a file whose check gave no verdict: its list of diagnostics is empty, and it is not clean. */
	onVerdict?: (verdict: Verdict) => void;
};

type Message = { id?: number; method?: string; params?: unknown; result?: unknown; error?: { message: string } };
type Waiter = { resolve: (result: unknown) => void; reject: (error: Error) => void };

/** The words that run the service. */
export function serviceCommand(env: NodeJS.ProcessEnv): string[] {
	const words: unknown = env.PILOTFISH_COMMAND ? JSON.parse(env.PILOTFISH_COMMAND) : ["pilotfish"];
	if (!Array.isArray(words) || !words.length || !words.every((word) => typeof word === "string")) {
		throw new Error("PILOTFISH_COMMAND must be a JSON list of words");
	}
	return [...words, "service"];
}

export class LspServiceClient {
	readonly #config: LspConfig | false;
	readonly #root: string;
	readonly #options: Options;
	readonly #waiting = new Map<number, Waiter>();
	#state: State = "never-started";
	#reason: string | undefined;
	#process: ChildProcess | undefined;
	#buffer = Buffer.alloc(0);
	#errors = "";
	#number = 0;
	#ready: (() => void) | undefined;

	constructor(config: LspConfig | false, workspaceRoot: string, options: Options = {}) {
		this.#config = config;
		this.#root = workspaceRoot;
		this.#options = options;
	}

	get state(): State {
		return this.#state;
	}

	/** Why there is no service; undefined while there is one. */
	get unavailableReason(): string | undefined {
		return this.#state === "alive" ? undefined : this.#reason;
	}

	isAlive(): boolean {
		return this.#state === "alive";
	}

	/** Start the service and wait until it is ready. Never throws; a second call does nothing. */
	async start(): Promise<void> {
		if (this.#state !== "never-started" || this.#process) return;
		if (this.#config === false) return this.#die("LSP disabled by configuration");
		try {
			this.#launch(this.#options.command ?? serviceCommand(process.env));
			await within(READY_MS, "Timed out waiting for lsp/ready", new Promise<void>((resolve, reject) => {
				this.#ready = resolve;
				this.#waiting.set(0, { resolve: () => undefined, reject });
			}));
			this.#waiting.delete(0);
			this.#state = "alive";
		} catch (error) {
			this.#die(reasonOf(error));
			await this.#end();
		}
	}

	/** What is wrong with a file, with the text that it has or is given. Empty as well where there is no verdict. */
	async checkFile(filePath: string, text?: string, signal?: AbortSignal): Promise<Diagnostic[]> {
		return this.#ask("lsp/checkFile", text === undefined ? { filePath } : { filePath, text }, [], signal);
	}

	/** Of every file that has any, by path ascending. */
	async getAllDiagnostics(): Promise<Record<string, Diagnostic[]>> {
		return this.#ask("lsp/diagnostics", {}, {});
	}

	/** How many checks have ended. */
	async getDiagnosticEpoch(): Promise<number> {
		return this.#ask("lsp/getDiagnosticEpoch", {}, 0);
	}

	/** The same as `getAllDiagnostics`, once a check has ended after this epoch, or after `waitMs`. */
	async getAllDiagnosticsAfter(afterEpoch: number, waitMs = 0): Promise<Record<string, Diagnostic[]>> {
		return this.#ask("lsp/getAllDiagnosticsAfter", { afterEpoch, waitMs }, {});
	}

	/** Every known server, by id. */
	async status(): Promise<ServerStatus[]> {
		return this.#ask("lsp/status", {}, []);
	}

	/** The streams for an MCP client of the navigation tools, lines of JSON; null when there is no service. */
	getMcpTransportStreams(): { readable: Readable; writable: Writable } | null {
		const [, , , readable, writable] = this.#process?.stdio ?? [];
		return this.isAlive() && readable && writable
			? { readable: readable as Readable, writable: writable as Writable }
			: null;
	}

	/** Stop the servers and the service; returns when its process is gone. */
	async shutdown(): Promise<void> {
		if (this.isAlive()) {
			await within(SHUTDOWN_MS, "lsp/shutdown timed out", this.#request("lsp/shutdown", {})).catch(() => undefined);
		}
		this.#die("LSP service was shut down");
		await this.#end();
	}

	#launch([program, ...words]: string[]): void {
		const bootstrap = JSON.stringify({ workspaceRoot: this.#root, config: this.#config });
		const service = spawn(program ?? "pilotfish", words, {
			cwd: this.#root,
			stdio: ["pipe", "pipe", "pipe", "pipe", "pipe"],
			env: { ...process.env, ...this.#options.env, LSP_BOOTSTRAP: bootstrap },
		});
		this.#process = service;
		service.stdout!.on("data", (data: Buffer) => this.#hear(data));
		service.stderr!.on("data", (data: Buffer) => {
			this.#errors = (this.#errors + data.toString()).slice(0, MAX_REASON);
		});
		// Writing to a service that is gone is reported by its exit.
		for (const stream of service.stdio) stream?.on("error", () => undefined);
		service.on("error", (error) => this.#die(error.message));
		service.on("close", (code, signal) => this.#die(this.#errors.trim() || `LSP service exited (${signal ?? code})`));
	}

	/** From here on there is no service; what was asked of it fails. */
	#die(reason: string): void {
		if (this.#state !== "dead") this.#reason = reason;
		this.#state = "dead";
		for (const waiter of this.#waiting.values()) waiter.reject(new Error(reason));
		this.#waiting.clear();
	}

	async #end(): Promise<void> {
		const service = this.#process;
		if (!service || service.pid === undefined || service.exitCode !== null || service.signalCode !== null) return;
		const ended = new Promise<void>((resolve) => service.once("exit", () => resolve()));
		service.kill("SIGTERM");
		const force = setTimeout(() => service.kill("SIGKILL"), GRACE_MS);
		await ended;
		clearTimeout(force);
	}

	async #ask<T>(method: string, params: object, without: T, signal?: AbortSignal): Promise<T> {
		if (!this.isAlive() || signal?.aborted) return without;
		const number = this.#number + 1;
		const cancel = () => {
			this.#send({ method: "$/cancelRequest", params: { id: number } });
			this.#waiting.get(number)?.reject(new Error(`${method} was cancelled`));
			this.#waiting.delete(number);
		};
		signal?.addEventListener("abort", cancel, { once: true });
		try {
			return (await this.#request(method, params)) as T;
		} catch {
			return without;
		} finally {
			signal?.removeEventListener("abort", cancel);
		}
	}

	#request(method: string, params: object): Promise<unknown> {
		this.#number += 1;
		const number = this.#number;
		return new Promise((resolve, reject) => {
			this.#waiting.set(number, { resolve, reject });
			this.#send({ id: number, method, params });
		});
	}

	#send(message: Message): void {
		const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
		this.#process?.stdin?.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
	}

	#hear(data: Buffer): void {
		this.#buffer = Buffer.concat([this.#buffer, data]);
		for (;;) {
			const end = this.#buffer.indexOf("\r\n\r\n");
			if (end < 0) return;
			const length = Number(/^content-length: *(\d+)/im.exec(this.#buffer.toString("latin1", 0, end))?.[1] ?? NaN);
			if (!(length <= MAX_MESSAGE)) return this.#malformed("a header without a length");
			if (this.#buffer.length < end + 4 + length) return;
			const body = this.#buffer.toString("utf8", end + 4, end + 4 + length);
			this.#buffer = this.#buffer.subarray(end + 4 + length);
			try {
				this.#take(JSON.parse(body) as Message);
			} catch {
				return this.#malformed("a body that is not JSON");
			}
		}
	}

	#malformed(what: string): void {
		this.#buffer = Buffer.alloc(0);
		this.#die(`LSP service sent ${what}`);
		this.#process?.kill("SIGTERM");
	}

	#take(message: Message): void {
		if (message.method === "lsp/ready") this.#ready?.();
		else if (message.method === "lsp/verdict") this.#options.onVerdict?.(message.params as Verdict);
		const waiter = message.method === undefined && message.id ? this.#waiting.get(message.id) : undefined;
		if (!waiter) return;
		this.#waiting.delete(message.id!);
		if (message.error) waiter.reject(new Error(message.error.message));
		else waiter.resolve(message.result);
	}
}

function reasonOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

async function within<T>(milliseconds: number, message: string, work: Promise<T>): Promise<T> {
	let timer: NodeJS.Timeout | undefined;
	const late = new Promise<never>((_, reject) => {
		timer = setTimeout(() => reject(new Error(message)), milliseconds);
	});
	try {
		return await Promise.race([work, late]);
	} finally {
		clearTimeout(timer);
	}
}
