/** Two quiet weeks before the incidents, against which these are anomalies. */
import { HOUR_MS, DAY_MS } from '../../../../schema/clock.ts'
import type { Store } from '../../../../schema/storage/store.ts'
import { all, execute, transaction } from '../../../../schema/sql/query.ts'
import type { CommandContext } from '../../command.ts'
import { BY_NORTHERN, BY_SOUTHERN, callers, type CustomerName } from './incident-data.ts'

const DAYS = 14
const CALLS_PER_DAY = 3
const TALK_SECONDS = 60
const COST_MICROS = 30_000

const usual: readonly {
  readonly customer: CustomerName
  readonly carrier?: string
  readonly to: string
}[] = [
  { customer: 'harbour', to: '15550205' },
  { customer: 'acme', to: '15550205' },
  { customer: 'wayne', to: `${BY_NORTHERN}7946000`, carrier: 'northern' },
  { customer: 'stark', to: `${BY_SOUTHERN}5512345`, carrier: 'southern' },
]

/**
 * Records of calls, and the use of the key that leaks later, from the address that it has always
 * had.
 */
export async function storePastDays(
  store: Store,
  keyName: string,
  context: Pick<CommandContext, 'now' | 'newUuid'>,
): Promise<void> {
  const numbers = await all(
    store,
    store.db.selectFrom('customer_number').select(['number', 'customer_id']),
  )
  const ids = new Map(numbers.map(({ number, customer_id }) => [digitsOf(number), customer_id]))
  await transaction(store, async () => {
    for (let day = 1; day <= DAYS; day += 1)
      for (const { customer, carrier, to } of usual) {
        const customerId = ids.get(digitsOf(callers[customer])) ?? null
        for (let call = 0; call < CALLS_PER_DAY; call += 1) {
          const at = context.now() - day * DAY_MS - (call + 1) * HOUR_MS
          const record = recordOf({ at, to, carrier, customerId, uuid: context.newUuid() })
          const row = { ...record, caller_id_number: callers[customer] }
          await execute(store, store.db.insertInto('cdr').values(row))
        }
      }
    await storeKeyUse(store, keyName, context.now())
  })
}

const digitsOf = (number: string): string => number.replace('+', '')

interface PastCall {
  readonly uuid: string
  /** Milliseconds UTC. */
  readonly at: number
  readonly to: string
  readonly carrier: string | undefined
  readonly customerId: number | null
}

const recordOf = ({ uuid, at, to, carrier, customerId }: PastCall) => ({
  call_uuid: uuid,
  call_id: uuid,
  caller_id_name: null,
  destination_number: to,
  direction: carrier === undefined ? ('inbound' as const) : ('outbound' as const),
  start_stamp: at,
  answer_stamp: at + 1_000,
  end_stamp: at + 1_000 + TALK_SECONDS * 1_000,
  attempts: '[]',
  post_dial_delay_ms: 300,
  duration: TALK_SECONDS + 1,
  billsec: TALK_SECONDS,
  disposition: 'ANSWERED' as const,
  sip_code: 200,
  hangup_cause: 'NORMAL_CLEARING',
  hangup_by: 'caller' as const,
  denial_code: null,
  set_id: null,
  node: null,
  carrier: carrier ?? null,
  tenant_id: null,
  customer_id: customerId,
  rate_prefix: to.slice(0, 4),
  cost_micros: COST_MICROS,
  currency: 'USD',
  source_address: '127.0.0.1',
  mos_score: null,
  jitter_ms: null,
  packet_loss_pct: null,
})

async function storeKeyUse(store: Store, name: string, now: number): Promise<void> {
  const { db } = store
  const [key] = await all(
    store,
    db.selectFrom('application_key').select('id').where('name', '=', name),
  )
  if (key === undefined) throw new Error(`there is no key ${name}`)
  const first = now - DAYS * DAY_MS
  const last = now - DAY_MS - HOUR_MS
  const used = { requests: DAYS * CALLS_PER_DAY, denied: 0, first_at: first, last_at: last }
  const address = { application_key_id: key.id, address: '127.0.0.1', ...used }
  await execute(store, db.insertInto('key_address').values(address))
  for (let day = 1; day <= DAYS; day += 1) {
    const at = now - day * DAY_MS - HOUR_MS
    const hour = {
      hour: Math.floor(at / HOUR_MS),
      application_key_id: key.id,
      outcome: '',
      route: 'GET /api/v1/reports/cdrs',
      requests: CALLS_PER_DAY,
      first_at: at,
      last_at: at,
    }
    await execute(store, db.insertInto('api_hour').values(hour))
  }
}
