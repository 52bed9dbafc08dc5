/**
 * Makes the client library: `operations.ts` from the OpenAPI document, then dist/client. The
 * document is that of the API in a test, which needs no port, no file and no settings.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// After `npm ci --omit=dev` there is nothing to make it with, and nobody who needs it.
const { build } = await import('esbuild').catch(() => process.exit(0))
const { clientOperations } = await import('../../test/support/client-operations.ts')
const { openControl } = await import('../../test/support/control.ts')
const { documentOf } = await import('../../test/support/documented.ts')

const folder = import.meta.dirname
const control = await openControl()
writeIfChanged(join(folder, 'operations.ts'), clientOperations(documentOf(control.app).document))
await control.close()

await build({
  entryPoints: [join(folder, 'index.ts')],
  outfile: join(folder, '../../dist/client/index.js'),
  bundle: true,
  platform: 'neutral',
  format: 'esm',
  target: 'es2022',
  minifyWhitespace: true,
  lineLimit: 160,
})

/** Whoever reads the file meanwhile, such as the compiler, finds it whole. */
function writeIfChanged(path, text) {
  try {
    if (readFileSync(path, 'utf8') === text) return
  } catch {
    // It is not there yet.
  }
  writeFileSync(path, text)
}
