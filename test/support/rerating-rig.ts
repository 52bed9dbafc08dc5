/** Calls that were sold and bought at wrong prices, and what moves when they are priced anew. */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { placeOf, resultOf, rollUpAt } from './summed-calls.ts'
import { margins } from '../../control/reports/margins.ts'
import { marginGroupings } from '../../control/reports/margin-sums.ts'
import { Reratings } from '../../control/resources/reratings/reratings.ts'
import { ReratingSteps } from '../../control/resources/reratings/rerating-steps.ts'
import type { Answer } from './control.ts'
import { answeredCall } from './report-rig.ts'
import { openResources } from './resources.ts'
import { readRows } from './stored.ts'
import { storeCall } from './stored-calls.ts'

const day = 86_400_000

/** The price per minute of each second of a call, in micro-units. */
const WRONG = 60_000

export interface JobView {
  readonly id: number
  readonly state: string
  readonly done: number
  readonly total: number
  readonly calls: number
  readonly changed: number
  readonly without_rate: number
  readonly unknown_number: number
  readonly other_currency: number
  readonly before_exact: string
  readonly after_exact: string
  readonly restored: number
  readonly kept: number
  readonly customers?: readonly {
    readonly customer_id: number | null
    readonly difference_exact: string
    readonly posted_exact: string | null
  }[]
}

/** The platform's customers 1 and 2 with 100 each, by the carrier north; a day later it is known. */
export async function openReratingRig() {
  const control = await openResources()
  const { call, store } = control
  const make = async (path: string, body: object): Promise<number> => {
    const answer = await call('POST', path, body)
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return answer.data<{ id: number }>().id
  }
  await make('/rate-plans', { name: 'retail', currency: 'USD' })
  await make('/rate-plans', { name: 'cost', currency: 'USD' })
  for (const rate_plan of ['retail', 'cost'])
    await make('/rates', { rate_plan, prefix: '49', rate_per_minute: '0.06', increment: 1 })
  const customers: number[] = []
  for (const name of ['one', 'two'])
    customers.push(
      await make('/customers', {
        name,
        rate_plan: 'retail',
        numbers: [],
        currency: 'USD',
        balance: '100.00',
      }),
    )
  await make('/routing/carriers', {
    name: 'north',
    rate_plan: 'cost',
    gateways: [{ host: '10.9.0.1' }],
  })
  let calls = 0
  const { startedAt } = answeredCall
  /** A call of some seconds that was sold and bought at 0.06 a minute, as a wallet has paid it. */
  const talk = async (change: Partial<CallRecord> = {}, seconds = 60, paid?: number) => {
    calls += 1
    const costMicros = paid ?? (seconds * WRONG) / 60
    const callUuid = `00000000-0000-4000-9000-${String(calls).padStart(12, '0')}`
    const record: CallRecord = {
      ...answeredCall,
      callUuid,
      direction: 'outbound',
      calledNumber: '4930100',
      carrier: 'north',
      customerId: customers[0] ?? null,
      ratePrefix: '49',
      billsec: seconds,
      startedAt: startedAt + calls,
      answeredAt: startedAt + calls + 2_000,
      carrierCost: {
        costMicros: (seconds * WRONG) / 60,
        prefix: '49',
        currency: 'USD',
        tenantId: null,
      },
      ...change,
    }
    await storeCall(store, record, { costMicros, currency: record.currency })
    if (record.customerId !== null && costMicros > 0)
      await debit(record.customerId, costMicros, callUuid)
    return callUuid
  }
  const debit = async (customerId: number, costMicros: number, ref: string) => {
    const [wallet] = await readRows(
      store,
      'SELECT id FROM wallet WHERE customer_id = ?',
      customerId,
    )
    if (wallet === undefined) return
    const at = control.now()
    const walletId = Number(wallet['id'])
    await control.ocs.ledger.post({
      walletId,
      kind: 'debit',
      amountMicros: -costMicros,
      ref,
      actor: 'ocs',
      note: null,
      at,
    })
  }
  /** Corrects both plans. */
  const correct = async (price = '0.03', prefix = '49') => {
    const rates = (await call('GET', '/rates?limit=200')).data<{ id: number; prefix: string }[]>()
    for (const rate of rates)
      if (rate.prefix === prefix)
        await call('PATCH', `/rates/${rate.id}`, { rate_per_minute: price })
  }
  const order = (kind: 'sold' | 'bought', more: object = {}) => ({
    kind,
    rate_plan: kind === 'sold' ? 'retail' : 'cost',
    from: '2026-01-01T00:00:00Z',
    to: '2026-01-02T00:00:00Z',
    ...more,
  })
  const begin = (kind: 'sold' | 'bought', more?: object): Promise<Answer> =>
    call('POST', '/rates/reratings', order(kind, more))
  const job = async (id: number): Promise<JobView> =>
    (await call('GET', `/rates/reratings/${id}`)).data<JobView>()
  /** Waits for the end of a job. */
  const ended = async (id: number): Promise<JobView> => {
    for (let turn = 0; turn < 2_000; turn += 1) {
      const found = await job(id)
      if (found.state === 'done' || found.state === 'undone') return found
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    throw new Error(`re-rating ${id} does not end`)
  }
  const rerate = async (kind: 'sold' | 'bought', more?: object): Promise<JobView> => {
    const answer = await begin(kind, more)
    if (answer.status !== 201) throw new Error(answer.text)
    return ended(answer.data<JobView>().id)
  }
  const undo = (id: number): Promise<Answer> => call('POST', `/rates/reratings/${id}/undo`)
  const records = () =>
    readRows(
      store,
      `SELECT call_uuid, customer_id, rate_prefix, cost_micros, carrier_prefix,
        carrier_cost_micros FROM cdr ORDER BY id`,
    )
  /** Balances in memory, those stored, and the sums of their ledgers. */
  const money = async () => {
    const rows = await readRows(
      store,
      `SELECT customer_id, CAST(balance_micros AS TEXT) AS balance,
        (SELECT CAST(sum(amount_micros) AS TEXT) FROM ledger_entry WHERE wallet_id = wallet.id) AS entries
        FROM wallet ORDER BY customer_id`,
    )
    return rows.map((row) => ({
      customer: Number(row['customer_id']),
      balance: String(row['balance']),
      entries: String(row['entries']),
      memory: String(control.ocs.balanceOf(Number(row['customer_id']))?.balanceMicros),
    }))
  }
  const place = placeOf(store)
  const marginsNow = async (tenantId: number | null = null) => {
    const found = []
    for (const groupBy of marginGroupings)
      found.push(
        await resultOf(
          margins(place, {
            tenantId,
            isOwn: tenantId !== null,
            from: startedAt - (startedAt % day),
            before: startedAt - (startedAt % day) + 2 * day,
            groupBy,
            limit: 100,
            offset: 0,
          }),
        ),
      )
    return found
  }
  control.tick(day)
  const { webhooks } = control.deps
  const deps = { store, webhooks, ocs: control.ocs, now: control.now, log: () => undefined }
  return {
    ...control,
    customers,
    talk,
    correct,
    order,
    begin,
    job,
    ended,
    rerate,
    undo,
    records,
    money,
    marginsNow,
    place,
    rollUp: () => rollUpAt(place),
    /** The work of another process on the same database. */
    steps: (process: string) => new ReratingSteps({ ...deps, process }),
    runner: () => new Reratings({ ...deps, randomBytes: control.deps.randomBytes }),
  }
}
