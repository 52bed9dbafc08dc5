/**
 * The money after power cuts. Under a load of calls the process is killed with SIGKILL at random
 * moments and started again on the same database; after each start the callers' own notes are held
 * against records, wallet and ledger.
 */
import { seededRandom } from '../support/seeded-random.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { startNode } from './load/sipp-load.ts'
import { UdpCallers } from './load/udp-callers.ts'

export const describe =
  'kill -9 at random moments under load, books checked; arguments: rounds=20 rate=200 seed=1'

const caller = '15550001111'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rounds = Number(options.get('rounds') ?? 20)
  const rate = Number(options.get('rate') ?? 200)
  const seed = Number(options.get('seed') ?? 1)
  const random = seededRandom(seed)
  const node = await startNode()
  const tollgate = await TollgateProcess.start(seedFor(node.port), {
    LOG_LEVEL: 'warn',
    DRAIN_SECONDS: '1',
  })
  const callers = await UdpCallers.open(tollgate.sipPort, caller, random)
  const totals: Totals = { answered: new Set(), wrong: 0 }
  try {
    for (let round = 1; round <= rounds; round++) {
      callers.start(rate)
      await pause(500 + random() * 2_500)
      const killing = tollgate.kill()
      const killedAt = performance.now()
      callers.stop()
      await killing
      await tollgate.restart()
      compare(tollgate, callers, killedAt, totals)
    }
    // Their callers say nothing any more: the stop ends the calls that go on.
    await tollgate.terminate()
    compareEnds(tollgate, totals)
    report(tollgate, callers, totals, { rounds, seed })
  } finally {
    callers.close()
    await tollgate.stop()
    await node.stop()
  }
}

interface Totals {
  /** Call-IDs. */
  readonly answered: Set<string>
  wrong: number
}

/** By Call-ID: records of answered calls. */
const recordsOf = (tollgate: TollgateProcess): ReadonlyMap<string, number> =>
  new Map(
    tollgate
      .query<{ id: string; records: number }>(
        `SELECT call_id AS id, count(*) AS records FROM cdr WHERE disposition = 'ANSWERED' GROUP BY 1`,
      )
      .map(({ id, records }) => [id, records]),
  )

/** The callers' notes of the last round against what is stored: a call has one record, or goes on. */
function compare(
  tollgate: TollgateProcess,
  callers: UdpCallers,
  killedAt: number,
  totals: Totals,
): void {
  const records = recordsOf(tollgate)
  const open = new Set(tollgate.openCalls().map((call) => call.call_id))
  for (const [callId, answeredAt] of callers.answered) {
    const age = killedAt - answeredAt
    const count = (records.get(callId) ?? 0) + (open.has(callId) ? 1 : 0)
    totals.answered.add(callId)
    if (count === 1) continue
    totals.wrong += 1
    console.log(`  ${callId}: ${count} times, answered ${age.toFixed(0)} ms before the end ← WRONG`)
  }
  callers.forget()
  checkBooks(tollgate, totals)
}

/** After the stop, which has ended what went on: each call of all rounds has one record. */
function compareEnds(tollgate: TollgateProcess, totals: Totals): void {
  const records = recordsOf(tollgate)
  const wrong = [...totals.answered].filter((callId) => records.get(callId) !== 1)
  const open = tollgate.openCalls()
  totals.wrong += wrong.length + open.length
  for (const callId of wrong)
    console.log(`  ${callId}: ${records.get(callId) ?? 0} records ← WRONG`)
  if (open.length > 0) console.log(`  ${open.length} calls left in the journal ← WRONG`)
  checkBooks(tollgate, totals)
}

function checkBooks(tollgate: TollgateProcess, totals: Totals): void {
  const problems = tollgate.query<object>(booksProblems)
  totals.wrong += problems.length
  for (const problem of problems) console.log(`  ${JSON.stringify(problem)} ← WRONG`)
}

/** One row for everything in the books that does not add up. */
const booksProblems = `
  SELECT 'balance is not the sum of the ledger' AS what, w.id AS id FROM wallet w
  WHERE w.balance_micros <> (SELECT sum(amount_micros) FROM ledger_entry WHERE wallet_id = w.id)
  UNION ALL
  SELECT 'record without its debit', c.call_uuid FROM cdr c
  WHERE c.cost_micros > 0 AND NOT EXISTS (
    SELECT 1 FROM ledger_entry l
    WHERE l.kind = 'debit' AND l.ref = c.call_uuid AND l.amount_micros = -c.cost_micros)
  UNION ALL
  SELECT 'debit without its record', l.ref FROM ledger_entry l
  WHERE l.kind = 'debit' AND NOT EXISTS (SELECT 1 FROM cdr c WHERE c.call_uuid = l.ref)
  UNION ALL
  SELECT 'answered for a second or more, and free', c.call_uuid FROM cdr c
  WHERE c.billsec > 0 AND c.cost_micros <> c.billsec * 10000`

function report(
  tollgate: TollgateProcess,
  callers: UdpCallers,
  totals: Totals,
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
): void {
  const [row] = tollgate.query<{ answered: number; recovered: number }>(
    `SELECT count(*) AS answered, sum(is_recovered) AS recovered
     FROM cdr WHERE disposition = 'ANSWERED'`,
  )
  const { balance, ledger, debits } = tollgate.wallet('load')
  console.log(
    `  ${rounds} kills, seed ${seed}: ${callers.placed} calls placed, ${row?.answered} answered records, ${row?.recovered} of them closed by a start`,
  )
  console.log(
    `  ${debits} debits, balance ${balance / 1e6} = ledger ${ledger / 1e6}: ${balance === ledger}`,
  )
  console.log(
    totals.wrong === 0 ? '  nothing missing, nothing doubled' : `  ${totals.wrong} faults ← WRONG`,
  )
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const seedFor = (nodePort: number): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
  customers: [{ name: 'load', rate_plan: 'load', numbers: [caller], balance: '1000000.00' }],
  dispatcher: [
    {
      endpoint_name: 'load',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '127.0.0.1', internal_port: nodePort }],
    },
  ],
})
