/**
 * The test files that start the built program. They run on SQLite, and those that are named here with the reason on
 * PostgreSQL as well. `vitest.config.ts` makes its projects of it.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Paths, and what the database makes different. What several nodes do is tried on a server of their own. */
export const onBothDatabases: Readonly<Record<string, string>> = {
  'test/process/denials.test.ts': 'each reason is stored, and read again after a restart',
  'test/process/disk-full.test.ts': 'on a server, only the journal of calls is on the disk',
  'test/process/external-ocs.test.ts': 'records wait in the database, and are charged once',
  'test/process/outlive.test.ts': 'calls are restored, and paid, after a crash',
  'test/process/recovery.test.ts': 'calls that cannot go on are recorded and charged',
  'test/process/secrets.test.ts': 'what is stored holds no secret',
  'test/process/socket-activation.test.ts': 'the next process takes over what the last one holds',
  'test/sipp/inbound.test.ts': 'calls are authorized, charged and stored',
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
