// `node cline_run.mjs MODULE URL PROMPT`: one prompt to Cline's own engine, with its default tools and its hooks.
import { pathToFileURL } from "node:url";

const [module, baseUrl, prompt] = process.argv.slice(2);
const { ClineCore } = await import(pathToFileURL(module));

const engine = await ClineCore.create({ backendMode: "local" });
const { result } = await engine.start({
  config: {
    providerId: "openai-compatible",
    modelId: "scripted",
    apiKey: "none",
    baseUrl,
    cwd: process.cwd(),
    workspaceRoot: process.cwd(),
    mode: "act",
    systemPrompt: "You edit files.",
    enableTools: true,
    enableSpawnAgent: false,
    enableAgentTeams: false,
  },
  prompt,
  interactive: false,
});
await engine.dispose();
console.log(result.text);
// Its timers would keep the process for half a minute; the command line ends in the same way.
process.exit(result.finishReason === "completed" ? 0 : 1);
