// Writes what VS Code's glob engine says about many patterns and paths, for the tests of our own.
//
//   npm install --prefix FOLDER monaco-editor@0.57.0
//   node tools/glob-tables.mjs FOLDER tests/protocol/tables
//
// monaco-editor carries VS Code's engine (vs/base/common/glob). The output depends on its version only.
// A table has paths and rows; a row is a pattern and, for each path in order, 1 where the pattern matches it, else 0.

import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, output] = process.argv.slice(2).map(folder => resolve(folder));
const version = name => JSON.parse(readFileSync(join(packages, 'node_modules', name, 'package.json'), 'utf8')).version;

const vscode = await import(pathToFileURL(join(packages, 'node_modules/monaco-editor/esm/vs/base/common/glob.js')));

const table = (name, options, paths, patterns, compile) => {
  const rows = [...new Set(patterns)].map(pattern => {
    const matches = compile(pattern, options);
    return [pattern, paths.map(path => (matches(path) ? 1 : 0)).join('')];
  });
  return { name, ...options, paths, rows };
};

const write = (file, engine, tables) => {
  const line = value => JSON.stringify(value);
  const lines = tables.map(({ rows, paths, ...rest }) =>
    `{${line(rest).slice(1, -1)},\n"paths":[\n${paths.map(line).join(',\n')}],\n"rows":[\n${rows.map(line).join(',\n')}]}`);
  writeFileSync(join(output, file), `{"engine":${line(engine)},"tables":[\n${lines.join(',\n')}]}\n`);
};

// A small generator of pseudo-random numbers, so that the tables do not depend on the run.
const random = seed => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};

const chooser = seed => {
  const next = random(seed);
  const pick = list => list[Math.floor(next() * list.length)];
  const times = (low, high, make) => Array.from({ length: low + Math.floor(next() * (high - low + 1)) }, make);
  return { pick, times };
};

const randomPaths = (count, seed, names) => {
  const { pick, times } = chooser(seed);
  const path = () => pick(['', '/', '/']) + times(1, 4, () => times(1, 3, () => pick(names)).join('')).join('/');
  const real = found => !found.split('/').some(name => name === '.' || name === '..');
  return [...new Set(Array.from({ length: count }, path))].filter(real);
};

// --- The patterns of language servers, as VS Code reads them ---------------------------------------------------------

const project = '/home/me/project';

const filePaths = [
  'a', 'b', 'ab', 'abc', 'a.ts', 'a.tsx', 'a.js', '.ts', 'a.d.ts', 'A.TS', 'a/b', 'a/b.ts', 'a/b/c', 'a/b/c.ts', 'a/c',
  'a/x/b', 'a/x/y/b', 'ab/c', 'src/a.ts', 'src/x/a.ts', 'package.json', 'x/package.json', 'Cargo.toml', 'Cargo.lock',
  'x/Cargo.lock', 'node_modules/x/index.js', '.git/HEAD', 'a-b', 'a_b', 'a b', 'x/a b.ts', 'é.ts', '[ab]', '{a,b}', 'a*b',
  'a?b', 'a(b)', 'a+b', 'a^b', 'a$b', '-', ']', '!', '^', '0', '5', '9', '/a', '/a/b', '/b', '/a.ts', '/a/b.ts',
  `${project}`, `${project}/a.ts`, `${project}/src/a.ts`, `${project}/src/x/y/a.tsx`, `${project}/package.json`,
  `${project}/templates/x/y.html`, `${project}/target/run_results.json`, `${project}/.shopify/metafields.json`,
  `${project}/tailwind.config.js`, `${project}/tailwind.web.config.cjs`, `${project}/__init__.py`, '/home/me/other/a.ts',
];

const filePatterns = [
  'a', 'b', '*', '?', '??', '*.ts', '*.*', '**', '**/*', '**/*.ts', '**/a', '**/a.ts', '**/a/b', 'a/*', 'a/**', 'a/**/b',
  'a/**/*.ts', 'a/*/b', 'a/*/*', '*/*', '*/b', '*/*/b', '/**', '/**/*', '/*', '/a', '/a/*', '/a/**', '**/x/**', '**/x/**/b',
  'a*', '*b', 'a*c', 'a?c', '*a*', '*a*b*', '**a', 'a**', '**a**', '***', 'a/**b', 'a/b**', 'a/', 'a/b/', '**/a/', 'a/**/',
  '**/', '**/**', '**/**/a', '**/**/*.ts', 'a/**/**/b', '**/a/**/b/**', '**/*/**/b', '{a,b}', '{,a}b',
  'a{,b}', '{a}', '{}', 'a{}', '{a,b}{c,b}', '{a,b}/{b,c}', '{a/b,b}', '{*.ts,*.js}', '{**/*.ts,**/*.js}', '{**/a,**/b}',
  '**/{a,b}', '**/{a,b}.ts', '**/*.{ts,js}', '**/*.{ts,tsx,js}', '**/*.{d.ts,js}', '{a,b/**}', '{a/**,b}', 'x/{a b.ts,a}',
  '{*,?}', 'a.{ts,js}{,x}', '[ab]', '[a-c]', '[!a]', '[^a]', '[!a-c]', '[a-]', '[-a]', '[0-9]', '[0-9a]', '[]]', '[]a]', '[*]',
  '[?]', '[{]', '[a/b]', '[+--]', '[a-c-e]', '*[ab]', '[ab]*', '[a][b]', '[.]ts', 'a[.]ts', '{[ab],c}', '{[a,b]}',
  'a.ts', 'A.TS', 'a b', ' a ', 'x/a b.ts', 'é.ts', 'a+b', 'a(b)', 'a^b', 'a$b', 'a-b', 'a|b', 'a.b', 'a,b', '!a', '!(a)', '@(a|b)',
  '**/package.json', '**/Cargo.{lock,toml}', '**/node_modules/**', '**/.git/**', '.git/*', '**/.*', '**/.ts',
  `${project}/**/*`, `${project}/**`, `${project}/*`, `${project}/**/*.{ts,tsx}`, `${project}/{src,lib}/**/*.ts`, '/home/*/project/**',
  '**/templates/**', '**/target/run_results.json', '**/.shopify/*', '**/__init__.py', '**/pyrightconfig.json',
  '**/{tailwind,tailwind.config,tailwind.*.config,tailwind.config.*}.{js,cjs,ts,mjs}', '{.rubocop.yml,.rubocop,.rubocop_todo.yml}',
  '**/*.{mdx,cjs,cts,js,jsx,json,mjs,mts,ts,tsx}', '**/*.{yml,yaml}', '**/biome.{json,jsonc}', '**/src/**/*.ts', 'src/**/a.ts',
];

// How VS Code reads these differs from what they say; the tests list each with our reading and the reason.
const filePatternsReadOtherwise = [
  '{a,{b,c}}', '{a,{b,c}}.ts', '**/*.{ts,{js,json}}', '{a,b', 'a}b', 'a]b', 'a[b', '[', '[!]', '[!]a]', '[z-a]', 'a{b,}', 'x{**/b,c}',
  '{a,b/{**,c}}', 'a/**/**', '/**/**', 'a[!b]b', 'a[!.]b', 'a[+-9]b', '**', '*b.ts', '?',
];
const filePathsReadOtherwise = [...filePaths, 'a\\b.ts', 'a\nb', '😀', 'a]b', 'a[b'];

const randomFilePatterns = count => {
  const { pick, times } = chooser(17);
  const plain = ['a', 'b', 'ab', 'c', '.', '.ts', '*', '*', '?', '[ab]', '[a-c]', '**'];
  const group = () => `{${times(1, 3, () => times(1, 2, () => pick(plain.slice(0, -1))).join('')).join(',')}}`;
  const name = () => times(1, 3, () => (pick([0, 0, 0, 1]) ? group() : pick(plain))).join('');
  const pattern = () => pick(['', '', '/']) + times(1, 4, () => pick(['**', name(), name()])).join('/');
  return Array.from({ length: count }, pattern).filter(found => !found.endsWith('**/**'));
};

const file = (pattern, { base, ignoreCase }) =>
  vscode.parse(base === undefined ? pattern : { base, pattern }, { ignoreCase: ignoreCase ?? false });

const basePatterns = ['*', '**', '**/*', '*.ts', '**/*.ts', 'src/*', 'src/**', 'src/**/a.ts', 'package.json', '{src,lib}/**/*.ts', 'a/**'];
const letters = ['a', 'b', 'c', '.ts', 'ab', '.', 'x'];

write('vscode.json', `vs/base/common/glob of monaco-editor ${version('monaco-editor')}`, [
  table('written', {}, filePaths, filePatterns, file),
  table('ignoring case', { ignoreCase: true }, filePaths, ['a.ts', 'A.ts', '**/*.TS', '[A-C]', 'PACKAGE.json', '**/É.ts', '{A,B}', 'A/**', '[!A]'], file),
  table('below a base', { base: project }, filePaths, basePatterns, file),
  table('random', {}, randomPaths(60, 23, letters), randomFilePatterns(400), file),
  table('read otherwise', {}, filePathsReadOtherwise, filePatternsReadOtherwise, file),
]);
