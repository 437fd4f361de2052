#!/usr/bin/env node
// `pilotfish` of npm: finds a Python, and has it run the archive beside this file, which has all the rest.
"use strict";

const { spawn, spawnSync } = require("node:child_process");
const path = require("node:path");

const ARCHIVE = path.join(__dirname, "pilotfish.pyz");
const WINDOWS = process.platform === "win32";
const NEWEST_FIRST = ["3.14", "3.13", "3.12", "3.11"];
const QUESTION = "import sys, venv; print(sys.executable); sys.exit(sys.version_info < (3, 11))";
const ELSEWHERE = path.dirname(process.execPath);
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

/**
 * The path of the Python that this starts; undefined where it is none, or too old. Asked in a folder that is nobody's
 * project: in one, Python would import its modules, and uv would take its settings and run its `.venv`.
 */
function asked(program, ...args) {
  const options = { cwd: ELSEWHERE, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
  const answer = spawnSync(program, [...args, "-I", "-c", QUESTION], options);
  return answer.status === 0 ? answer.stdout.trim() : undefined;
}

/** The Python that runs the archive; undefined where nothing can. */
function python() {
  for (const [program, ...chosen] of pythons()) {
    const found = asked(program, ...chosen);
    if (found !== undefined) return found;
  }
  return asked("uv", "run", "--no-project", "--python", ">=3.11", "--", "python");
}

const found = python();
if (found === undefined) {
  const install = UV[process.platform] ?? UV.linux;
  console.error(`Pilotfish needs Python 3.11 or newer, and there is none on the PATH. This brings one: ${install}`);
  process.exit(3);
}
const child = spawn(found, ["-I", ARCHIVE, ...process.argv.slice(2)], { stdio: "inherit" });
process.on("SIGINT", () => {}); // the terminal has told the child too
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
