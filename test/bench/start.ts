/**
 * Starts of an installation with many customers and registered phones: when it takes calls, and
 * whether it stands still.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { spread } from './load/figures.ts'
import { numbersOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'starts with many customers and registered extensions: ms until SIP is answered and until ready, CPU, and the longest ' +
  'silence of SIP afterwards; arguments: customers=20000 extensions=100000 nat=0 starts=5; TEST_DATABASE=postgres'

const TENANTS = 200
const ASK_EVERY_MS = 20
const WATCH_MS = 10_000

export async function run(words: readonly string[] = []): Promise<void> {
  const { customers, extensions, nat, starts } = numbersOf(words, {
    customers: 20_000,
    extensions: 100_000,
    nat: 0,
    starts: 5,
  })
  const tollgate = await TollgateProcess.start(seed, { LOG_LEVEL: 'warn', DRAIN_SECONDS: '0' })
  try {
    await tollgate.terminate()
    const hour = Date.now() + 3_600_000
    for (const sql of rowsOf(customers, Math.ceil(extensions / TENANTS), nat === 1))
      tollgate.change(sql.replaceAll('@hour', String(hour)))
    const figures = { answeredMs: [], readyMs: [], cpuMs: [], silentMs: [] } as {
      readonly [name in 'answeredMs' | 'readyMs' | 'cpuMs' | 'silentMs']: number[]
    }
    for (let start = 0; start < starts; start += 1) {
      const probe = await openProbe(tollgate.sipPort)
      const from = performance.now()
      const serving = tollgate.restart()
      figures.answeredMs.push((await probe.answered()) - from)
      await serving
      figures.readyMs.push(performance.now() - from)
      figures.cpuMs.push(cpuMicros([tollgate.pid]) / 1_000)
      figures.silentMs.push(await probe.longestSilenceMs(WATCH_MS))
      probe.close()
      await tollgate.terminate()
    }
    for (const [name, values] of Object.entries(figures))
      console.log(`  ${name}: ${spread(values)}`)
  } finally {
    await tollgate.stop()
  }
}

const seed = {
  rate_plans: [{ name: 'start', currency: 'USD' }],
  tenants: Array.from({ length: TENANTS }, (_, index) => ({
    slug: `start-${index}`,
    domains: [`start-${index}.example`],
  })),
}

const numbered = (name: string, most: number): string =>
  `${name} (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM ${name} WHERE i < ${most})`

/**
 * SQL of both databases. Every source is on loopback: keep-alives of phones behind NAT go there.
 */
const rowsOf = (customers: number, extensionsOfTenant: number, isBehindNat: boolean) => [
  `WITH RECURSIVE ${numbered('n', customers)}
   INSERT INTO customer (name, rate_plan_id, created_at, updated_at)
   SELECT 'start ' || CAST(i AS TEXT), (SELECT id FROM rate_plan WHERE name = 'start'), 0, 0 FROM n`,
  `INSERT INTO wallet (customer_id, currency, updated_at)
   SELECT id, 'USD', 0 FROM customer WHERE name LIKE 'start %'`,
  `INSERT INTO phone_number
     (number, first_number, last_number, digits, customer_id, created_at, updated_at)
   SELECT number, number, number, 11, id, 0, 0
   FROM (SELECT id, '1202' || CAST(1000000 + id AS TEXT) AS number FROM customer
     WHERE name LIKE 'start %') AS numbered`,
  `WITH RECURSIVE ${numbered('n', extensionsOfTenant)}
   INSERT INTO extension (tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, call_recording, created_at, updated_at)
   SELECT tenant_id, domain, CAST(1000 + i AS TEXT), 'Phone ' || CAST(i AS TEXT),
     '${'a'.repeat(32)}', '${'b'.repeat(64)}', 'never', 0, 0
   FROM tenant_domain CROSS JOIN n`,
  `INSERT INTO binding (extension_id, contact, q, call_id, cseq, path, user_agent, source_protocol, source_address,
     source_port, node, registered_at, expires_at)
   SELECT id, 'sip:' || extension || '@${isBehindNat ? '127.9.9.9' : '127.2.'}' ||
       ${isBehindNat ? "''" : "CAST(id / 250 % 250 AS TEXT) || '.' || CAST(id % 250 AS TEXT)"} || ':5066',
     1000, 'call-' || CAST(id AS TEXT), 1, '[]', 'phone', 'udp',
     '127.2.' || CAST(id / 250 % 250 AS TEXT) || '.' || CAST(id % 250 AS TEXT), 5066, 'sbc-1', @hour - 3600000, @hour
   FROM extension`,
]

/** Asks by OPTIONS again and again. */
async function openProbe(port: number) {
  const socket = createSocket('udp4')
  let answeredAt: number[] = []
  socket.on('message', () => answeredAt.push(performance.now()))
  // Nothing listens yet.
  socket.on('error', () => undefined)
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const own = `127.0.0.1:${socket.address().port}`
  let asked = 0
  const ask = (): void => {
    asked += 1
    const id = `start-${asked}`
    const lines = [
      `OPTIONS sip:127.0.0.1:${port} SIP/2.0`,
      `Via: SIP/2.0/UDP ${own};branch=z9hG4bK${id}`,
      'Max-Forwards: 70',
      `From: <sip:probe@${own}>;tag=${id}`,
      `To: <sip:127.0.0.1:${port}>`,
      `Call-ID: ${id}`,
      'CSeq: 1 OPTIONS',
      'Content-Length: 0',
    ]
    socket.send(`${lines.join('\r\n')}\r\n\r\n`, port, '127.0.0.1')
  }
  const timer = setInterval(ask, ASK_EVERY_MS)
  return {
    async answered(): Promise<number> {
      for (;;) {
        const [first] = answeredAt
        if (first !== undefined) return first
        await pause(5)
      }
    },
    async longestSilenceMs(watchMs: number): Promise<number> {
      answeredAt = [performance.now()]
      await pause(watchMs)
      const times = [...answeredAt, performance.now()]
      return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)))
    },
    close(): void {
      clearInterval(timer)
      socket.close()
    },
  }
}
