import { mkdtempSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { afterAll } from 'vitest'

/** Where packages that are not bundled are found. */
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

/**
 * The source of a thread as JavaScript. Node removes types by WebAssembly, and when a thread of a
 * process with others does so, V8 sometimes ends the process with "Check failed:
 * jit_page.has_value()" (nodejs/node#64500).
 */
export async function threadFile(source: URL): Promise<URL> {
  const folder = mkdtempSync(join(modules, '.thread-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const entry = fileURLToPath(source)
  const outfile = join(folder, `${basename(entry, '.ts')}.mjs`)
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node22',
    sourcemap: 'inline',
  })
  return pathToFileURL(outfile)
}
