/**
 * The test files that start the built program. Each runs on SQLite and on PostgreSQL, but for those that are named here
 * with the reason. `vitest.config.ts` makes its projects of it.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const reasons = {
  copy: 'is about copies of a database file: a server is copied by its own tools',
  'own nodes': 'starts several nodes on a PostgreSQL database of its own, whatever the run is on',
  demo: 'runs the demo, which makes its databases itself: a file, and with --nodes one on a server',
  elsewhere:
    'has the SIP server in another process, which is refused beside a database on a server',
  hep: 'is about what leaves for a HEP server, before anything is stored',
  install: 'is about what is installed and started, not about what is stored',
  'no database': 'is about what happens before a database is opened',
} as const

/** Paths, and why the run on one database shows everything. */
export const onOneDatabase: Readonly<Record<string, string>> = {
  'test/baresip/nodes.test.ts': reasons['own nodes'],
  'test/console/now.test.ts': reasons.demo,
  'test/console/platform-nodes.test.ts': reasons['own nodes'],
  'test/kamailio/dispatcher.test.ts': reasons['own nodes'],
  'test/process/container.test.ts': reasons.install,
  'test/process/demo.test.ts': reasons.demo,
  'test/process/drachtio-server.test.ts': reasons.elsewhere,
  'test/kamailio/hep.test.ts': reasons.hep,
  'test/process/hep.test.ts': reasons.hep,
  'test/process/launch.test.ts': reasons['no database'],
  'test/process/failover.test.ts': reasons['own nodes'],
  'test/process/node-failures.test.ts': reasons['own nodes'],
  'test/process/node-limits.test.ts': reasons['own nodes'],
  'test/process/node-restarts.test.ts': reasons['own nodes'],
  'test/process/nodes.test.ts': reasons['own nodes'],
  'test/process/package.test.ts': reasons.install,
  'test/process/restore.test.ts': reasons.copy,
  'test/sipp/incidents.test.ts': reasons.demo,
}

/** What runs `dist/main.js`. */
const starters = ['test/support/tollgate-process.ts', 'test/process/program.ts']

export const programTests: readonly string[] = globSync('test/**/*.test.ts')
  .filter(
    (file) =>
      readFileSync(file, 'utf8').includes('dist/main.js') ||
      [...loadedBy(file)].some((module) => starters.includes(module)),
  )
  .toSorted()

/** The modules below `test` that are loaded with a file; types are not loaded. */
function loadedBy(file: string, found = new Set<string>()): ReadonlySet<string> {
  const imports = /^(?:import|export)\s+(?!type\b)(?:[^;']*?from )?'(\.[^']+)'/gm
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(imports)) {
    const module = join(dirname(file), name)
    if (found.has(module) || !module.startsWith('test/') || !existsSync(module)) continue
    found.add(module)
    if (module.endsWith('.ts')) loadedBy(module, found)
  }
  return found
}
