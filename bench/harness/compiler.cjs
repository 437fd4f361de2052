// Everything that the TypeScript compiler has to say of a project, in the form of `tsc --pretty false`.
//
//     node compiler.cjs TYPESCRIPT ROOT
//
// `tsc` leaves out all other errors, of every file, while there is a syntax error.

const [typescript, root] = process.argv.slice(2);
const ts = require(typescript);

const system = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (found) => { throw new Error(String(found.messageText)); } };
const project = ts.getParsedCommandLineOfConfigFile(`${root}/tsconfig.json`, { noEmit: true }, system);
const program = ts.createProgram(project.fileNames, project.options);
const errors = program
  .getSourceFiles()
  .filter((file) => !program.isSourceFileDefaultLibrary(file) && !program.isSourceFileFromExternalLibrary(file))
  .flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])
  .filter((found) => found.category === ts.DiagnosticCategory.Error);
const host = { getCurrentDirectory: () => root, getCanonicalFileName: (name) => name, getNewLine: () => "\n" };
process.stdout.write(ts.formatDiagnostics(errors, host));
