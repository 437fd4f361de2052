#!/usr/bin/env node
// `pilotfish` of npm: finds a Python, and has it run the archive beside this file, which has all the rest.
"use strict";

const { spawn, spawnSync } = require("node:child_process");
const path = require("node:path");

const ARCHIVE = path.join(__dirname, "pilotfish.pyz");
const WINDOWS = process.platform === "win32";
const NEWEST_FIRST = ["3.14", "3.13", "3.12", "3.11"];
const IS_NEW_ENOUGH = "import sys, venv; sys.exit(sys.version_info < (3, 11))";
const UV = {
  win32: "winget install --id astral-sh.uv",
  darwin: "brew install uv",
  linux: "curl -LsSf https://astral.sh/uv/install.sh | sh",
};

/** The programs that may be a Python, with the arguments that choose the version. */
function pythons() {
  const named = process.env.PILOTFISH_PYTHON ? [[process.env.PILOTFISH_PYTHON]] : [];
  const usual = WINDOWS ? [["py", "-3"], ["python"]] : [["python3"], ["python"]];
  return [...named, ...usual, ...(WINDOWS ? [] : NEWEST_FIRST.map((version) => [`python${version}`]))];
}

/** The command line that runs the archive; undefined where nothing can. */
function command() {
  const works = (program, ...args) => spawnSync(program, args, { stdio: "ignore" }).status === 0;
  for (const [program, ...chosen] of pythons()) {
    if (works(program, ...chosen, "-c", IS_NEW_ENOUGH)) return [program, ...chosen, ARCHIVE];
  }
  return works("uv", "--version") ? ["uv", "run", "--no-project", "--python", ">=3.11", "--", "python", ARCHIVE] : undefined;
}

const found = command();
if (found === undefined) {
  const install = UV[process.platform] ?? UV.linux;
  console.error(`Pilotfish needs Python 3.11 or newer, and there is none on the PATH. This brings one: ${install}`);
  process.exit(3);
}
const [program, ...args] = [...found, ...process.argv.slice(2)];
const child = spawn(program, args, { stdio: "inherit" });
process.on("SIGINT", () => {}); // the terminal has told the child too
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
