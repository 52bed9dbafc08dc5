/** Simulates a call, and shows the result as far as the principal may know it. */
import { Hono } from 'hono'
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../schema/columns.ts'
import { denialText, storedDenialText } from '../../schema/contracts/denials.ts'
import {
  type SimulatedSource,
  type SimulatedVerdict,
  type Simulation,
  passedOverReasons,
} from '../../schema/contracts/engine.ts'
import type { ExpectedProfit } from '../../schema/contracts/tariff.ts'
import { parseAddress } from '../../schema/net/ip-address.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import { lowQualityText } from '../http/quality-figures.ts'
import { badRequest, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { text, time } from '../http/fields.ts'
import type { Platform } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { data } from '../http/operation.ts'
import { decimal, denialTextField, exampleTime, moment } from '../http/view-fields.ts'
import type { HuntingRules } from '../../schema/contracts/hunting.ts'
import { huntingView } from '../resources/hunting-field.ts'
import { attestations, directions } from '../../schema/contracts/field-values.ts'

const presentedCaller = z.strictObject({
  number: z.string().describe('Empty: the call is anonymous, or refused.'),
  asserted: z.string().describe('The number that the network is told. Empty: none is known.'),
  private: z.boolean(),
  attestation: z.enum(['A', 'B', 'C']),
  why: z.string().describe('Why this number.'),
})

/** Earnings of the expected call by one carrier: routes and losses are judged by them. */
const expectedCall = z
  .strictObject({
    seconds: z.int().describe('How long calls to such numbers last, on average.'),
    price_exact: decimal.nullable().describe('What the customer pays. Null: nobody pays here.'),
    currency: z.string().nullable().describe('Of that price.'),
    cost_exact: decimal.nullable().describe('What the carrier takes. Null: it is not known.'),
    cost_currency: z.string().nullable(),
    margin_exact: decimal
      .nullable()
      .describe(
        'Price less cost; below zero: a loss. Null: one is not known, or in another currency.',
      ),
    is_below_margin: z.boolean().describe('Loss protection warns of it, or refuses it.'),
  })
  .nullable()
  .describe(
    'The expected call by this carrier. Null: no carrier, one of somebody else, or the ' +
      'credential lacks `rates:read`.',
  )

const candidate = z.strictObject({
  kind: z.enum(['node', 'gateway', 'agent', 'extension', 'domain', 'application']),
  uri: z.string(),
  name: z.string().nullable().describe('Of the carrier, the agent or the extension.'),
  id: z.int().nullable().describe('Of the node, the carrier or the agent.'),
  number: z.string().nullable().describe('The number sent there. Null: as dialled.'),
  route: z.string().nullable().describe('The outbound route.'),
  phones: z.int().nullable().describe('Registered phones of an extension.'),
  withheld: z
    .string()
    .nullable()
    .describe('Why nothing would be sent there, as a `denial_code`. Null: it is tried.'),
  invite: z
    .strictObject({ uri: z.string(), headers: z.record(z.string(), z.string()) })
    .nullable()
    .describe(
      'The INVITE that it would get, after the header rules of its carrier; the SIP server adds ' +
        'its own headers. Null: an extension, or the carrier of somebody else.',
    ),
  ruled_by: z
    .array(z.int())
    .describe('Numbers of the header rules that have changed it; the first one is 1.'),
  withheld_text: z.string().nullable().describe('The same in a sentence, with what to do.'),
  presented: presentedCaller
    .nullable()
    .describe('What it would be shown of the caller. Null: no rules say anything.'),
  hunting: huntingView
    .nullable()
    .describe(
      'How a call goes on when its carrier does not take it (`hunting`). Null: as usual, or the ' +
        'carrier of somebody else.',
    ),
  signature: z
    .enum([...attestations, 'unsigned'])
    .nullable()
    .describe(
      'The attestation with which its INVITE is signed (`stir.sign` of the carrier). `unsigned`: ' +
        'there is no key, or no number to sign. Null: no signature is wanted.',
    ),
  low_quality: z
    .string()
    .nullable()
    .describe(
      'Why its route is tried after all others (`quality` of the route), in a sentence. Null: it ' +
        'is not, or the route is of somebody else.',
    ),
  share: z.number().min(0).max(1).describe('The part of many such calls that is sent here first.'),
  carrier_price_exact: decimal
    .nullable()
    .describe(
      'What a call of one minute costs by this carrier. Null: it has no price for the ' +
        'number, or the credential is of a tenant.',
    ),
  margin_exact: decimal
    .nullable()
    .describe(
      'What is left of the price of one minute after that cost; below zero: a loss. Null: ' +
        'one of both is not known, or they differ in currency.',
    ),
  expected: expectedCall,
})

const simulationView = z
  .strictObject({
    verdict: z
      .enum(['goes_on', 'refused', 'dropped'])
      .describe(
        '`goes_on`: an INVITE is sent. `dropped`: the source is banned; no answer is sent.',
      ),
    sip_code: z.int().nullable().describe('With which the call would be refused.'),
    reason: z.string().nullable(),
    code: z.string().nullable().describe('As `denial_code` of a call record.'),
    denial_text: denialTextField,
    from: z.string(),
    to: z.string().describe('After the number rules of the carrier that calls.'),
    direction: z.enum(directions),
    verification: z
      .literal('not_asked')
      .nullable()
      .describe(
        '`not_asked`: Identity headers of a real call would be looked at; here nobody looks. ' +
          'Null: nobody looks at those of this source.',
      ),
    emergency: z.boolean().describe('It skips the wallet and all limits.'),
    source: z
      .strictObject({
        kind: z.enum(['trusted', 'carrier', 'node', 'proxy', 'extension', 'unknown']),
        id: z.int().nullable(),
        name: z.string().nullable(),
      })
      .describe('Who would be recognized as the caller.'),
    other_sources: z
      .array(z.string())
      .describe(
        'What `source` may name instead, where the request named none and it was chosen; at ' +
          'most 10.',
      ),
    payment: z.strictObject({
      kind: z
        .enum(['asked', 'free', 'not_asked', 'elsewhere'])
        .describe(
          '`free`: no wallet is asked. `not_asked`: the call ends before. `elsewhere`: ' +
            'another system charges.',
        ),
      customer_id: z.int().nullable(),
      customer: z.string().nullable(),
      code: z.string().nullable().describe('Why charging would refuse.'),
      rate: z
        .strictObject({
          prefix: z.string(),
          currency: z.string(),
          connect_fee_exact: decimal,
          rate_per_minute_exact: decimal,
          first_increment: z.int(),
          increment: z.int(),
          period: z.string().nullable().describe('Period of the plan that holds then.'),
        })
        .nullable()
        .describe('Null: there is none, or the credential lacks `rates:read`.'),
      price_exact: decimal
        .nullable()
        .describe('What the customer pays for a call of one minute, with its connect fee.'),
      at: moment.nullable().describe('When that rate is in force.'),
      longest_seconds: z
        .int()
        .nullable()
        .describe(
          'The longest call that the wallet pays for now. Null: not limited, or not known.',
        ),
    }),
    order: z
      .enum(['fixed', 'turn', 'drawn', 'call_id'])
      .describe(
        'Of the candidates. `turn`: that of the next call. `drawn`: by chance; the most ' +
          'probable one is shown. `call_id`: that of this Call-ID.',
      ),
    set_id: z.int().nullable().describe('The dispatcher set that was asked.'),
    decided_by_number: z
      .strictObject({ id: z.int(), number: z.string(), last_number: z.string().nullable() })
      .nullable()
      .describe('The row of `/numbers` that says where the call goes, or that it goes nowhere.'),
    hooks: z
      .array(
        z.strictObject({
          hook: z
            .enum(['onInvite', 'onRoute', 'onAttemptFailed'])
            .describe('The function that was asked.'),
          by: z.string().describe('The file or the routing webhook.'),
          decision: z.looseObject({}).nullable().describe('Null: it has failed.'),
          failed: z
            .string()
            .nullable()
            .describe('Why it has failed, or what of its decision has no effect.'),
        }),
      )
      .describe('What hooks and routing webhooks have done. Empty: none has said anything.'),
    candidates: z.array(candidate).describe('In the order in which they are tried.'),
    passed_over: z
      .array(
        z.strictObject({
          kind: z.enum(['node', 'route', 'gateway']),
          name: z.string(),
          uri: z.string().nullable(),
          why: z.enum(passedOverReasons),
          expected: expectedCall,
        }),
      )
      .describe('What takes no part, and why; at most 50.'),
  })
  .meta({ id: 'Simulation' })

export const simulateBody = z.strictObject({
  from: z
    .string()
    .regex(/^[0-9A-Za-z*#+._-]{1,64}$/, 'must be a number or an extension')
    .describe('The calling number, or the extension that calls.'),
  to: z
    .string()
    .regex(/^[^\s<>"@;?:,]{1,64}(?:@[\w.-]{1,253})?$/, 'must be a number, or user@domain')
    .describe('The called number, or `user@domain`.'),
  source: text(300)
    .min(1)
    .optional()
    .describe(
      'Where the call comes from: the name of a carrier, an address such as `203.0.113.7:5060`, ' +
        'or an extension as `100@acme.example`. ' +
        'Absent: the extension `from`, or else the only carrier whose calls are taken, or else ' +
        'a program of the platform (`TRUSTED_SOURCES`).',
    ),
  call_id: text(200)
    .min(1)
    .optional()
    .describe('Its Call-ID, which chooses the node where a set goes by Call-IDs.'),
  at: time
    .optional()
    .describe(
      'Charges the call at the rates in force then. All else is as it is now. Refused for ' +
        'a call that asks no rate.',
    ),
})

type SimulateRequest = z.output<typeof simulateBody>
type SimulateDeps = Pick<Platform, 'store' | 'engine' | 'now' | 'ocs'>

/** Throws 400 or 404 where there is no such call to be simulated. */
export async function simulateFor(
  principal: Principal,
  request: SimulateRequest,
  deps: SimulateDeps,
) {
  const isChosen = request.source === undefined
  const { source, others } = isChosen
    ? await usualSource(principal, request.from, deps.store)
    : { source: await sourceOf(principal, request.source ?? '', deps.store), others: [] }
  if (source.kind === 'extension' && source.extension !== request.from)
    throw invalid('from', `must be ${source.extension}: a phone calls as itself`)
  const { from, to, call_id: callId, at } = request
  const { tenantId } = principal
  const simulation = await deps.engine.simulate({ source, from, to, callId, at, tenantId })
  if (simulation === undefined)
    throw isChosen
      ? notNamed(others)
      : invalid('source', 'may not call: it is inactive, or takes calls only')
  if (!isVisible(simulation, principal)) throw notFound('source')
  if (at !== undefined && simulation.payment.kind !== 'asked')
    throw invalid('at', 'changes nothing: no rate is asked for this call')
  const view = await viewOf(simulation, at ?? deps.now(), principal, deps)
  return { ...view, other_sources: others.slice(0, MAX_SOURCES) }
}

/** Named of those that a request without `source` could mean. */
const MAX_SOURCES = 10

const invalid = (path: string, message: string) =>
  badRequest('The call cannot be simulated', [{ path, message }])

async function sourceOf(
  principal: Principal,
  source: string,
  store: Store,
): Promise<SimulatedSource> {
  const address = addressIn(source)
  if (address !== undefined) return { kind: 'address', ...address }
  const at = source.lastIndexOf('@')
  const [found] =
    at === -1
      ? await carriers(principal, store, source)
      : await extensions(principal, store, source.slice(0, at), source.slice(at + 1).toLowerCase())
  if (found === undefined) throw notFound('source')
  return found.source
}

/** `203.0.113.7`, `203.0.113.7:5060`, `2001:db8::1` or `[2001:db8::1]:5060`. */
function addressIn(text: string): { address: string; port: number } | undefined {
  const bare = text.replace(/^\[(.*)\]$/, '$1')
  if (parseAddress(bare)) return { address: bare, port: 5_060 }
  const [, address = '', port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  return parseAddress(address) ? { address, port: Number(port) } : undefined
}

/** A source with the name by which `source` of a request names it. */
interface NamedSource {
  readonly source: SimulatedSource
  readonly name: string
}

/**
 * The extension that calls; the only trunk, for a number; or a program of the platform, which may
 * name any payer.
 */
async function usualSource(principal: Principal, from: string, store: Store) {
  const phones = await extensions(principal, store, from)
  const trunks = await carriers(principal, store)
  const [phone, otherPhone] = phones
  const [trunk, otherTrunk] = trunks
  const isExtension = phone !== undefined
  const only = isExtension
    ? otherPhone === undefined && phone
    : otherTrunk === undefined && trunk !== undefined && trunk
  const names = (found: readonly NamedSource[]) =>
    found.flatMap(({ source, name }) => (only && only.source === source ? [] : [name]))
  const others = [...names(phones), ...names(trunks)]
  if (only) return { source: only.source, others }
  // A program of the platform calls for numbers, and no tenant sees it.
  if (isExtension || principal.tenantId !== null) throw notNamed(others)
  return { source: { kind: 'trusted' } as const, others }
}

const notNamed = (others: readonly string[]) =>
  invalid(
    'source',
    `is required: name a carrier, an address or an extension with its domain${
      others.length === 0 ? '' : `, such as ${others.slice(0, MAX_SOURCES).join(', ')}`
    }`,
  )

async function extensions(
  { tenantId, domain: ownDomain }: Principal,
  store: Store,
  extension: string,
  domain?: string,
): Promise<readonly NamedSource[]> {
  let query = store.db
    .selectFrom('extension')
    .select(['domain', 'extension'])
    .where('extension', '=', extension)
    .orderBy('domain')
    .limit(MAX_SOURCES)
  if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
  if (ownDomain !== null) query = query.where('domain', '=', ownDomain)
  if (domain !== undefined) query = query.where('domain', '=', domain)
  const found = await all(store, query)
  return found.map((row) => ({
    source: { kind: 'extension', ...row },
    name: `${row.extension}@${row.domain}`,
  }))
}

/** Finds carriers by name, or else those whose calls are taken. */
async function carriers(
  { tenantId }: Principal,
  store: Store,
  name?: string,
): Promise<readonly NamedSource[]> {
  let query = store.db
    .selectFrom('carrier')
    .select(['id', 'name'])
    .orderBy('name')
    .limit(MAX_SOURCES)
  if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
  query =
    name === undefined
      ? query.where('is_active', '=', 1).where('direction', '!=', 'out')
      : query.where('name', '=', name)
  const found = await all(store, query)
  return found.map((row) => ({ source: { kind: 'carrier', carrierId: row.id }, name: row.name }))
}

/** A tenant asks about calls of its own sources; others do not exist for it. */
const isVisible = ({ origin }: Simulation, { tenantId }: Principal): boolean =>
  tenantId === null || (origin.kind !== 'proxy' && origin.tenantIds.includes(tenantId))

/**
 * Hidden from tenants: costs of carriers, and resources of others that take no part in the call.
 */
async function viewOf(
  simulation: Simulation,
  at: number,
  principal: Principal,
  deps: SimulateDeps,
) {
  const { verdict, origin, candidates, passedOver, order, setId, direction } = simulation
  const { tenantId } = principal
  // A margin and a cost tell the price.
  const isPriceShown = principal.scopes.has('rates:read')
  const costs = tenantId === null ? await costsOf(simulation, at, deps) : []
  const isRefused = verdict.kind === 'refused'
  const { payment } = simulation
  const isOwn =
    tenantId === null || payment.kind !== 'asked' || payment.payer?.tenantId === tenantId
  return {
    verdict: verdict.kind,
    sip_code: isRefused ? verdict.status : null,
    reason: isRefused ? verdict.reason : null,
    code: 'code' in verdict ? verdict.code : null,
    denial_text: isRefused ? textOf(verdict, isOwn) : verdict.kind === 'dropped' ? BANNED : null,
    from: simulation.callerNumber,
    to: simulation.calledNumber,
    direction,
    verification: simulation.verification,
    emergency: simulation.isEmergency,
    source: { kind: origin.kind, id: origin.id, name: origin.name },
    payment: await paymentView(simulation, at, principal, deps.store),
    order,
    set_id: setId,
    decided_by_number: numberView(simulation.decidedByNumber, tenantId),
    hooks: simulation.hooks,
    candidates: candidates.map(
      (
        {
          minuteMicros: _,
          profit,
          share,
          presented,
          ruledBy,
          invite,
          hunting,
          lowQuality,
          ...candidate
        },
        index,
      ) => ({
        ...candidate,
        expected: expectedView(profit, principal, isOwn),
        hunting: hunting && huntingViewOf(hunting),
        presented: presentedView(presented),
        invite: invite && { uri: invite.uri, headers: { ...invite.headers } },
        ruled_by: [...ruledBy],
        withheld_text: storedDenialText(candidate.withheld, null),
        low_quality:
          lowQuality !== null && (tenantId === null || lowQuality.tenantId === tenantId)
            ? lowQualityText(lowQuality)
            : null,
        share: Math.round(share * 1_000) / 1_000,
        carrier_price_exact: decimalOrNull(costs[index]?.micros),
        margin_exact: isPriceShown ? decimalOrNull(marginOf(costs[index], payment)) : null,
      }),
    ),
    passed_over: passedOver
      .filter((each) => tenantId === null || each.tenantId === tenantId)
      .map(({ kind, name, uri, why, profit }) => ({
        kind,
        name,
        uri,
        why,
        expected: expectedView(profit, principal, isOwn),
      })),
  }
}

/**
 * The cost by a carrier is for its owner.
 *
 * @param isPayerOwn the payer is a customer of the asker.
 */
function expectedView(
  profit: ExpectedProfit | null | undefined,
  { tenantId, scopes }: Principal,
  isPayerOwn: boolean,
) {
  const isOwn = tenantId === null || profit?.carrierTenantId === tenantId
  if (profit == null || !isOwn || !scopes.has('rates:read')) return null
  const sale = isPayerOwn ? profit : unsold
  return {
    seconds: profit.seconds,
    price_exact: decimalOrNull(sale.saleMicros),
    currency: sale.saleCurrency,
    cost_exact: decimalOrNull(profit.costMicros),
    cost_currency: profit.costCurrency,
    margin_exact: decimalOrNull(sale.marginMicros),
    is_below_margin: profit.verdict !== 'kept',
  }
}

const unsold = { saleMicros: null, saleCurrency: null, marginMicros: null }

const huntingViewOf = (rules: HuntingRules): z.output<typeof huntingView> => ({
  next_on: rules.nextOn && [...rules.nextOn],
  stop_on: [...rules.stopOn],
  max_attempts: rules.maxAttempts,
  max_seconds: rules.maxSeconds,
  redirects: rules.redirects,
  answers: rules.answers.map((each) => ({ ...each })),
})

/** Rows of others are not shown to a tenant. */
function numberView(row: Simulation['decidedByNumber'], asker: number | null) {
  if (row === null || (asker !== null && row.tenantId !== asker)) return null
  const { id, first: number, last } = row
  return { id, number, last_number: last === number ? null : last }
}

function presentedView(shown: Simulation['candidates'][number]['presented']) {
  if (shown === null) return null
  const { number, asserted, isPrivate, attestation, why } = shown
  return { number, asserted, private: isPrivate, attestation, why }
}

export type SimulationView = Awaited<ReturnType<typeof simulateFor>>

const BANNED =
  'The source is banned: its packets are dropped unread. An operator can lift the ban ' +
  '(`/guard/bans`).'

/** The price of a carrier for a call of one minute. */
interface CarrierCost {
  readonly micros: number
  /** Undefined: the carrier has no price list any more. */
  readonly currency: string | undefined
}

/** Costs by candidate; undefined: its carrier has no price for the number. */
async function costsOf(
  { candidates, calledNumber }: Simulation,
  at: number,
  { store, ocs }: SimulateDeps,
): Promise<readonly (CarrierCost | undefined)[]> {
  const ids = candidates.flatMap(({ kind, id }) => (kind === 'gateway' && id !== null ? [id] : []))
  if (ids.length === 0) return []
  const query = store.db
    .selectFrom('carrier')
    .innerJoin('rate_plan', 'rate_plan.id', 'carrier.rate_plan_id')
    .select(['carrier.id', 'rate_plan.id as planId', 'rate_plan.currency'])
    .where('carrier.id', 'in', ids)
  const pricedBy = (planId: number, number: string): number | undefined => {
    const quote = ocs?.quote(planId, number, 60, at)
    return quote?.rate.isBlocked === false ? quote.costMicros : undefined
  }
  const plans = new Map((await all(store, query)).map((row) => [row.id, row]))
  return candidates.map(({ kind, id, number, minuteMicros }) => {
    const plan = kind === 'gateway' && id !== null ? plans.get(id) : undefined
    // A least-cost route has compared the price; of another route it is looked up.
    const micros =
      minuteMicros ??
      (plan && pricedBy(plan.planId, number ?? calledNumber)) ??
      (plan && pricedBy(plan.planId, calledNumber))
    return micros === undefined ? undefined : { micros, currency: plan?.currency }
  })
}

function marginOf(cost: CarrierCost | undefined, payment: Simulation['payment']) {
  if (cost === undefined || payment.kind !== 'asked' || payment.minuteMicros === null) return null
  return payment.tariff?.currency === cost.currency ? payment.minuteMicros - cost.micros : null
}

const decimalOrNull = (micros: number | null | undefined): string | null =>
  micros == null ? null : moneyToDecimal(micros)

/**
 * No code: no phone of the extension is registered. Details about a payer are for its tenant only.
 */
const textOf = (
  { code, detail }: Extract<SimulatedVerdict, { readonly kind: 'refused' }>,
  isOwn: boolean,
): string => denialText(code ?? 'extension_unregistered', isOwn ? detail : undefined)

const noPayment = {
  customer_id: null,
  customer: null,
  code: null,
  rate: null,
  price_exact: null,
  at: null,
}

/**
 * The price needs `rates:read`. A tenant does not see who pays where that is no customer of its
 * own.
 */
async function paymentView(
  { payment }: Simulation,
  at: number,
  { tenantId, scopes }: Principal,
  store: Store,
) {
  if (payment.kind !== 'asked') return { kind: payment.kind, ...noPayment, longest_seconds: null }
  const { payer, code, tariff, longestSeconds } = payment
  const isOwn = tenantId === null || payer?.tenantId === tenantId
  const isUnlimited = !isOwn || !Number.isFinite(longestSeconds)
  const shown = isOwn ? payer : null
  const isPriceShown = isOwn && scopes.has('rates:read')
  return {
    kind: payment.kind,
    customer_id: shown?.customerId ?? null,
    customer: shown ? await nameOf(store, shown.customerId) : null,
    code,
    rate: tariff && isPriceShown ? rateView(tariff) : null,
    price_exact: isPriceShown ? decimalOrNull(payment.minuteMicros) : null,
    at: timeToText(at),
    longest_seconds: isUnlimited ? null : longestSeconds,
  }
}

async function nameOf(store: Store, id: number): Promise<string | null> {
  const query = store.db.selectFrom('customer').select('name').where('id', '=', id)
  return (await first(store, query))?.name ?? null
}

function rateView(
  tariff: NonNullable<Extract<Simulation['payment'], { kind: 'asked' }>['tariff']>,
) {
  const { prefix, currency, connectFeeMicros, ratePerMinuteMicros } = tariff
  return {
    prefix,
    currency,
    connect_fee_exact: moneyToDecimal(connectFeeMicros),
    rate_per_minute_exact: moneyToDecimal(ratePerMinuteMicros),
    first_increment: tariff.firstIncrementSeconds,
    increment: tariff.incrementSeconds,
    period: tariff.period ?? null,
  }
}

const exampleSimulation = {
  verdict: 'goes_on',
  sip_code: null,
  reason: null,
  code: null,
  denial_text: null,
  from: '4930100',
  to: '4940200',
  direction: 'inbound',
  verification: null,
  emergency: false,
  source: { kind: 'carrier', id: 1, name: 'trunk' },
  other_sources: [],
  payment: {
    kind: 'asked',
    customer_id: 7,
    customer: 'acme',
    code: null,
    rate: {
      prefix: '49',
      currency: 'USD',
      connect_fee_exact: '0.00',
      rate_per_minute_exact: '0.60',
      first_increment: 1,
      increment: 1,
      period: null,
    },
    price_exact: '0.60',
    at: exampleTime,
    longest_seconds: 1_000,
  },
  order: 'turn',
  set_id: 1,
  decided_by_number: null,
  hooks: [],
  candidates: [
    {
      kind: 'node',
      uri: 'sip:10.0.0.11:5060;transport=udp',
      name: null,
      id: 1,
      number: null,
      route: null,
      phones: null,
      withheld: null,
      invite: {
        uri: 'sip:4930100@10.0.0.11:5060;transport=udp',
        headers: { From: '<sip:4930200@192.0.2.1:5060>', 'Max-Forwards': '69' },
      },
      ruled_by: [],
      hunting: null,
      signature: null,
      share: 1,
      low_quality: null,
      withheld_text: null,
      presented: null,
      carrier_price_exact: null,
      margin_exact: null,
      expected: null,
    },
  ],
  passed_over: [
    {
      kind: 'node',
      name: 'sip:10.0.0.12:5060;transport=udp',
      uri: 'sip:10.0.0.12:5060;transport=udp',
      why: 'drained',
      expected: null,
    },
  ],
}

/** `POST /telephony/simulate`: the path that a call would take now. Nothing changes. */
export const simulateRoutes = (deps: SimulateDeps) =>
  new Hono<ControlEnv>().post(
    '/telephony/simulate',
    describeRoute({
      id: 'simulateCall',
      tag: 'Calls',
      summary: 'Tell what would happen to a call now: source, payer, price and destinations',
      body: { from: '4930100', to: '4940200', source: 'trunk' },
      answer: data(simulationView, exampleSimulation),
      refusals: [404],
    }),
    requires('calls:read'),
    validate('json', simulateBody),
    async (c) => ok(c, await simulateFor(c.var.principal, c.req.valid('json'), deps)),
  )
