/** Builds the package into dist/: the library and the program in JavaScript, and the types. */
import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const folder = dirname(fileURLToPath(import.meta.url))
const require = createRequire(import.meta.url)
process.chdir(folder)
rmSync('dist', { recursive: true, force: true })

await build({
  entryPoints: ['index.ts', 'bin.ts'],
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  external: ['ws', 'sax', 'sip-status'],
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
})
chmodSync('dist/bin.js', 0o755)

const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc')
const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.json'], {
  stdio: 'inherit',
})
if (status !== 0) throw new Error('the types cannot be built')
