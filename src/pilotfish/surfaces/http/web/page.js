"use strict";
// Shows what `GET /events` says. Everything that comes from there is set as text: a diagnostic can hold any markup.

const KEY = "pilotfish-key";
const KEPT_SAMPLES = 60; // two minutes of one every two seconds
const RETRY_MILLISECONDS = [500, 1000, 2000, 5000];

const STATES = {
  active: "Running", starting: "Starting", stopping: "Stopping", idle: "Idle", broken: "Failed",
  unavailable: "Not available", configured: "Not started", disabled: "Disabled",
};
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
const samples = new Map();
let latest = null;

// --- Elements, kept while what they show is there, so that focus and open parts stay -------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function mark(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function keep(parent, items, keyOf, make, update) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, index) => {
    const key = keyOf(item, index);
    const child = before.get(key) ?? make(item);
    before.delete(key);
    child.dataset.key = key;
    update(child, item);
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  for (const gone of before.values()) gone.remove();
}

// --- Servers --------------------------------------------------------------------------------------------------------

function rowsOf(workspace) {
  return workspace.servers.flatMap((server) => {
    const instances = server.instances ?? [];
    if (instances.length) return instances.map((instance) => ({ server, instance }));
    const state = server.disabled ? "disabled" : server.unavailable ? "unavailable" : "configured";
    return [{ server, instance: { root: workspace.root, state, lastError: server.unavailable } }];
  });
}

function newWorkspace() {
  const list = element("ul", { class: "cards" });
  const who = [element("p", { class: "who" }), element("ul", { class: "told" })];
  return element("article", {}, element("h3"), ...who, element("ul", { class: "warnings" }), list);
}

function updateWorkspace(node, workspace) {
  const [title, who, told, warnings, list] = node.children;
  say(title, workspace.root);
  say(who, workspace.conversations.map(conversationName).join(" · "));
  told.setAttribute("aria-label", `Conversations of ${workspace.root}`);
  const heard = workspace.conversations.filter((one) => toldOf(one));
  keep(told, heard, ({ session }) => session, () => element("li"), (item, one) => say(item, `${conversationName(one)}: ${toldOf(one)}`));
  warnings.setAttribute("aria-label", `Warnings of ${workspace.root}`);
  keep(warnings, workspace.warnings ?? [], (text) => text, () => element("li", { class: "warning" }), say);
  list.setAttribute("aria-label", `Servers of ${workspace.root}`);
  const rows = rowsOf(workspace).filter(({ server, instance }) => fits(server.serverId, instance.root, instance.state));
  keep(list, rows, ({ server, instance }) => `${server.serverId} ${instance.root}`, newServer, updateServer);
}

function conversationName({ host, conversation, attached }) {
  const name = conversation ? `${host ?? "conversation"} ${conversation}` : (host ?? "a client");
  return attached ? name : `${name} (by hooks)`;
}

function toldOf({ told = 0, pending = 0, late = 0, dropped = {} }) {
  const counted = [[told, "told"], [pending, "pending"], [late, "late"]].filter(([number]) => number);
  const parts = counted.map(([number, word]) => `${count(number, "file")} ${word}`);
  return [...parts, ...Object.entries(dropped).map(([why, number]) => `${number} dropped (${why})`)].join(", ");
}

function newServer() {
  const facts = element("dl");
  for (const name of ["Root", "Memory", "Latency", "Process", "Use", "Working on", "Trouble"]) {
    facts.append(element("dt", {}, name), element("dd"));
  }
  const [, memory, latency] = facts.querySelectorAll("dd");
  for (const measured of [memory, latency]) {
    measured.className = "measure";
    measured.append(element("span"), sparkline());
  }
  facts.querySelector("dd:last-of-type").className = "error";
  const head = element("header", {}, element("h4"), element("span", { class: "state" }));
  return element("li", { class: "card" }, head, facts);
}

function updateServer(node, { server, instance }) {
  mark(node, "data-state", instance.state);
  say(node.querySelector("h4"), server.serverId);
  say(node.querySelector(".state"), STATES[instance.state] ?? instance.state);
  const [root, memory, latency, process, use, busy, trouble] = node.querySelectorAll("dd");
  const history = recorded(`${server.serverId} ${instance.root}`, instance);
  say(root, instance.root);
  measure(memory, "Memory", instance.memoryMib, "MiB", history.map((sample) => sample.memory));
  measure(latency, "Latency", instance.lastLatencyMs, "ms", history.map((sample) => sample.latency));
  fact(process, instance.pid && `${instance.pid}, up ${duration(instance.uptimeMs ?? 0)}, ${count(instance.restarts ?? 0, "restart")}`);
  fact(use, instance.pid && `${count(instance.sessions ?? 0, "session")}, ${count(instance.documents ?? 0, "open file")}`);
  fact(busy, (instance.busy ?? []).join(", "));
  fact(trouble, instance.lastError);
}

function fact(node, text) {
  say(node, text || "");
  node.hidden = node.previousElementSibling.hidden = !text;
}

function measure(node, name, value, unit, history) {
  const known = value !== undefined && value !== null;
  node.hidden = node.previousElementSibling.hidden = !known;
  if (!known) return;
  const shown = `${Math.round(value)} ${unit}`;
  say(node.querySelector("span"), shown);
  draw(node.querySelector("svg"), history, `${name}, now ${shown}`);
}

// --- Sparklines -----------------------------------------------------------------------------------------------------

function recorded(key, instance) {
  const history = samples.get(key) ?? [];
  if (latest !== null && history.at(-1)?.at !== latest.generatedAt) {
    history.push({ at: latest.generatedAt, memory: instance.memoryMib, latency: instance.lastLatencyMs });
    history.splice(0, history.length - KEPT_SAMPLES);
    samples.set(key, history);
  }
  return history;
}

function sparkline() {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 100 20");
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.append(document.createElementNS(SVG, "polyline"));
  return drawing;
}

function draw(drawing, history, name) {
  const values = history.filter((value) => value !== undefined && value !== null);
  const highest = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${(20 - (18 * value) / highest).toFixed(1)}`);
  mark(drawing.firstChild, "points", points.join(" "));
  mark(drawing, "aria-label", name);
}

// --- Diagnostics and feedback ---------------------------------------------------------------------------------------

function newFile() {
  return element("details", {}, element("summary"), element("ul"));
}

function updateFile(node, { workspace, file }) {
  const [summary, list] = node.children;
  const grave = file.diagnostics.filter(({ severity }) => severity === "error").length;
  const total = file.diagnostics.length + (file.more ?? 0);
  const counted = grave === total ? count(total, "error") : `${count(grave, "error")}, ${count(total - grave, "other")}`;
  say(summary, `${file.path} — ${counted}`);
  list.setAttribute("aria-label", `Diagnostics of ${workspace.root}/${file.path}`);
  keep(list, file.diagnostics, (_said, index) => String(index), () => element("li"), (item, said) => {
    mark(item, "class", said.severity);
    say(item, `${said.line}: ${said.severity}: ${said.message} (${said.server})`);
  });
}

function newFeedback() {
  const made = element("details", {}, element("summary"), element("p"), element("pre"));
  made.firstChild.addEventListener("click", () => { made.dataset.chosen = ""; });
  return made;
}

function openNewest(list) {
  [...list.children].forEach((child, index) => {
    if (!("chosen" in child.dataset)) child.open = index === 0;
  });
}

function updateFeedback(node, shown) {
  const [summary, about, text] = node.children;
  const { feedback } = shown;
  say(summary, `${new Date(shown.at).toLocaleTimeString()} ${shown.paths.join(", ")} — ${feedback.state}`);
  say(about, `${shown.host ?? "a client"} in ${shown.root}, ${feedback.durationMs} ms, ` +
    `${feedback.introduced ?? 0} new, ${feedback.fixed ?? 0} fixed${feedback.reason ? `; ${feedback.reason}` : ""}`);
  say(text, feedback.text || "(nothing to say)");
}

// --- The whole picture ----------------------------------------------------------------------------------------------

function fits(...texts) {
  const wanted = byId("filter").value.trim().toLowerCase();
  return !wanted || texts.some((text) => text.toLowerCase().includes(wanted));
}

function show() {
  if (latest === null) return;
  const { workspaces, feedback = [], notices = [] } = latest;
  say(byId("daemon"), `Process ${latest.pid}, up ${duration(latest.uptimeMs)}`);
  keep(byId("notices"), notices, (text) => text, () => element("li"), say);
  byId("no-workspaces").hidden = workspaces.length > 0;
  keep(byId("workspaces"), workspaces, ({ root }) => root, newWorkspace, updateWorkspace);
  const files = workspaces.flatMap((workspace) => (workspace.files ?? []).map((file) => ({ workspace, file })))
    .filter(({ file }) => fits(file.path, ...file.diagnostics.map(({ message }) => message)));
  byId("no-files").hidden = files.length > 0;
  const more = workspaces.reduce((sum, workspace) => sum + (workspace.moreFiles ?? 0), 0);
  say(byId("more-files"), more ? `… and ${count(more, "more file")}` : "");
  keep(byId("files"), files, ({ workspace, file }) => `${workspace.root} ${file.path}`, newFile, updateFile);
  const seen = feedback.filter((shown) => fits(shown.feedback.text, ...shown.paths));
  byId("no-feedback").hidden = seen.length > 0;
  keep(byId("feedback"), seen, (shown) => `${shown.at} ${shown.paths}`, newFeedback, updateFeedback);
  openNewest(byId("feedback"));
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function duration(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

// --- Listening ------------------------------------------------------------------------------------------------------

function connection(state, text) {
  mark(byId("connection"), "data-state", state);
  say(byId("connection"), text);
  byId("everything").classList.toggle("stale", state !== "live");
}

async function listen(key) {
  const response = await fetch("/events", { headers: { Authorization: `Bearer ${key}` }, cache: "no-store" });
  if (response.status === 401 || response.status === 403) return "refused";
  if (!response.ok) return "lost";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return "lost";
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) latest = JSON.parse(data.slice(6));
    }
    connection("live", "Live");
    show();
  }
}

async function follow(key) {
  byId("sign-in").hidden = true;
  byId("everything").hidden = false;
  for (let tries = 0; ;) {
    const before = latest;
    const end = await listen(key).catch(() => "lost");
    tries = latest === before ? tries + 1 : 0;
    if (end === "refused") return signIn("The key has expired.");
    connection("lost", "Disconnected; reconnecting");
    const pause = RETRY_MILLISECONDS[Math.min(tries, RETRY_MILLISECONDS.length - 1)];
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

function signIn(why) {
  sessionStorage.removeItem(KEY);
  connection("lost", why);
  byId("everything").hidden = true;
  byId("sign-in").hidden = false;
  byId("token").focus();
}

async function exchanged(ticket) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("/page-key", { method: "POST", headers, body: JSON.stringify({ ticket }) });
  return response.ok ? (await response.json()).key : null;
}

async function start() {
  const ticket = location.hash.slice(1);
  // The link is good once, and stays in no history.
  history.replaceState(null, "", "/");
  const key = (ticket && await exchanged(ticket).catch(() => null)) || sessionStorage.getItem(KEY);
  if (!key) return signIn(ticket ? "This link was already used, or has expired." : "Sign in with a key.");
  sessionStorage.setItem(KEY, key);
  await follow(key);
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = byId("token").value.trim();
  byId("token").value = "";
  sessionStorage.setItem(KEY, key);
  follow(key);
});
byId("filter").addEventListener("input", show);
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    byId("filter").focus();
  } else if (event.key === "Escape" && event.target === byId("filter")) {
    byId("filter").value = "";
    show();
  }
});
start();
