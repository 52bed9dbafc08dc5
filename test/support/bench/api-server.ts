/**
 * The API as the bench drives it, in a process of its own: prints its port and keys as one line of
 * JSON, and its CPU time in microseconds for every line that it reads.
 */
import { createInterface } from 'node:readline'
import { randomBytes } from 'node:crypto'
import { createKey } from '../../../control/auth/first-access.ts'
import type { ControlDeps } from '../../../control/deps.ts'
import { startControl } from '../../../control/server.ts'
import { migrate } from '../../../schema/migrate.ts'
import { openDatabase } from '../../../schema/open.ts'
import { testEngine } from '../control.ts'

const KEYS = 64

const store = openDatabase(process.argv[2] ?? ':memory:')
migrate(store.sqlite, Date.now())
const deps: ControlDeps = {
  store,
  engine: testEngine(),
  now: Date.now,
  randomBytes,
  log: (level, message, fields) => process.stderr.write(`${level} ${message} ${String(fields)}\n`),
  version: 'bench',
  settings: { jwtSecret: undefined },
}
const tokens = Array.from({ length: KEYS }, (_, index) => {
  const result = createKey(deps, { name: `bench ${index}`, scopes: ['*:read'] })
  if (result.kind === 'refused') throw new Error(result.problem)
  return result.value
})
// No bench request shall meet a limit; the window is kept as exactly as any other.
store.sqlite.exec('UPDATE application_key SET rate_limit_rpm = 100000')

const anyPort = { host: '127.0.0.1', port: 0 }
const server = await startControl(deps, {
  api: anyPort,
  edge: anyPort,
  every: (intervalMs, work) => {
    const timer = setInterval(work, intervalMs)
    return () => clearInterval(timer)
  },
})
process.stdout.write(`${JSON.stringify({ port: server.api.port, tokens })}\n`)

createInterface({ input: process.stdin })
  .on('line', () => {
    const { user, system } = process.cpuUsage()
    process.stdout.write(`${user + system}\n`)
  })
  .on('close', () => void server.stop())
