/** Phones that register with digest at a whole Tollgate: CPU of its process, measured from outside. */
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { freshDatabase } from '../support/postgres.ts'
import { RegisteringPhones } from '../support/bench/registering-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'registrar: CPU µs per REGISTER with digest, and its response time; load of 5,000 phones that expire after 60 s; database=postgres'

const phones = 5_000
const domain = 'acme.example'
const steadySeconds = 20
const idleSeconds = 5
/** Phones that wait for an answer, as after a power cut: the registrar works in batches of 100. */
const atOnce = 200
/** Each phone refreshes when 50 of its 60 s are over. */
const refreshesPerSecond = phones / 50

/** A PostgreSQL of the tests does not wait for its disk; one with its usual settings is named by `TEST_DATABASE_URL`. */
async function openDatabase(words: readonly string[]) {
  if (!words.includes('database=postgres')) return undefined
  const { url, drop } = await freshDatabase()
  const statements = new PostgresStatements({ url })
  return {
    environment: { DATABASE_URL: url, SECRET_KEY: 'A'.repeat(43), NODE_NAME: 'bench' },
    countBindings: async () =>
      (await statements.prepare('SELECT extension_id FROM binding').all([])).length,
    close: async () => {
      await statements.close()
      await drop()
    },
  }
}

export async function run(words: readonly string[]): Promise<void> {
  const database = await openDatabase(words)
  const users = Array.from({ length: phones }, (_, index) => String(10_000 + index))
  const tollgate = await TollgateProcess.start(
    {
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions: users.map((extension) => ({
        tenant: 'acme',
        extension,
        password: `secret-${extension}`,
        display_name: extension,
      })),
    },
    { LOG_LEVEL: 'warn', ...database?.environment },
  )
  const table = await RegisteringPhones.open(tollgate.sipPort, domain, users, 60)
  const idleCpu = async (what: string): Promise<void> => {
    const before = cpuMicros([tollgate.pid])
    await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1_000))
    const share = (cpuMicros([tollgate.pid]) - before) / idleSeconds / 1e4
    console.log(`  ${what.padEnd(34)} ${share.toFixed(1)} % of a core`)
  }
  const measured = async (what: string, work: () => Promise<void>): Promise<void> => {
    const before = { cpu: cpuMicros([tollgate.pid]), sent: table.sent, at: performance.now() }
    await work()
    const seconds = (performance.now() - before.at) / 1_000
    const cpu = cpuMicros([tollgate.pid]) - before.cpu
    const requests = table.sent - before.sent
    const times = table.takeTimesMs()
    console.log(
      `  ${what.padEnd(34)} ${(cpu / requests).toFixed(0).padStart(4)} µs per REGISTER  ` +
        `${(requests / seconds).toFixed(0).padStart(5)}/s  ` +
        `${((cpu / seconds / 1e6) * 100).toFixed(1)} % of a core  ` +
        `response p50 ${shareOf(times, 0.5)} p99 ${shareOf(times, 0.99)} ms`,
    )
  }
  try {
    await idleCpu('no phones registered')
    await measured('5,000 phones: challenge and answer', () => table.registerAll(atOnce))
    await measured('the same again, with their nonces', () => table.registerAll(atOnce))
    await measured(`steady, ${refreshesPerSecond} refreshes a second`, () =>
      table.refresh(refreshesPerSecond, steadySeconds),
    )
    const stored = database
      ? await database.countBindings()
      : tollgate.query('SELECT extension_id FROM binding').length
    console.log(`  accepted ${table.accepted}, refused ${table.failed}, stored bindings ${stored}`)
  } finally {
    table.close()
    await tollgate.stop()
    await database?.close()
  }
}

const shareOf = (ascending: readonly number[], share: number): string =>
  (ascending[Math.floor(share * (ascending.length - 1))] ?? 0).toFixed(1)
