/** Bundles the program into dist/main.js: it starts four times faster than the sources do. */
import { chmodSync } from 'node:fs'
import { build } from 'esbuild'

await build({
  entryPoints: {
    main: 'engine/main.ts',
    // A thread needs a file of its own.
    'report-worker': 'control/pbx/reports/report-worker.ts',
  },
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  sourcemap: true,
  // Native addons cannot be bundled, and pino looks for files beside itself.
  external: ['better-sqlite3', '@node-rs/argon2', 'pino'],
  banner: {
    // drachtio-srf and what it needs are CommonJS and require Node's modules.
    js: [
      '#!/usr/bin/env node',
      "import { createRequire as requireFrom } from 'node:module'",
      'const require = requireFrom(import.meta.url)',
    ].join('\n'),
  },
})

chmodSync('dist/main.js', 0o755)
