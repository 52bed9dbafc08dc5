/**
 * Bundles the program into dist/, which starts four times faster than the sources, and the console
 * into dist/console/. A Tollgate that runs from this folder never notices (D321): it has files of
 * dist/ mapped, and starts threads from it.
 */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const { build } = await import('esbuild').catch(() => {
  console.error('tollgate: the package esbuild is missing: run "npm ci" in the folder of Tollgate')
  process.exit(1)
})

const { generalScreens } = await import('./control/resources/general-screens.ts')
const { guidePage } = await import('./control/console/guide-page.mjs')

const consoleContent = {
  title: 'Tollgate',
  body: `<div id="app"></div>
<noscript>
  <p>The console needs JavaScript. <a href="/guide">Guide</a>, <a href="/docs">API reference</a>,
  <a href="/openapi.json">openapi.json</a>, <a href="/readyz">readyz</a></p>
</noscript>`,
}

const common = {
  outdir: 'dist',
  write: false,
  bundle: true,
  platform: 'node',
  format: 'esm',
  sourcemap: true,
  // A megabyte less of comments, some of them not ASCII: V8 keeps such a source as 16-bit
  // characters.
  minifyWhitespace: true,
  lineLimit: 160,
}
const shebang = '#!/usr/bin/env node'
const forNode = {
  ...common,
  target: 'node22',
  banner: {
    // Some dependencies are CommonJS and require Node's modules.
    js: [
      "import { createRequire as requireFrom } from 'node:module'",
      'const require = requireFrom(import.meta.url)',
      "const folderOfPackage = import.meta.dirname + '/lib'",
    ].join('\n'),
  },
  // better-sqlite3 looks for its binary in `../prebuilds`: dist/prebuilds has those of all systems.
  define: { __dirname: 'folderOfPackage' },
}

/** Program and test kit share these, and load them only where they are needed. */
const sharedFiles = {
  name: 'shared files',
  setup({ onResolve }) {
    const beside = (filter, path) => onResolve({ filter }, () => ({ path, external: true }))
    beside(/^drachtio-srf$/, './drachtio-srf.js')
    beside(/\/certificate-facts\.ts$/, './certificate-facts.js')
  },
}

/**
 * Each thread needs its own file, with a hash in its name: a server starts the threads of its own
 * build.
 */
const threads = await build({
  ...forNode,
  entryPoints: {
    'report-worker': 'control/reports/report-worker.ts',
    'rate-import-worker': 'control/resources/rate-import-worker.ts',
    'backup-worker': 'engine/backups/backup-worker.ts',
    'checkpoint-worker': 'schema/sqlite/checkpoint-worker.ts',
    'recording-worker': 'engine/media/recording/recording-worker.ts',
    'mixer-worker': 'engine/media/spy/mixer-worker.ts',
    'hook-worker': 'engine/hooks/hook-worker.ts',
  },
  entryNames: '[name]-[hash]',
  // What several of them need is there once.
  splitting: true,
  chunkNames: 'shared-[hash]',
  // Its binary is a package of its own for each system.
  external: ['@node-rs/argon2'],
  plugins: [sharedFiles],
})
const [launcher, program, library, consoleFiles] = await Promise.all([
  // An old Node must be able to run it, to report that it is too old.
  build({
    ...common,
    entryPoints: { main: 'engine/launch.ts' },
    target: 'node14',
    banner: { js: shebang },
  }),
  // What both need is there once.
  build({
    ...forNode,
    entryPoints: { tollgate: 'engine/main.ts', testing: 'engine/testing/index.ts' },
    splitting: true,
    chunkNames: 'shared-[hash]',
    external: ['@node-rs/argon2'],
    plugins: [sharedFiles],
  }),
  // Files of their own, which few need.
  build({
    ...forNode,
    entryPoints: {
      'drachtio-srf': 'drachtio-srf',
      'certificate-facts': 'engine/stir/certificate-facts.ts',
    },
  }),
  buildConsole('dist/console'),
])

/** Files of dist/ of this build. What names others comes after them. */
const current = new Set()
for (const { path, contents } of [threads, library].flatMap((each) => each.outputFiles))
  install(path, contents)
install('dist/docs/grafana-dashboard.json', readFileSync('control/grafana-dashboard.json'))
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
  install(`dist/docs/${name}`, readFileSync(`${folderOf('swagger-ui-dist')}/${name}`))
// Types alone: `import type { Hooks } from 'tollgate'`.
install('dist/hooks.d.ts', readFileSync('schema/contracts/hooks.ts'))
const testKitTypes = readFileSync('engine/testing/published.ts', 'utf8')
install(
  'dist/testing.d.ts',
  Buffer.from(testKitTypes.replace('../../schema/contracts/hooks.ts', './hooks.js')),
)
const prebuilds = `${folderOf('better-sqlite3')}/prebuilds`
for (const name of filesIn(prebuilds))
  install(`dist/prebuilds/${name}`, readFileSync(join(prebuilds, name)))
for (const [path, contents] of consoleFiles) install(path, contents)
const threadNames = threads.outputFiles
  .map(({ path }) => basename(path))
  .filter((name) => /^(?!shared-).*\.js$/.test(name))
/** Threads that some file of the program starts. */
const started = new Set()
const [entries, chunks] = parted(program.outputFiles, ({ path }) => !/shared-/.test(path))
for (const { path, contents } of [...chunks, ...entries])
  install(path, path.endsWith('.js') ? withThreadNames(contents) : contents)
for (const name of threadNames)
  if (!started.has(name)) throw new Error(`nothing starts the thread ${name}`)
for (const { path, contents } of launcher.outputFiles)
  install(path, contents, path.endsWith('.js') ? 0o755 : undefined)
removeEarlier()

/**
 * A file that is equal stays; any other gets another inode: what has the old one mapped or open
 * goes on with it.
 */
function install(path, contents, mode = 0o644) {
  const place = path.slice(path.lastIndexOf('dist/'))
  current.add(place)
  if (isEqual(place, contents)) return
  mkdirSync(dirname(place), { recursive: true })
  const next = `${place}.new-${process.pid}`
  writeFileSync(next, contents, { mode })
  renameSync(next, place)
}

function isEqual(path, contents) {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return size === contents.length && readFileSync(path).equals(contents)
}

function parted(items, isFirst) {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
}

function withThreadNames(contents) {
  let text = Buffer.from(contents).toString()
  for (const name of threadNames) {
    const plain = `./${name.replace(/-[^-]+$/, '')}.js`
    // `lineLimit` may break a line inside of the name, which JavaScript reads as one.
    const broken = [...plain.replaceAll('.', '\\.').matchAll(/\\?./g)].join('(\\\\\n)?')
    const found = new RegExp(broken, 'g')
    if (text.search(found) >= 0) started.add(name)
    text = text.replaceAll(found, (all) => `./${name}${all.includes('\n') ? '\\\n' : ''}`)
  }
  return Buffer.from(text)
}

/**
 * Threads, what they share, and assets of earlier builds stay for a while: for servers that run, and
 * for pages that are open. The package is without them. The time of such a file is that of the first build without
 * it.
 */
function removeEarlier() {
  const day = 24 * 60 * 60 * 1_000
  const list = 'dist/.npmignore'
  const known = new Set(linesOf(list))
  const isOfBuild = /^(?:[a-z-]+-worker(?:-\w+)?|shared-\w+)\.js$/
  const earlier = filesIn('dist').filter(
    (name) =>
      !current.has(`dist/${name}`) && (isOfBuild.test(name) || name.startsWith('console/assets/')),
  )
  const now = new Date()
  const kept = earlier.filter((name) => {
    const path = `dist/${name}`
    if (!known.has(`/${name}`)) utimesSync(path, now, now)
    const keptMs = (name.startsWith('console/') ? 2 : 60) * day
    if (now - statSync(path).mtimeMs < keptMs) return true
    rmSync(path, { force: true })
    return false
  })
  for (const name of filesIn('dist'))
    if (name.endsWith('.map') && isOfBuild.test(name.slice(0, -4)) && !current.has(`dist/${name}`))
      rmSync(`dist/${name}`, { force: true })
  install(list, Buffer.from(['*.new-*', ...kept.map((name) => `/${name}`), ''].join('\n')))
}

function linesOf(path) {
  try {
    return readFileSync(path, 'utf8').split('\n')
  } catch {
    return []
  }
}

/** Paths of all files in a folder, relative to it. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
}

function folderOf(name) {
  return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
}

/**
 * The page, the guide, and their assets with hashes in their names, compressed once instead of for
 * each request.
 */
async function buildConsole(folder) {
  const { outputFiles, metafile } = await build({
    entryPoints: {
      console: 'control/console/web/main.tsx',
      guide: 'control/console/web/guide.ts',
    },
    loader: { '.svg': 'file' },
    assetNames: '[name]-[hash]',
    outdir: `${folder}/assets`,
    entryNames: '[name]-[hash]',
    // Each screen, its forms and its charts are loaded when they are opened.
    splitting: true,
    chunkNames: 'part-[hash]',
    metafile: true,
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    define: { GENERAL_SCREENS: JSON.stringify(generalScreens()) },
  })
  const files = outputFiles.flatMap(({ path, contents }) => compressed(path, contents))
  const nameOf = (pattern) =>
    outputFiles.map(({ path }) => basename(path)).find((name) => pattern.test(name))
  /** A script that `isWanted` finds, and what it imports at once. */
  const scriptsOf = (isWanted) => {
    const [path, { imports }] = Object.entries(metafile.outputs).find(isWanted)
    const atOnce = imports.filter(({ kind }) => kind === 'import-statement')
    return [path, ...atOnce.map((each) => each.path)].map((each) => basename(each))
  }
  const named = (pattern) => scriptsOf(([path]) => pattern.test(basename(path)))
  const page = (scripts) => (content) =>
    consolePage(content, [...new Set(scripts)], nameOf(/\.css$/), nameOf(/\.svg$/))
  const guide = guidePage(readFileSync('GUIDE.md', 'utf8'), page(named(/^guide.*\.js$/)))
  files.push(...compressed(`${folder}/guide.html`, Buffer.from(guide)))
  const frame = named(/^console.*\.js$/)
  const screens = scriptsOf(([, { entryPoint }]) => entryPoint?.endsWith('/all-screens.tsx'))
  const pageFile = (name, scripts) => [
    `${folder}/${name}.html`,
    Buffer.from(page(scripts)(consoleContent)),
  ]
  // Who has signed in wants screens: they come beside the frame, instead of behind it. The index
  // comes last: with it, everything is there.
  return [...files, pageFile('signed-in', [...frame, ...screens]), pageFile('index', frame)]
}

function compressed(path, contents) {
  const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: contents.length } }
  return [
    [`${path}.br`, brotliCompressSync(contents, brotli)],
    [`${path}.gz`, gzipSync(contents, { level: 9 })],
    [path, contents],
  ]
}

function consolePage({ title, body }, [script, ...parts], style, icon) {
  const preloads = parts.map(
    (part) => `\n    <link rel="modulepreload" href="/console/assets/${part}" />`,
  )
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title}</title>
    <link rel="icon" href="/console/assets/${icon}" />
    <link rel="stylesheet" href="/console/assets/${style}" />
    <script type="module" src="/console/assets/${script}"></script>${preloads.join('')}
  </head>
  <body>
    ${body}
  </body>
</html>
`
}
