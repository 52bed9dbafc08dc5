/** Carriers with what an operator asks first: is it up, since when not, and why. */
import { z } from 'zod'
import { fromFlag, timeToText } from '../../../schema/columns.ts'
import type { EnginePort } from '../../../schema/contracts/engine.ts'
import { all } from '../../../schema/sql/query.ts'
import { type PeerRequests, countsFrom } from '../../instances/other-instances.ts'
import { pageEndView } from '../../http/envelope.ts'
import { contains } from '../../http/rows.ts'
import { recentView } from '../../reports/recent-calls.ts'
import { answerText } from './carrier-service.ts'
import { downSince, type HistoryReader, lastFailure } from './state-history.ts'
import { count, moment, timeOrNull } from '../../http/view-fields.ts'

/** The most carriers that are read; a search finds others. */
export const MAX_TRUNKS = 200

const gateway = z.strictObject({
  destination: z.string(),
  state: z
    .enum(['up', 'unproven', 'down', 'not_probed'])
    .describe('unproven: it has never answered OPTIONS, which many carriers ignore.'),
  since: moment.nullable().describe('Down since then.'),
  reason: z.string().nullable(),
  latency_ms: z.number().nullable(),
})

const trunkView = z.strictObject({
  id: z.int(),
  name: z.string(),
  tenant: z.string().nullable(),
  state: z
    .enum(['up', 'degraded', 'down', 'inactive'])
    .describe('degraded: a part of its gateways is down. down: all, or the registration.'),
  registration: z
    .strictObject({
      state: z.enum(['registered', 'unregistered', 'registering', 'failed']),
      since: moment.nullable().describe('Failed since then.'),
      last_answer: z.string().nullable(),
      next_attempt_at: moment.nullable(),
    })
    .nullable()
    .describe('Null: it asks for none.'),
  gateways: z.array(gateway).describe('At most 5.'),
  active_calls: count,
  max_calls: count.describe('Calls at once that it may have; 0: no limit.'),
  max_cps: count.describe('Calls that it may start in a second; 0: no limit.'),
  last_failure: z
    .strictObject({ at: moment, what: z.string(), reason: z.string() })
    .nullable()
    .describe('Of gateways and registration, within 90 days.'),
})

export const trunksView = z.strictObject({
  trunks: z.array(trunkView.extend({ recent: recentView })),
  total: z.int(),
  ...pageEndView,
})

export type TrunkView = z.output<typeof trunkView>

interface TrunkReader extends HistoryReader {
  readonly engine: Pick<EnginePort, 'trunks' | 'calls'>
  readonly peers?: PeerRequests | undefined
}

const order = ['down', 'degraded', 'up', 'inactive'] as const

/** Trunks with problems first. */
export async function trunksOf(
  reader: TrunkReader,
  search?: string,
  isTroubledOnly = false,
): Promise<{ readonly trunks: readonly TrunkView[]; readonly total: number }> {
  const carriers = await carriersOf(reader, search)
  const ids = carriers.map(({ id }) => id)
  const more = (await countsFrom(reader.peers, 'carriers', ids)) ?? (() => 0)
  const trunks: TrunkView[] = []
  for (const carrier of carriers) trunks.push(await trunkOf(reader, carrier, more(carrier.id)))
  const troubled = trunks.filter(({ state }) => state === 'down' || state === 'degraded')
  const shown = isTroubledOnly ? troubled : trunks
  return {
    trunks: shown.toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state)),
    total: shown.length,
  }
}

type Carrier = Awaited<ReturnType<typeof carriersOf>>[number]

async function carriersOf({ store, tenantId }: TrunkReader, search: string | undefined) {
  const query = store.db
    .selectFrom('carrier')
    .leftJoin('tenant', 'tenant.id', 'carrier.tenant_id')
    .select(['carrier.id', 'carrier.name', 'carrier.is_active', 'tenant.slug as tenant'])
    .select(['carrier.max_calls', 'carrier.max_cps'])
    .where(contains(['carrier.name'], search))
    .$if(tenantId !== null, (own) => own.where('carrier.tenant_id', '=', tenantId))
    .orderBy('carrier.name')
    .limit(MAX_TRUNKS)
  const carriers = await all(store, query)
  const ids = carriers.map(({ id }) => id)
  const gateways = store.db
    .selectFrom('carrier_gateway')
    .select(['id', 'carrier_id', 'host', 'port', 'transport'])
    .where('carrier_id', 'in', ids)
    .orderBy('priority')
    .orderBy('id')
  const rows = ids.length === 0 ? [] : await all(store, gateways)
  return carriers.map((carrier) => ({
    ...carrier,
    gateways: rows.filter(({ carrier_id }) => carrier_id === carrier.id),
  }))
}

async function trunkOf(reader: TrunkReader, carrier: Carrier, more: number): Promise<TrunkView> {
  const { id, name, tenant } = carrier
  const gateways: TrunkView['gateways'] = []
  for (const row of carrier.gateways) gateways.push(await gatewayOf(reader, row))
  const registration = await registrationOf(reader, id)
  return {
    id,
    name,
    tenant,
    registration,
    state: stateOf(fromFlag(carrier.is_active), gateways, registration),
    gateways: gateways.toSorted((one, other) => rank(one) - rank(other)).slice(0, 5),
    active_calls: reader.engine.calls.countByCarrier(id) + more,
    max_calls: carrier.max_calls,
    max_cps: carrier.max_cps,
    last_failure: await failureOf(reader, carrier),
  }
}

const rank = ({ state }: TrunkView['gateways'][number]): number => (state === 'down' ? 0 : 1)

function stateOf(
  isActive: boolean,
  gateways: TrunkView['gateways'],
  registration: TrunkView['registration'],
): TrunkView['state'] {
  if (!isActive) return 'inactive'
  const down = gateways.filter(({ state }) => state === 'down').length
  if (registration?.state === 'failed' || (down > 0 && down === gateways.length)) return 'down'
  return down > 0 ? 'degraded' : 'up'
}

async function gatewayOf(
  reader: TrunkReader,
  { id, host, port, transport }: Carrier['gateways'][number],
): Promise<TrunkView['gateways'][number]> {
  const bracketed = host.includes(':') ? `[${host}]` : host
  // DNS is asked for a port that is not given.
  const place = port === 0 ? bracketed : `${bracketed}:${port}`
  const destination = `sip:${place};transport=${transport}`
  const status = reader.engine.trunks.gatewayStatus(id)
  const none = { since: null, reason: null }
  if (status === undefined) return { destination, state: 'not_probed', ...none, latency_ms: null }
  const { state, latencyMs: latency_ms, probes, lastProbe } = status
  if (state === 'active') return { destination, state: 'up', ...none, latency_ms }
  const since = await downSince(reader, 'gateway', id)
  return {
    destination,
    state: probes.answered === 0 ? 'unproven' : 'down',
    latency_ms,
    since: since === undefined ? null : timeToText(since.at),
    reason: since?.reason ?? lastProbe?.reason ?? null,
  }
}

async function registrationOf(
  reader: TrunkReader,
  carrierId: number,
): Promise<TrunkView['registration']> {
  const registration = reader.engine.trunks.registrationOf(carrierId)
  if (registration === undefined) return null
  const { state, lastAnswer, nextAttemptAt } = registration
  const since =
    state === 'registered' ? undefined : await downSince(reader, 'registration', carrierId)
  return {
    state,
    since: since === undefined ? null : timeToText(since.at),
    last_answer: lastAnswer && answerText(lastAnswer),
    next_attempt_at: timeOrNull(nextAttemptAt),
  }
}

async function failureOf(reader: TrunkReader, { id, gateways }: Carrier) {
  const failure = await lastFailure(
    reader,
    gateways.map((row) => row.id),
    id,
  )
  if (failure === undefined) return null
  const { at, kind, name, reason } = failure
  return { at: timeToText(at), what: kind === 'gateway' ? name : 'registration', reason }
}
