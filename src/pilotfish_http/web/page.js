"use strict";
// Shows what `GET /events` says, and restarts servers. Everything that comes from there is set as text: a diagnostic can hold any markup.

const KEY = "pilotfish-key";
const EXPIRED = "The key has expired.";
const LONG_ID = 12, SHORT_ID = 8; // characters of a conversation's name
const KEPT_SAMPLES = 60; // two minutes of one every two seconds
const RETRY_MILLISECONDS = [500, 1000, 2000, 5000];

const OUTCOMES = { unavailable: "not checked", partial: "partly checked", stale: "of an older text" };
const TOGETHER = "it is judged together with other edits"; // until that, which is shown in its place
const STATES = {
  active: "Running", starting: "Starting", stopping: "Stopping", idle: "Idle", broken: "Failed",
  unavailable: "Not available", configured: "Not started", disabled: "Disabled",
};
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
const samples = new Map();
const sessions = new Map(); // by name
const starts = new Map(); // of conversations
let latest = null;
let held = ""; // the key
const tabs = new BroadcastChannel(KEY);

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
    if (instances.length) return instances.map((instance) => ({ project: workspace.root, server, instance }));
    const state = server.disabled ? "disabled" : server.unavailable ? "unavailable" : "configured";
    return [{ project: workspace.root, server, instance: { root: workspace.root, state, lastError: server.unavailable } }];
  });
}

function newProject() {
  const head = [element("h2"), element("p", { class: "path" }), element("p", { class: "who" })];
  const notes = [element("ul", { class: "told" }), element("ul", { class: "warnings" })];
  const servers = [element("h3", {}, "Servers"), element("ul", { class: "cards" }), element("p", { class: "empty no-servers" }, "No server runs here now.")];
  const files = [
    element("h3", {}, "Diagnostics by file"), element("p", { class: "empty no-files" }, ""),
    element("div", { class: "files" }), element("p", { class: "hint more-files" }),
  ];
  const feedback = [element("h3", {}, "What agents were told"), element("p", { class: "empty no-feedback" }, "No edits yet. Each edit of a wired agent appears here, with what it was told. To wire yours: pilotfish setup --all"), element("div", { class: "feedback" })];
  const questions = [element("h3", {}, "What agents asked"), element("p", { class: "empty no-questions" }, "No questions yet."), element("ul", { class: "questions" })];
  const columns = element("div", { class: "columns" }, element("div", { class: "work" }, ...servers, ...files, ...questions), element("div", {}, ...feedback));
  return element("section", { class: "project" }, ...head, ...notes, columns);
}

function updateProject(node, project) {
  const { root } = project;
  const part = (name) => node.querySelector(name);
  say(part("h2"), root.split("/").filter(Boolean).at(-1) ?? root);
  say(part(".path"), root);
  mark(node, "aria-label", `Project ${root}`);
  part(".told").setAttribute("aria-label", `Conversations of ${root}`);
  const talks = [...new Map(project.conversations.map((one) => [keyOf(one), one])).values()]
    .map((one) => ({ ...one, heard: project.conversations.filter((other) => keyOf(other) === keyOf(one)).map(toldOf).filter(Boolean).join(", ") }));
  const heard = talks.filter((one) => one.heard);
  const others = talks.filter((one) => !one.heard && one.host !== "serve");
  say(part(".who"), others.map(conversationName).join(" · "));
  keep(part(".told"), heard, keyOf, () => element("li"), (item, one) => say(item, `${conversationName(one)}: ${one.heard}`));
  part(".warnings").setAttribute("aria-label", `Warnings of ${root}`);
  keep(part(".warnings"), project.warnings ?? [], (text) => text, () => element("li", { class: "warning" }), say);
  part(".cards").setAttribute("aria-label", `Servers of ${root}`);
  const rows = rowsOf(project).filter(({ server, instance }) => fits(server.serverId, instance.root, instance.state));
  keep(part(".cards"), rows, ({ server, instance }) => `${server.serverId} ${instance.root}`, newServer, updateServer);
  part(".no-servers").hidden = rows.length > 0;
  const files = (project.files ?? []).map((file) => ({ project, file })).sort(worst)
    .filter(({ file }) => fits(file.path, ...file.diagnostics.map(({ message }) => message)));
  part(".no-files").hidden = files.length > 0;
  const judged = rowsOf(project).some(({ instance }) => instance.pid && instance.documents);
  say(part(".no-files"), judged ? "No diagnostics: the servers reported no problem in the files that they have seen." : "No diagnostics: no server has a file of this project open.");
  say(part(".more-files"), project.moreFiles ? `… and ${count(project.moreFiles, "more file")}` : "");
  keep(part(".files"), files, ({ file }) => file.path, newFile, updateFile);
  const seen = project.feedback.filter((shown) => fits(shown.feedback.text, ...shown.paths));
  part(".no-feedback").hidden = seen.length > 0;
  keep(part(".feedback"), seen, (shown) => `${shown.at} ${shown.paths}`, newFeedback, updateFeedback);
  openNewest(part(".feedback"), seen);
  const asked = project.questions.filter(({ operation, about = "" }) => fits(operation, about));
  part(".no-questions").hidden = asked.length > 0;
  part(".questions").setAttribute("aria-label", `Questions about ${root}`);
  part(".work").hidden = !(rows.length || files.length || asked.length);
  keep(part(".questions"), asked, ({ at, operation, about }) => `${at} ${operation} ${about}`, () => element("li"), (item, one) => say(item, questionText(one)));
}

function worst(one, other) {
  const rank = ({ file: { counts } }) => counts.error * 10000 + counts.warning;
  return rank(other) - rank(one) || one.file.path.localeCompare(other.file.path);
}

function conversationName(one) {
  return one.attached ? namedSince(one) : `${namedSince(one)} (connects for each call)`;
}

function namedSince(one) {
  const start = starts.get(keyOf(one));
  return start ? `${clientName(one)}, since ${new Date(start).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}` : clientName(one);
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
    measured.append(element("span"), sparkline(), element("small"));
  }
  facts.querySelector("dd:last-of-type").className = "error";
  const head = element("header", {}, element("h4"), element("span", { class: "state" }));
  const buttons = element("p", { class: "buttons" },
    element("button", { type: "button" }, "Restart"), element("button", { type: "button", "aria-expanded": "false" }, "Log"));
  const made = element("li", { class: "card" }, head, facts, buttons,
    element("p", { class: "outcome", role: "status" }), element("pre", { class: "log", tabindex: "0", hidden: "" }));
  const [restarting, logging] = buttons.children;
  restarting.addEventListener("click", () => restart(made, restarting));
  logging.addEventListener("click", () => toggleLog(made, logging));
  return made;
}

async function request(method, path, body) {
  const headers = { Authorization: `Bearer ${held}`, "Content-Type": "application/json" };
  const response = await fetch(path, { method, headers, cache: "no-store", body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function restart(card, button) {
  const outcome = card.querySelector(".outcome");
  button.disabled = true;
  say(outcome, "Restarting …");
  try {
    const done = await request("POST", "/servers/restart", { root: card.dataset.project, server: card.dataset.server });
    const failed = done.find(({ error }) => error);
    say(outcome, failed ? failed.error : done.length ? `Restarted in ${Math.max(...done.map(({ durationMs }) => durationMs ?? 0))} ms.` : "It was not running.");
  } catch (error) {
    say(outcome, error.message);
  }
  button.disabled = false;
  if (!card.querySelector(".log").hidden) readLog(card);
}

function toggleLog(card, button) {
  const log = card.querySelector(".log");
  log.hidden = !log.hidden;
  mark(button, "aria-expanded", String(!log.hidden));
  if (!log.hidden) readLog(card);
}

async function readLog(card) {
  const log = card.querySelector(".log");
  mark(log, "aria-label", `Log of ${card.dataset.server}`);
  const wanted = new URLSearchParams({ root: card.dataset.project, server: card.dataset.server });
  const answer = await request("GET", `/servers/log?${wanted}`).catch((error) => ({ lines: [error.message] }));
  say(log, answer.lines.length ? answer.lines.join("\n") : "It has written nothing.");
  log.scrollTop = log.scrollHeight;
}

function updateServer(node, { project, server, instance }) {
  mark(node, "data-project", project);
  mark(node, "data-server", server.serverId);
  node.querySelector(".buttons").hidden = ["configured", "disabled", "unavailable"].includes(instance.state);
  mark(node, "data-state", instance.state);
  say(node.querySelector("h4"), server.serverId);
  say(node.querySelector(".state"), STATES[instance.state] ?? instance.state);
  const [root, memory, latency, process, use, busy, trouble] = node.querySelectorAll("dd");
  const history = recorded(`${server.serverId} ${instance.root}`, instance);
  say(root, instance.root);
  measure(memory, "Memory", instance.memoryMib, "MiB", history.map((sample) => sample.memory));
  measure(latency, "Latency", instance.lastLatencyMs, "ms", history.map((sample) => sample.latency));
  fact(process, instance.pid && `${instance.pid}, up ${duration(instance.uptimeMs ?? 0)}, ${count(instance.restarts ?? 0, "restart")}`);
  const turns = instance.sharedWith?.length ? `, takes turns with ${instance.sharedWith.join(", ")}` : "";
  fact(use, instance.pid ? `${count(instance.sessions ?? 0, "session")}, ${count(instance.documents ?? 0, "open file")}${turns}` : instance.rested && `At rest: ${instance.rested}`);
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
  const past = history.filter((one) => one !== undefined && one !== null).map(Math.round);
  say(node.querySelector("small"), past.length > 1 ? `0–${Math.max(...past)} ${unit}` : "");
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

function updateFile(node, { project, file }) {
  const [summary, list] = node.children;
  const { error, warning, info, hint } = file.counts;
  const parts = [error && count(error, "error"), warning && count(warning, "warning"), info + hint && count(info + hint, "note")];
  say(summary, `${file.path} — ${parts.filter(Boolean).join(", ")}${file.outdated ? ", before the last change" : ""}`);
  list.setAttribute("aria-label", `Diagnostics of ${project.root}/${file.path}`);
  keep(list, file.diagnostics, (_said, index) => String(index), () => element("li"), (item, said) => {
    mark(item, "class", said.severity);
    say(item, `${said.line}: ${said.severity}: ${said.message} (${said.server})`);
  });
}

function newFeedback() {
  const made = element("details", {}, element("summary"), element("p"), element("div", { class: "changes" }), element("pre"));
  made.firstChild.addEventListener("click", () => { made.dataset.chosen = ""; });
  return made;
}

function openNewest(list, seen) {
  const first = Math.max(0, seen.findIndex(({ feedback }) => feedback.text));
  [...list.children].forEach((child, index) => {
    if (!("chosen" in child.dataset)) child.open = index === first;
  });
}

function updateFeedback(node, shown) {
  const [summary, about, changes, text] = node.children;
  const { feedback } = shown;
  const paths = shown.paths.map((path) => (path.startsWith(`${shown.root}/`) ? path.slice(shown.root.length + 1) : path));
  say(summary, `${new Date(shown.at).toLocaleTimeString()} ${paths.join(", ")} — ${outcome(feedback)}`);
  // What is told without an edit, such as before a stop, is not new.
  const counted = paths.length ? `, ${feedback.introduced ?? 0} new, ${feedback.fixed ?? 0} fixed` : "";
  say(about, `${clientName(shown)}, ${waited(feedback.durationMs)}${counted}${feedback.reason ? `; ${feedback.reason}` : ""}`);
  keep(changes, shown.changes ?? [], (_change, index) => String(index), newChange, updateChange);
  const why = feedback.state === "fresh" ? "this edit caused no error" : feedback.reason ?? "there was no verdict";
  tell(text, feedback.text || `Nothing: ${why}`);
}

function outcome({ state, introduced, fixed, text, reason }) {
  if (reason === TOGETHER) return "judged with the next";
  if (state !== "fresh") return OUTCOMES[state] ?? state;
  return introduced ? `${introduced} new` : fixed ? `${fixed} fixed` : text ? "told" : "nothing new";
}

function questionText(asked) {
  const found = asked.results === undefined ? "" : `, ${count(asked.results, "result")}`;
  const operation = asked.operation.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const words = [new Date(asked.at).toLocaleTimeString(), `${clientName(asked)}:`, operation, asked.about].filter(Boolean);
  return `${words.join(" ")}, ${asked.state}${found}, ${asked.durationMs} ms`;
}

function newChange() {
  return element("div", { class: "change" }, element("p"), element("del"), element("ins"));
}

function updateChange(node, change) {
  const [place, old, fresh] = node.children;
  say(place, `${change.path}:${change.line}${change.more ? ` (${count(change.more, "more line")})` : ""}`);
  say(old, change.old.map((line) => `- ${line}`).join("\n"));
  say(fresh, change.new.map((line) => `+ ${line}`).join("\n"));
  old.hidden = !change.old.length;
  fresh.hidden = !change.new.length;
}

const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&" };

function tell(node, text) {
  // What the model reads has entities for its markup; a person reads the characters.
  const plain = text.replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity]);
  if (node.textContent === plain) return;
  const lines = plain.split("\n").map((line, index, all) => line + (index + 1 < all.length ? "\n" : ""));
  node.replaceChildren(...lines.map((line) => (/^(ERROR|OPEN) /.test(line) ? element("span", { class: "error" }, line) : line)));
}

// --- The whole picture ----------------------------------------------------------------------------------------------

function fits(...texts) {
  const wanted = byId("filter").value.trim().toLowerCase();
  return !wanted || texts.some((text) => text.toLowerCase().includes(wanted));
}

function projectsOf({ workspaces, feedback = [], questions = [] }) {
  const projects = new Map(workspaces.map((one) => [one.root, { ...one, feedback: [], questions: [] }]));
  for (const [list, several] of Object.entries({ feedback, questions })) {
    for (const shown of several) {
      // A project that every client has left is still of interest.
      const empty = { root: shown.root, conversations: [], servers: [], files: [], feedback: [], questions: [] };
      if (!projects.has(shown.root)) projects.set(shown.root, empty);
      projects.get(shown.root)[list].push(shown);
    }
  }
  const newest = ({ feedback: shown }) => shown[0]?.at ?? 0;
  // The folder that `pilotfish serve` was started in may be no project.
  const alive = ({ conversations, ...lists }) => ["servers", "files", "feedback", "questions", "warnings"].some((name) => lists[name]?.length) ||
    conversations.some(({ host }) => host !== "serve");
  return [...projects.values()].filter(alive).sort((one, other) => newest(other) - newest(one) || one.root.localeCompare(other.root));
}

function keyOf({ session, host, conversation }) {
  // A conversation has a session in each project, and another one after a rest.
  return conversation ? `${host ?? ""} ${conversation}` : session;
}

function clientName(one) {
  // Those that would be called the same are told apart by a number, which each keeps.
  const { host, conversation } = one;
  const short = conversation?.length > LONG_ID ? `${conversation.slice(0, SHORT_ID)}…` : conversation;
  const name = short ? `${host ?? "conversation"} ${short}` : (host ?? "a client");
  const key = keyOf(one);
  if (!key) return name;
  const known = sessions.get(name) ?? [];
  if (!known.includes(key)) sessions.set(name, [...known, key]);
  const number = sessions.get(name).indexOf(key);
  return number ? `${name} (${number + 1})` : name;
}

function only(project) {
  const agent = byId("agent").value;
  const conversation = byId("conversation").value;
  if (!agent && !conversation) return project;
  const meant = (one) => (!agent || (one.host ?? "a client") === agent) && (!conversation || keyOf(one) === conversation);
  const [feedback, questions, conversations] = [project.feedback, project.questions, project.conversations].map((list) => list.filter(meant));
  return { ...project, today: null, feedback, questions, conversations };
}

function choices(select, values) {
  // Names by value; the one that is chosen stays, also when it is gone.
  const wanted = new Map([["", "All"], ...values]);
  if (!wanted.has(select.value)) wanted.set(select.value, select.selectedOptions[0].textContent);
  keep(select, [...wanted], ([value]) => value, () => element("option"), (option, [value, name]) => {
    mark(option, "value", value);
    say(option, name);
  });
}

function conversationsOf({ conversations, feedback }) {
  // `pilotfish serve` itself is none.
  return [...conversations, ...feedback].filter(({ session, host }) => session && host !== "serve").map((one) => [keyOf(one), namedSince(one)]);
}

function dayOf({ today, feedback }) {
  if (today) return today;
  const shown = feedback.filter(({ at }) => at >= new Date().setHours(0, 0, 0, 0));
  const sum = (value) => shown.reduce((all, one) => all + value(one.feedback), 0);
  return {
    edits: shown.filter(({ paths }) => paths.length).length, told: shown.filter((one) => one.feedback.text).length,
    introduced: sum(({ introduced = 0 }) => introduced), fixed: sum(({ fixed = 0 }) => fixed),
  };
}

function tiles(projects) {
  const errors = projects.flatMap((project) => project.servers).reduce((sum, { diagnostics }) => sum + (diagnostics?.error ?? 0), 0);
  const told = projects.flatMap((project) => project.feedback);
  const days = projects.map(dayOf);
  const sum = (name) => days.reduce((all, day) => all + (day[name] ?? 0), 0);
  const alive = projects.flatMap((project) => rowsOf(project).map(({ instance }) => instance)).filter(({ pid }) => pid);
  // One of all that take turns at a process.
  const instances = [...new Map(alive.map((instance) => [instance.pid, instance])).values()];
  const memory = instances.reduce((all, { memoryMib = 0 }) => all + memoryMib, 0);
  const times = told.map(({ feedback }) => feedback.durationMs).sort((one, other) => one - other);
  return [
    ["Errors now", errors, errors ? "bad" : instances.length ? "good" : ""],
    ["New errors today", sum("introduced"), ""],
    ["Fixed today", sum("fixed"), sum("fixed") ? "good" : ""],
    ["Edits today", sum("edits"), ""],
    ["Told today", sum("told"), ""],
    ["Usual wait", times.length ? waited(times[Math.floor(times.length / 2)]) : "–", ""],
    ["Waiting saved", sum("savedMs") ? duration(sum("savedMs")) : "–", ""],
    [count(instances.length, "server"), memory >= 1024 ? `${(memory / 1024).toFixed(1)} GiB` : `${Math.round(memory)} MiB`, ""],
  ];
}

function show() {
  if (latest === null) return;
  const all = projectsOf(latest);
  for (const one of all.flatMap(({ conversations, feedback, questions }) => [...conversations, ...feedback, ...questions])) {
    starts.set(keyOf(one), Math.min(starts.get(keyOf(one)) ?? Infinity, one.startedAt ?? one.at));
  }
  say(byId("daemon"), `Process ${latest.pid}, up ${duration(latest.uptimeMs)}`);
  keep(byId("notices"), latest.notices ?? [], (text) => text, () => element("li"), say);
  choices(byId("project"), all.map(({ root }) => [root, root]));
  const agents = new Set(all.flatMap(({ feedback }) => feedback.map(({ host }) => host ?? "a client")));
  choices(byId("agent"), [...agents].sort().map((name) => [name, name]));
  choices(byId("conversation"), all.flatMap(conversationsOf));
  const chosen = byId("project").value;
  const projects = all.filter(({ root }) => !chosen || root === chosen).map(only);
  byId("no-projects").hidden = projects.length > 0;
  keep(byId("summary"), tiles(projects), (_tile, index) => String(index), () => element("div", {}, element("dt"), element("dd")), (tile, [name, value, tone]) => {
    mark(tile, "data-tone", tone);
    say(tile.children[0], name);
    say(tile.children[1], String(value));
  });
  keep(byId("projects"), projects, ({ root }) => root, newProject, updateProject);
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function waited(milliseconds) {
  return milliseconds < 1000 ? `${milliseconds} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
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

async function follow(key, refusal) {
  held = key;
  byId("sign-in").hidden = true;
  byId("everything").hidden = false;
  for (let tries = 0, why = refusal; ;) {
    const before = latest;
    const end = await listen(key).catch(() => "lost");
    tries = latest === before ? tries + 1 : 0;
    if (latest !== before) why = EXPIRED;
    if (end === "refused") return signIn(why);
    connection("lost", "Disconnected; reconnecting");
    const pause = RETRY_MILLISECONDS[Math.min(tries, RETRY_MILLISECONDS.length - 1)];
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

function enter(key, refusal = EXPIRED) {
  sessionStorage.setItem(KEY, key);
  return follow(key, refusal);
}

function signIn(why) {
  held = "";
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
  if (key) return enter(key);
  signIn(ticket ? "This link was already used, or has expired." : "Sign in with the token.");
  tabs.postMessage({});
}

tabs.addEventListener("message", ({ data }) => {
  // Another tab of this page asks for the key, or has one.
  if (!data.key && held) tabs.postMessage({ key: held });
  else if (data.key && !held) enter(data.key);
});

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = byId("token").value.trim();
  byId("token").value = "";
  enter(key, "The token is wrong.");
});
for (const id of ["filter", "project", "agent", "conversation"]) byId(id).addEventListener("input", show);
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
