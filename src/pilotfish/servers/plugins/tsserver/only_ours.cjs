// Loaded first into each process of a TypeScript server where nobody trusts the workspace (T46).
// A tsconfig.json may name any file of a package that lies beside TypeScript or above it as a plugin, with options:
// tsserver has no switch against that. It loads plugins by their absolute path, and nothing else.
"use strict";

const Module = require("node:module");
const path = require("node:path");

const OURS = path.join(__dirname, "node_modules") + path.sep;
const LOADERS = new Set(["_tsserver.js", "tsserver.js", "tsserverlibrary.js", "typescript.js"]);

const load = Module._load;

Module._load = function (request, parent, ...rest) {
  const loader = parent?.filename && path.basename(parent.filename);
  if (LOADERS.has(loader) && path.isAbsolute(request) && !request.startsWith(OURS)) {
    throw new Error(`${request} is not loaded: the workspace is not trusted`);
  }
  return load.call(this, request, parent, ...rest);
};
