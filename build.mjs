/** Bundles the program into dist/, which starts four times faster than the sources, and the console into dist/console/. */
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const { build } = await import('esbuild').catch(() => {
  console.error('tollgate: the package esbuild is missing: run "npm ci" in the folder of Tollgate')
  process.exit(1)
})

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
  bundle: true,
  platform: 'node',
  format: 'esm',
  sourcemap: true,
  // A megabyte less of comments, some of them not ASCII: V8 keeps such a source as 16-bit characters.
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

const drachtioSrfBeside = {
  name: 'drachtio-srf beside',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^drachtio-srf$/ }, () => ({ path: './drachtio-srf.js', external: true })),
}

await Promise.all([
  // An old Node must be able to run it, to report that it is too old.
  build({
    ...common,
    entryPoints: { main: 'engine/launch.ts' },
    target: 'node14',
    banner: { js: shebang },
  }),
  build({
    ...forNode,
    entryPoints: {
      tollgate: 'engine/main.ts',
      // Each thread needs its own file.
      'report-worker': 'control/reports/report-worker.ts',
      'rate-import-worker': 'control/resources/rate-import-worker.ts',
      'backup-worker': 'engine/backups/backup-worker.ts',
      'recording-worker': 'engine/media/recording/recording-worker.ts',
      'mixer-worker': 'engine/media/spy/mixer-worker.ts',
    },
    // Its binary is a package of its own for each system.
    external: ['@node-rs/argon2'],
    plugins: [drachtioSrfBeside],
  }),
  // A file of its own, which few need.
  build({ ...forNode, entryPoints: ['drachtio-srf'] }),
  build({
    ...common,
    entryPoints: { 'client/index': 'control/client/index.ts' },
    platform: 'neutral',
    target: 'es2022',
    sourcemap: false,
  }),
  buildConsole('dist/console'),
])
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
  cpSync(`${folderOf('swagger-ui-dist')}/${name}`, `dist/docs/${name}`)
cpSync(`${folderOf('better-sqlite3')}/prebuilds`, 'dist/prebuilds', { recursive: true })

function folderOf(name) {
  return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
}

/** The page, the guide, and their assets with hashes in their names, compressed once instead of for each request. */
async function buildConsole(folder) {
  const { outputFiles } = await build({
    entryPoints: {
      console: 'control/console/web/main.tsx',
      guide: 'control/console/web/guide.ts',
    },
    loader: { '.svg': 'file' },
    assetNames: '[name]-[hash]',
    outdir: `${folder}/assets`,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
  })
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(`${folder}/assets`, { recursive: true })
  for (const { path, contents } of outputFiles) {
    writeCompressed(path, contents)
  }
  const nameOf = (pattern) =>
    outputFiles.map(({ path }) => basename(path)).find((name) => pattern.test(name))
  const page = (script) => (content) =>
    consolePage(content, nameOf(script), nameOf(/\.css$/), nameOf(/\.svg$/))
  writeFileSync(`${folder}/index.html`, page(/^console.*\.js$/)(consoleContent))
  const guide = guidePage(readFileSync('GUIDE.md', 'utf8'), page(/^guide.*\.js$/))
  writeCompressed(`${folder}/guide.html`, Buffer.from(guide))
}

function writeCompressed(path, contents) {
  const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: contents.length } }
  writeFileSync(path, contents)
  writeFileSync(`${path}.br`, brotliCompressSync(contents, brotli))
  writeFileSync(`${path}.gz`, gzipSync(contents, { level: 9 }))
}

function consolePage({ title, body }, script, style, icon) {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title}</title>
    <link rel="icon" href="/console/assets/${icon}" />
    <link rel="stylesheet" href="/console/assets/${style}" />
    <script type="module" src="/console/assets/${script}"></script>
  </head>
  <body>
    ${body}
  </body>
</html>
`
}

chmodSync('dist/main.js', 0o755)
