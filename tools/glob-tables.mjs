// Writes what real glob engines say about many patterns and paths, for the tests of our own.
//
//   npm install --prefix FOLDER picomatch@4.0.7 monaco-editor@0.57.0
//   node tools/glob-tables.mjs FOLDER tests/protocol/tables
//
// monaco-editor carries VS Code's engine (vs/base/common/glob). The output depends on the two versions only.
// A table has paths and rows; a row is a pattern and, for each path in order, 1 where the pattern matches it, else 0.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, output] = process.argv.slice(2).map(folder => resolve(folder));
const require = createRequire(join(packages, 'package.json'));
const version = name => JSON.parse(readFileSync(join(packages, 'node_modules', name, 'package.json'), 'utf8')).version;

const picomatch = require('picomatch');
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

// --- The patterns of trusted roots and root markers, as picomatch reads them --------------------------------------------

const rootPaths = [
  'a', 'b', 'ab', 'abc', 'a.', '.a', 'a.b', 'a.sln', 'x.a.sln', '.sln', 'package.json', 'a/b', 'a/b/c', '/a', '/b', '/ab', '/a/b',
  '/a/c', '/a/b/c', '/a/b/c/d', '/a/x/b', '/a/x/y/b', '/a/ab', '/a/.b', '/a/b.', '/a/.b/c', '/a/1', '/a/2', '/a/10', '/a/-',
  '/a/[ab]', '/a/{b,c}', '/a/*', '/a/?', '/a/!', '/a/b c', '/a/(b)', '/a/+', '/a/a+', '/a/$b', '/a/^', '/a/é', '/a/É', '/a/😀',
  '/a/a😀b', '/a/aa', '/a/aaa', '/a/bb', '/a/abab', '/a/foo', '/a/foobar', '/a/foo/bar', '/a/foobar/bar', '/a/bar', '/a/a.d.ts',
  '/a/a.ts', '/a/b.js', '/a/b.d.js', '/A', '/A/B', '/home', '/home/me', '/home/me/Code', '/home/me/Code/personal',
  '/home/me/Code/personal/x', '/home/me/Code/personal/x/y', '/home/me/Code/personal2', '/home/me/Code/work/x', '/home/me/Code/evil',
  '/home/me/Code/.hidden/x', '/home/you/Code/personal/x', '/home/me/code/personal/x', '/srv/v1.2.3', '/srv/v10.2', '/srv/v1',
  '/home/me/Code/x\\y', '/a/x/ab/b', '/a/b/b', '/x/a', '/x/y/a', '/x/a/b', '/tmp/a.b/c', '/a/K', '/a/k', '/a/\u212a', '/a/ſ', '/a/s', '/a/bx1',
];

const rootPatterns = [
  'a', '*', '?', '*.sln', '*.*', '**/*.*', '.*', '**', '**/*', '**/a', '**/*.sln', '*/*', '*/b', '{a,b}.sln', 'package.json', './a', './*.sln',
  '/a', '/a/b', '/a/*', '/a/**', '/a/**/b', '/a/**/*', '/a/*/b', '/a/*/*', '/a/*/**', '/a/b/**', '/**', '/**/*', '/**/a', '/**/b', '/**/a/**',
  '/*', '/*/b', '/*/*', '/*/**', '/*/**/b', '/**/**', '/**/**/b', '/a/**/**', '/a/**/**/b', '/a/**/x/**', '/a/**/x/**/b', '**/a/**', '**/a/**/b',
  '/a/?', '/a/??', '/a/?b', '/a/b?', '/a/*b', '/a/b*', '/a/*b*', '/a/*a*b*', '/a/.*', '/a/.b', '/a/*.', '/a/b.*', '/a/*.*', '/a/?.*',
  '/a/[ab]', '/a/[a-c]', '/a/[^a]', '/a/[^a-c]', '/a/[!a]', '/a/[0-9]', '/a/[0-9][0-9]', '/a/[a.]', '/a/[-a]', '/a/[a-]', '/a/[ab]*', '/a/*[ab]',
  '/a/[*]', '/a/[?]', '/a/[+]', '/a/[$^]', '/a/[{]', '/a/[ab][ab]', '/a/[é]', '/a/[^é]', '/a/[k]', '/a/[a-z]',
  '/a/{b,c}', '/a/{b,c}/**', '/a/{b,c}/c', '/{a,b}', '/{a,b}/**', '/{a,b}/{b,c}', '/a/{b,b/c}', '/a/{b,x/y}/b', '/a/{b,{c,x}}', '/a{,b}',
  '/a{,/b}', '/a/b{,.}', '/a/{1..3}', '/a/{3..1}', '/a/{a..c}', '/a/{A..C}', '/a/{*,b}', '/a/{*.js,*.ts}', '/a/{a.*,b}', '/a/*.{js,ts}', '/a/{b*,c}/c',
  '/a/{?,b}', '/a/{[a-c],x}', '/a/{a,b}{a,b}', '/a/*{a,b}', '/a/{a,b}*', '/a/{@(b|c),x}', '/a/a+', '/a/{b+,a+}',
  '/a/@(b|c)', '/a/@(b)', '/a/@(b|c)/c', '/a/@(foo|bar)', '/a/@(b*|c)', '/a/@(|b)', '/a/?(b)', '/a/?(b)c', '/a/a?(b)', '/a/?(foo)bar', '/a/?(a|b).ts',
  '/a/+(b)', '/a/+(b|c)', '/a/+(ab)', '/a/+(a)b', '/a/+([0-9])', '/a/*(b)', '/a/*(a)b', '/a/*(ab|c)', '/a/+([a-z])', '/a/+(foo|bar)', '/srv/v+([0-9])',
  '/srv/v+([0-9]).+([0-9])', '/srv/v+([0-9]).+([0-9]).+([0-9])', '/srv/v*([0-9.])',
  '/a/!(b)', '/a/!(b|c)', '/a/!(foo)', '/a/!(foo)/bar', '/a/!(foo)bar', '/a/!(b)/**', '/a/!(b)/c', '/a/!(*.d).ts', '/a/!(*.d).js', '/a/*.!(js)', '/a/*.!(ts|js)',
  '/a/!(*b)', '/a/!(?)', '/a/!([0-9])', '/a/a!(b)', '/a/!(a)!(b)', '/home/me/Code/!(evil)', '/home/me/Code/!(evil)/**', '!(a)', '!(*.sln)',
  '!/a', '!/a/*', '!/a/**', '!a', '!*.sln', '!**/a', '!/a/[a-c]', '!/a/?',
  '/a/\\*', '/a/\\[ab\\]', '/a/\\{b,c\\}', '/a/\\(b\\)', '/a/\\!', '/a/\\?', '/a/b\\ c', '/a/\\$b', '/a/\\.b', '/a/\\+', '/a\\/b', '/a/b c', '/a/$b', '/a/^', '/a/!', '/a/@', '/a/é', '/a/É',
  '/a/😀', '/a/a?b', '/a/a??b', '/a/a[^x]b', '/a/a*b', '/a/k', '/a/K', '/a/~', '/a/#', '/a/%', '/a/&', '/a/=', '/a/,', '/a/;', '/a/<', '/a/>', "/a/'", '/a/`',
  '/home/me/Code/personal/**', '/home/me/Code/work/**', '/home/me/Code/{personal,work}/**', '/home/me/Code/*', '/home/*/Code/personal/**', '/home/me/Code/**/x',
  '/home/me/Code/personal*', '/home/me/Code/personal?', '/home/me/[Cc]ode/**', '/home/me/Code/.*/**', '/home/me/**/personal/**', '/home/{me,you}/Code/personal/*',
];

const rootPatternsReadOtherwise = ['/a/**/{b,}', '/a/**/?(b)', '/a/**/!(b)', '/a/**/{*,b}', '/a/**/*(b)', '/a/b.{1..3}'];
const awryPaths = ['/', '/a/', 'a/', '/a//b', '//a', '/a/.', '/a/..', '/a/../b', '/a/./b', '.', '..', './a', '../a', '/a/b\nc', '\n', '/a/\r', '/a/\u2028b'];

const randomRootPatterns = count => {
  const { pick, times } = chooser(29);
  const plain = ['a', 'b', 'ab', 'c', '.', '.ts', '*', '*', '?', '[ab]', '[^a]', '[a-c]', '1', 'A', '\\*', '\\.', '+', '@', '!', '-', ' ', ','];
  const option = () => times(0, 2, () => pick(plain)).join('');
  const group = () => {
    const kind = pick(['{', '{', '@', '?', '+', '*', '!', '..']);
    if (kind === '..') return pick(['{1..3}', '{a..c}']);
    return kind === '{' ? `{${times(2, 3, option).join(',')}}` : `${kind}(${times(1, 3, option).join('|')})`;
  };
  const name = () => times(1, 3, () => (pick([0, 0, 0, 1]) ? group() : pick(plain))).join('');
  const pattern = () => pick(['', '/', '/', '/', '!/']) + times(1, 4, () => pick(['**', name(), name(), name()])).join('/');
  return Array.from({ length: count }, pattern);
};

const root = (pattern, { ignoreCase }) => picomatch(pattern, { dot: true, nocase: ignoreCase ?? false, windows: false });
const signs = ['a', 'b', 'c', '.', '.ts', 'ab', '1', '2', 'A', '[ab]', '*', '!', '+', ' '];

write('picomatch.json', `picomatch ${version('picomatch')}`, [
  table('written', {}, rootPaths, rootPatterns, root),
  table('ignoring case', { ignoreCase: true }, rootPaths, rootPatterns.filter(pattern => /[a-z]/i.test(pattern)), root),
  table('random', {}, randomPaths(60, 31, signs), randomRootPatterns(800), root),
  table('read otherwise', {}, rootPaths, rootPatternsReadOtherwise, root),
  table('awry paths', {}, awryPaths, rootPatterns, root),
]);
