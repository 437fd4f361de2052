/**
 * In the place of LLxprt's own language service: run as its `main`, it becomes `pilotfish service` on the same five
 * streams. LLxprt's client and `LspServiceClient` cannot tell the difference.
 *
 * `PILOTFISH_COMMAND` names another program than `pilotfish`, as a JSON list of words.
 */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { serviceCommand } from "./index.ts";

const [program, ...words] = serviceCommand(process.env);
const service = spawn(program!, words, { stdio: ["inherit", "inherit", "inherit", 3, 4] });

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => service.kill(signal));
service.on("error", (error) => {
	process.stderr.write(`LSP unavailable: ${error.message}\n`);
	process.exitCode = 3;
});
service.on("exit", (code, signal) => process.exit(code ?? 128 + (signal ? constants.signals[signal] : 0)));
