/**
 * Charging over HTTP as nodes ask for it: authorize, then the record of the same call, over keep-alive
 * connections to a started process. What counts is that process's own CPU time.
 */
import { openConnection, requestText, type Connection } from '../support/http-connection.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'authorize and CDR over HTTP per CPU-second of the process; arguments: calls=20000 rates=1000'

const connections = 32
const customers = 100

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const calls = Number(options.get('calls') ?? 20_000)
  const tollgate = await TollgateProcess.start(seed(Number(options.get('rates') ?? 1_000)), {
    LOG_LEVEL: 'warn',
  })
  try {
    const token = await tollgate.createKey('--name', 'node', '--scopes', 'ocs')
    const clients = await Promise.all(
      Array.from({ length: connections }, () => openConnection(tollgate.apiPort)),
    )
    // The first calls are compiled while they run: they belong to no figure.
    for (const ask of [authorize, report]) await drive(clients, 5_000, ask(token, 'warm'))
    await measure('authorize', tollgate.pid, calls, () =>
      drive(clients, calls, authorize(token, 'call')),
    )
    await measure('cdr', tollgate.pid, calls, () => drive(clients, calls, report(token, 'call')))
    for (const { socket } of clients) socket.destroy()
    await checkBooks(tollgate, calls + 5_000)
  } finally {
    await tollgate.stop()
  }
}

const callerOf = (index: number): string => `1555${1_000 + (index % customers)}`

type Ask = (index: number) => Buffer

const authorize =
  (token: string, name: string): Ask =>
  (index) =>
    Buffer.from(
      requestText(
        'GET',
        `/api/ocs/authorize?caller=${callerOf(index)}&callee=49${1_000 + (index % 1_000)}&call_uuid=${name}-${index}`,
        token,
      ),
    )

const report =
  (token: string, name: string): Ask =>
  (index) => {
    const body = JSON.stringify({
      call_uuid: `${name}-${index}`,
      caller: callerOf(index),
      callee: `49${1_000 + (index % 1_000)}`,
      billsec: 42,
    })
    const head = requestText('POST', '/api/ocs/cdr', token).trimEnd()
    const bodyHead = `Content-Type: application/json\r\nContent-Length: ${body.length}`
    return Buffer.from(`${head}\r\n${bodyHead}\r\n\r\n${body}`)
  }

/** Every connection asks again as soon as it is answered. */
async function drive(clients: readonly Connection[], count: number, ask: Ask): Promise<void> {
  let next = 0
  await Promise.all(
    clients.map(async (connection) => {
      while (next < count) {
        const index = next
        next += 1
        connection.write(ask(index))
        const { status, body } = await connection.answer()
        if (status !== 200) throw new Error(`${status} ${body}`)
      }
    }),
  )
}

async function measure(
  name: string,
  pid: number,
  count: number,
  work: () => Promise<void>,
): Promise<void> {
  const [startedAt, before] = [performance.now(), cpuMicros([pid])]
  await work()
  const micros = cpuMicros([pid]) - before
  const perSecond = (count / (performance.now() - startedAt)) * 1_000
  console.log(
    `  ${name.padEnd(10)} ${round((count / micros) * 1e6)} per CPU-second, ` +
      `${(micros / count).toFixed(0)} µs each, ${round(perSecond)}/s by the clock (driver beside it)`,
  )
}

async function checkBooks(tollgate: TollgateProcess, calls: number): Promise<void> {
  await tollgate.run(['check'])
  const [row] = tollgate.query<{ debits: number }>(
    `SELECT count(*) AS debits FROM ledger_entry WHERE kind = 'debit'`,
  )
  const isRight = row?.debits === calls
  console.log(`  ${row?.debits} debits for ${calls} calls, books ${isRight ? 'right' : '← WRONG'}`)
}

const round = (value: number): string => Math.round(value).toLocaleString('en')

const seed = (rates: number): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: Array.from({ length: rates }, (_, index) => ({
    rate_plan: 'load',
    prefix: `49${1_000 + index}`,
    rate_per_minute: '0.01',
  })),
  customers: Array.from({ length: customers }, (_, index) => ({
    name: `customer ${index}`,
    rate_plan: 'load',
    numbers: [callerOf(index)],
    balance: '1000000.00',
  })),
})
