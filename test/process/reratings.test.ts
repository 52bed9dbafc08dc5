/** A re-rating of calls in a program that is killed in the middle of it, again and again. */
import { expect, onTestFinished, test } from 'vitest'
import { toColumns } from '../../schema/records/stored-record.ts'
import { answeredCall } from '../support/report-rig.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

const calls = 12_000
const customers = ['one', 'two', 'three'] as const

interface Job {
  readonly id: number
  readonly state: string
  readonly done: number
  readonly changed: number
  readonly restored: number
}

const seed = {
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  rates: [{ rate_plan: 'retail', prefix: '49', rate_per_minute: '0.03', increment: 1 }],
  customers: customers.map((name) => ({ name, rate_plan: 'retail', balance: '100.00' })),
}

/** Minutes that were sold at 0.06 and cost 0.03 now. */
async function withCalls() {
  const tollgate = await TollgateProcess.start(seed)
  onTestFinished(() => tollgate.stop())
  const key = await tollgate.createKey('--name', 'books', '--scopes', '*')
  const api = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const { data } = (await answer.json()) as { readonly data?: unknown }
    return data ?? answer.status
  }
  const yesterday = Date.now() - 86_400_000
  const record = toColumns(
    {
      ...answeredCall,
      calledNumber: '4930100',
      startedAt: yesterday,
      answeredAt: yesterday,
      endedAt: yesterday + 60_000,
      billsec: 60,
      customerId: 1,
      ratePrefix: '49',
    },
    { costMicros: 60_000, currency: 'USD' },
  )
  const columns = Object.keys(record)
  const others = ['call_uuid', 'customer_id']
  tollgate.change(
    `WITH RECURSIVE n(call) AS (VALUES (1) UNION ALL SELECT call + 1 FROM n WHERE call < ${calls})
     INSERT INTO cdr (${columns.filter((name) => !others.includes(name)).join()}, ${others.join()})
     SELECT ${columns
       .filter((name) => !others.includes(name))
       .map(() => '?')
       .join()}, printf('00000000-0000-4000-9000-%012d', call), 1 + call % ${customers.length}
     FROM n`,
    ...Object.entries(record).flatMap(([name, value]) => (others.includes(name) ? [] : [value])),
  )
  const from = new Date(yesterday - 1_000).toISOString()
  const order = { kind: 'sold', rate_plan: 'retail', from, to: new Date().toISOString() }
  const job = () => api('GET', '/rates/reratings/1') as Promise<Job>
  /** Kills the program a few times while the job is in one state. */
  const killedWhile = async (state: string, doneOf: (found: Job) => number): Promise<void> => {
    for (let kill = 0, before = 0; kill < 3; kill += 1) {
      await eventually(async () => {
        const found = await job()
        expect(found.state).toBe(state)
        expect(doneOf(found)).toBeGreaterThan(before)
        before = doneOf(found)
      })
      await tollgate.kill()
      await tollgate.restart()
    }
  }
  const prices = () =>
    tollgate.query<{ price: number; records: number }>(
      'SELECT cost_micros AS price, count(*) AS records FROM cdr GROUP BY cost_micros',
    )
  const entries = () =>
    tollgate.query<{ customer_id: number; amount_micros: number }>(
      `SELECT wallet.customer_id, ledger_entry.amount_micros FROM ledger_entry
       JOIN wallet ON wallet.id = ledger_entry.wallet_id
       WHERE ledger_entry.ref LIKE 'rerating:%' ORDER BY ledger_entry.id`,
    )
  const balances = () =>
    customers.map((name) => {
      const { balance, ledger } = tollgate.wallet(name)
      expect(ledger).toBe(balance)
      return balance
    })
  return { api, order, job, killedWhile, prices, entries, balances }
}

test('a program that is killed in the middle of a re-rating, and of its undoing, ends both once', async () => {
  const { api, order, job, killedWhile, prices, entries, balances } = await withCalls()
  const longestMs = 60_000
  expect(await api('POST', '/rates/reratings', order)).toMatchObject({ id: 1, total: calls })
  await killedWhile('rating', ({ changed }) => changed)
  await eventually(
    async () => expect(await job()).toMatchObject({ state: 'done', changed: calls, done: calls }),
    longestMs,
  )
  expect(prices()).toEqual([{ price: 30_000, records: calls }])
  const due = (calls / customers.length) * 30_000
  const posted = customers.map((_, index) => ({ customer_id: index + 1, amount_micros: due }))
  expect(entries()).toEqual(posted)
  expect(balances()).toEqual(customers.map(() => 100_000_000 + due))

  expect(await api('POST', '/rates/reratings/1/undo')).toMatchObject({ state: 'undoing' })
  await killedWhile('undoing', ({ restored }) => restored)
  await eventually(
    async () => expect(await job()).toMatchObject({ state: 'undone', restored: calls, kept: 0 }),
    longestMs,
  )
  expect(prices()).toEqual([{ price: 60_000, records: calls }])
  expect(entries()).toEqual([
    ...posted,
    ...posted.map((entry) => ({ ...entry, amount_micros: -due })),
  ])
  expect(balances()).toEqual(customers.map(() => 100_000_000))
})
