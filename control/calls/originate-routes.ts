/**
 * Click-to-call (SPECIFICATION.md §4.1): rings the phones of the extension first, then calls the
 * number.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { type OriginateResult, TEST_CALL_SECONDS } from '../../schema/contracts/calls.ts'
import { denialText } from '../../schema/contracts/denials.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { exceeded } from '../auth/rate-limit.ts'
import { RateWindow } from '../auth/rate-window.ts'
import { admitScope, requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { requestScope } from '../auth/tenants.ts'
import { ApiError, badRequest, conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created } from '../http/envelope.ts'
import { domain, phoneNumber, text } from '../http/fields.ts'
import type { Platform } from '../http/platform.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { storeOf } from '../resources/resource.ts'
import { carriers } from '../resources/carriers.ts'
import { badReference } from '../resources/references.ts'
import { found, idParam } from '../resources/resource-routes.ts'
import { ownsNumber } from '../resources/tenancy.ts'
import { extensionNumber } from '../resources/extensions.ts'
import { bare, data, type Operation } from '../http/operation.ts'
import { exampleCallUuid } from './active-call-view.ts'

const testCall = z
  .strictObject({
    call_uuid: z.string(),
    status: z.literal('originating'),
    max_seconds: z.int().describe('The call is ended when it has been answered for so long.'),
  })
  .meta({ id: 'TestCall' })

const originated = z
  .strictObject({ call_uuid: z.string(), status: z.literal('originating') })
  .meta({ id: 'OriginatedCall' })

const originate = (id: string, summary: string): Operation => ({
  id,
  tag: 'Calls',
  summary,
  body: { source_extension: '100', destination_number: '4940200' },
  answer: bare(originated, { call_uuid: exampleCallUuid, status: 'originating' }, 201),
  refusals: [402, 404, 409, 503],
})

const number = phoneNumber({ least: 2, most: 32 })

export const originateBody = z.strictObject({
  source_extension: extensionNumber.describe('Extension whose phones ring first.'),
  destination_number: number,
  caller_id_number: number
    .optional()
    .describe('One of the tenant’s numbers. Defaults to the extension.'),
  caller_id_name: text(100).optional(),
  domain: domain.optional().describe('Required when several domains have this extension.'),
  auto_answer: z.boolean().default(false).describe('Asks the phone to answer automatically.'),
  timeout_seconds: z.int().min(5).max(180).default(60).describe('Ring timeout of the extension.'),
})

export function originateRoutes({ store, engine }: Pick<Platform, 'store' | 'engine'>) {
  const guards = [
    requires('calls:originate'),
    validate('json', originateBody),
    repeatable({ operation: 'POST /api/v1/pbx/calls/originate' }),
  ] as const
  const start = async (c: Context<ControlEnv>, body: z.output<typeof originateBody>) => {
    const source = await sourceExtension(store, c.var.principal, body.source_extension, body.domain)
    const shown = body.caller_id_number
    if (shown !== undefined && !(await mayShow({ store, engine }, source, shown)))
      throw badRequest('The body is invalid', [
        { path: 'caller_id_number', message: 'is not a number that this extension may show' },
      ])
    const callUuid = startedOrThrow(
      await engine.originate({
        domain: source.domain,
        extension: source.extension,
        destination: body.destination_number,
        callerNumber: shown,
        callerName: body.caller_id_name,
        autoAnswer: body.auto_answer,
        ringMs: body.timeout_seconds * 1_000,
      }),
    )
    const started = { call_uuid: callUuid, status: 'originating' as const }
    c.set('change', { before: null, after: { ...body, ...started } })
    c.header('Location', `/api/v1/pbx/calls/${callUuid}`)
    return c.json(started, 201)
  }

  return new Hono<ControlEnv>()
    .post(
      '/pbx/calls/originate',
      describeRoute(
        originate('originateCall', 'Start a call: ring an extension, then dial the destination'),
      ),
      ...guards,
      (c) => start(c, c.req.valid('json')),
    )
    .post(
      '/telephony/originate',
      describeRoute(
        originate('originateTelephonyCall', 'Alias of `POST /api/v1/pbx/calls/originate`'),
      ),
      ...guards,
      (c) => start(c, c.req.valid('json')),
    )
}

function startedOrThrow(result: OriginateResult): string {
  switch (result.kind) {
    case 'originating':
      return result.callUuid
    case 'unknown_extension':
      throw notFound('extension')
    case 'extension_unregistered':
      throw conflict(result.kind, 'No phone of the extension is registered')
    default:
      throw refusedStart(result.kind === 'denied' ? result.code : result.kind)
  }
}

/** Denials that stop any call for a while. */
const passing = new Set([
  // Guards of charging that refuse a call which its payer may afford.
  'records_waiting',
  'too_many_calls',
  'database_away',
  'lease_unheard',
  'limit_unheard',
  'cap_unheard',
  'lease_contended',
  'ocs_unreachable',
  'draining',
  'overload',
  'storage_unavailable',
  'node_fenced',
  'fault',
])

/** Denials of test calls through a carrier. */
const tests = new Set([
  'no_route',
  'no_gateway',
  'no_carrier_price',
  'no_profit',
  'carrier_limit',
  'emergency_number',
  'internal_number',
])

/** Maps a refused call start to an error response, by the code that its call record would have. */
export function refusedStart(code: string): ApiError {
  const text = denialText(code)
  if (code === 'insufficient_funds') return new ApiError(402, code, text)
  if (tests.has(code)) return conflict(code, text)
  if (!passing.has(code)) return new ApiError(403, code, text)
  return new ApiError(503, code, text, { headers: { 'Retry-After': '5' } })
}

/** Throws 404 when the principal can use no such extension, 400 when several domains have one. */
export async function sourceExtension(
  store: Store,
  principal: Pick<Principal, 'tenantId' | 'domain'>,
  extension: string,
  domain: string | undefined,
) {
  let query = store.db
    .selectFrom('extension')
    .select(['tenant_id', 'domain', 'customer_id'])
    .where('extension', '=', extension)
    .limit(2)
  if (principal.tenantId !== null) query = query.where('tenant_id', '=', principal.tenantId)
  if (principal.domain !== null) query = query.where('domain', '=', principal.domain)
  if (domain !== undefined) query = query.where('domain', '=', domain)
  const [found, another] = await all(store, query)
  if (found === undefined) throw notFound('extension')
  if (another !== undefined)
    throw badReference('domain', 'is required: several domains have this extension')
  const { tenant_id: tenantId, customer_id: customerId } = found
  return { tenantId, customerId, domain: found.domain, extension }
}

/**
 * The numbers that a call may show: those of who pays for the extension, those of its tenant that
 * no customer owns, and its extensions. An extension without a customer is the tenant's, and may
 * show those of all its customers. A leading `+` is ignored.
 */
async function mayShow(
  { store, engine: { ownedNumbers } }: Pick<Platform, 'store' | 'engine'>,
  owner: { readonly tenantId: number; readonly customerId: number | null },
  number: string,
): Promise<boolean> {
  const row = ownedNumbers.find(number)
  if (row !== undefined) {
    if (ownedNumbers.isOwned(number, owner)) return true
    const isShared = row.customerId === null || owner.customerId === null
    return row.isActive && row.tenantId === owner.tenantId && isShared
  }
  const extensions = store.db
    .selectFrom('extension')
    .select('extension')
    .where('tenant_id', '=', owner.tenantId)
    .where('extension', '=', number)
  return (await first(store, extensions)) !== undefined || ownsNumber(store, owner.tenantId, number)
}

const WINDOW_MS = 60_000
const CALLS_PER_WINDOW = 6
const MAX_WINDOWS = 10_000
/** How long the phones of the extension ring. */
const RING_MS = 30_000

/** Throws 429 at the call beyond six a minute of one key. */
function callsPerMinute(steadyNow: () => number): (key: string) => void {
  const windows = recentlyUsed<string, RateWindow>(MAX_WINDOWS)
  return (key) => {
    const window = windows.get(key) ?? new RateWindow(CALLS_PER_WINDOW, WINDOW_MS)
    windows.set(key, window)
    const time = steadyNow()
    if (!window.admit(time)) throw exceeded(window.opensAt(time) - time)
  }
}

const testCallBody = originateBody.pick({
  source_extension: true,
  destination_number: true,
  domain: true,
  auto_answer: true,
})

/**
 * `POST /routing/carriers/{id}/test-call`: click-to-call through the gateways of one carrier, for
 * half a minute at most. The call is charged and refused like any call of the extension.
 */
export function testCallRoutes({
  store,
  engine,
  now,
  steadyNow,
}: Pick<Platform, 'store' | 'engine' | 'now' | 'steadyNow'>) {
  const resource = storeOf(carriers, { store })
  /** Counts are kept by carrier and by tenant of the extension. */
  const count = callsPerMinute(steadyNow)

  return new Hono<ControlEnv>().post(
    '/routing/carriers/:id/test-call',
    describeRoute({
      id: 'testCarrier',
      tag: 'Routing',
      summary: 'Ring an extension, then call a number through this carrier only, for 30 s at most',
      body: { source_extension: '100', destination_number: '4940200' },
      answer: data(
        testCall,
        { call_uuid: exampleCallUuid, status: 'originating', max_seconds: 30 },
        201,
      ),
      refusals: [402, 409, 503],
    }),
    requires('calls:originate'),
    (c, next) => {
      admitScope(c.var.principal, 'carriers:read')
      return next()
    },
    validate('param', idParam(carriers.noun)),
    validate('json', testCallBody),
    repeatable(),
    async (c) => {
      const { principal } = c.var
      const { id } = c.req.valid('param')
      const body = c.req.valid('json')
      found(await resource.find(requestScope(principal, now), id), carriers.noun)
      const source = await sourceExtension(store, principal, body.source_extension, body.domain)
      count(`${id} ${source.tenantId}`)
      const callUuid = startedOrThrow(
        await engine.originate({
          domain: source.domain,
          extension: source.extension,
          destination: body.destination_number,
          callerNumber: undefined,
          callerName: undefined,
          autoAnswer: body.auto_answer,
          ringMs: RING_MS,
          testedCarrierId: id,
        }),
      )
      const started = testCallView(callUuid, TEST_CALL_SECONDS)
      c.set('change', { before: null, after: { ...body, ...started } })
      return created(c, `/api/v1/pbx/calls/${callUuid}`, started)
    },
  )
}

const placedCallBody = z.strictObject({
  from: z
    .string()
    .regex(/^[0-9A-Za-z*#+._-]{1,64}$/, 'must be a number or an extension')
    .describe('A number of a customer, or an extension: as if it called. It pays.'),
  to: number.describe('The called number.'),
  domain: domain.optional().describe('Required when several domains have this extension.'),
  max_seconds: z
    .int()
    .min(1)
    .max(TEST_CALL_SECONDS)
    .default(5)
    .describe('An answered call ends after so many seconds.'),
})

/**
 * `POST /telephony/test-call`: a call whose caller is Tollgate itself. It is routed, charged and
 * recorded like a call of `from`; nothing is heard.
 */
export function placedCallRoutes({
  store,
  engine,
  steadyNow,
}: Pick<Platform, 'store' | 'engine' | 'steadyNow'>) {
  const count = callsPerMinute(steadyNow)
  return new Hono<ControlEnv>().post(
    '/telephony/test-call',
    describeRoute({
      id: 'placeTestCall',
      tag: 'Calls',
      summary: 'Place a call that Tollgate itself makes in the name of a number or extension',
      body: { from: '+15550100', to: '4940200' },
      answer: data(
        testCall,
        { call_uuid: exampleCallUuid, status: 'originating', max_seconds: 5 },
        201,
      ),
      refusals: [402, 404, 409, 503],
    }),
    requires('calls:originate'),
    validate('json', placedCallBody),
    repeatable(),
    async (c) => {
      const { from, to, domain: named, max_seconds: maxSeconds } = c.req.valid('json')
      const { principal } = c.var
      const caller =
        (await customerNumber(store, principal, from)) ??
        (await sourceExtension(store, principal, from, named))
      count(`${caller.tenantId}`)
      const source =
        'number' in caller
          ? ({ kind: 'number', number: caller.number } as const)
          : ({ kind: 'extension', domain: caller.domain, extension: caller.extension } as const)
      const callUuid = startedOrThrow(
        await engine.placeTestCall({ from: source, destination: to, maxSeconds }),
      )
      const started = testCallView(callUuid, maxSeconds)
      c.set('change', { before: null, after: { from, to, ...started } })
      return created(c, `/api/v1/pbx/calls/${callUuid}`, started)
    },
  )
}

/** A number of a customer that the principal may see; undefined: no customer has it. */
async function customerNumber(
  store: Store,
  { tenantId, domain: ownDomain }: Principal,
  text: string,
): Promise<{ readonly tenantId: number | null; readonly number: string } | undefined> {
  // Who is limited to a domain sees extensions only.
  if (ownDomain !== null) return undefined
  const digits = text.replace(/^\+/, '')
  let query = store.db
    .selectFrom('customer_number')
    .innerJoin('customer', 'customer.id', 'customer_number.customer_id')
    .select(['customer_number.number', 'customer.tenant_id'])
    .where('customer_number.number', 'in', [digits, `+${digits}`])
  if (tenantId !== null) query = query.where('customer.tenant_id', '=', tenantId)
  const found = await first(store, query)
  return found && { number: found.number, tenantId: found.tenant_id }
}

const testCallView = (callUuid: string, maxSeconds: number) => ({
  call_uuid: callUuid,
  status: 'originating',
  max_seconds: maxSeconds,
})

export type TestCallView = ReturnType<typeof testCallView>
