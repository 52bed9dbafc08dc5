/**
 * Carriers: trunks with their gateways (SPECIFICATION.md §4.7 and §10.1). Unchanged gateways keep
 * their id.
 */
import { exampleProbed, count, moment, probed, timeOrNull } from '../http/view-fields.ts'
import { isIPv4 } from 'node:net'
import { z } from 'zod'
import { hostPort } from '../../schema/sip/index.ts'
import { timeToText, toFlag } from '../../schema/columns.ts'
import {
  distributions,
  verifyPolicies,
  type VerifyPolicy,
} from '../../schema/contracts/field-values.ts'
import type { EnginePort } from '../../schema/contracts/engine.ts'
import { gatewayClaim } from '../../schema/rules/ownership.ts'
import { isAmbiguous } from '../../schema/rules/gateways.ts'
import { maxNumberRules, maxRuleLength, numberRuleProblem } from '../../schema/rules/numbers.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import { ApiError, type RequestProblem } from '../http/api-error.ts'
import {
  domain,
  host,
  isAddress,
  numberOrUserName,
  reference,
  text,
  transport,
} from '../http/fields.ts'
import { same } from '../http/rows.ts'
import { json, nested, type Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import {
  refuseReachedGateways,
  refuseOwnAddresses,
  refuseForeignAddresses,
} from './gateway-reach.ts'
import { refuseOtherPayer } from './braked.ts'
import { callerIdentity, refuseForeignCaller } from './caller-fields.ts'
import { carrierMedia, mediaFields, stripHeaders } from './media-fields.ts'
import { headerRules } from './header-rule-field.ts'
import { hunting } from './hunting-field.ts'
import { filledIn, preset } from './presets.ts'
import { probedStatusView } from './dispatcher-sets.ts'
import { badReference } from './references.ts'
import { type Definition, ResourceStore, type ViewOf, type Writing } from './resource.ts'
import { childrenOf, keyOf, putChildren } from './table-rows.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'

const gatewayBody = z
  .strictObject({
    host,
    port: z
      .int()
      .min(0)
      .max(65_535)
      .default(0)
      .describe(
        '0: use the SRV records of the host, else port 5060 (5061 for TLS), and accept ' +
          'calls from any port.',
      ),
    transport: transport.default('udp'),
    netmask: z
      .int()
      .min(8)
      .max(128)
      .optional()
      .describe('Prefix length of the source network. Defaults to the single address.'),
    inbound: z.boolean().default(true),
    outbound: z.boolean().default(true),
    priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
    weight: z.int().min(1).max(100).default(100),
  })
  .superRefine(({ host: address, netmask }, context) => {
    if (netmask === undefined) return
    if (!isAddress(address))
      context.addIssue({
        code: 'custom',
        path: ['netmask'],
        message: 'requires an IP address as host',
      })
    else if (isIPv4(address) && netmask > 32)
      context.addIssue({
        code: 'custom',
        path: ['netmask'],
        message: 'must be at most 32 for IPv4',
      })
  })
  .transform((gateway) => ({
    ...gateway,
    netmask: gateway.netmask ?? (gateway.host.includes(':') ? 128 : 32),
  }))

type GatewayBody = z.output<typeof gatewayBody>

const numberRule = z
  .strictObject({ match: z.string().max(maxRuleLength), replace: z.string().max(maxRuleLength) })
  .superRefine((rule, context) => {
    const message = numberRuleProblem(rule)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['match'], message })
  })

const numberRules = z.array(numberRule).max(maxNumberRules).default([])

const shownRules = z.array(z.strictObject({ match: z.string(), replace: z.string() }))

const callerIdModes = z.enum(['pass', 'fixed', 'pai', 'policy'])

const callerId = z
  .strictObject({
    mode: callerIdModes.default('pass'),
    value: numberOrUserName.nullish(),
  })
  .refine(({ mode, value }) => mode !== 'fixed' || typeof value === 'string', {
    path: ['value'],
    message: 'is required with mode "fixed"',
  })

/** Used in quotes in digest credentials, and in SIP URIs. */
const userName = z.string().regex(/^[0-9A-Za-z*+._@-]{1,128}$/, 'must be a SIP user name')

const authTypes = z.enum(['ip', 'digest', 'register'])

const auth = z.strictObject({
  type: authTypes
    .default('ip')
    .describe(
      'How the platform authenticates to the carrier: by IP address, by digest, or by ' +
        'registration.',
    ),
  username: userName.nullish().describe('Required for `digest` and `register`.'),
  password: text(128)
    .min(1)
    .meta({ format: 'password' })
    .nullish()
    .describe('Write only. Absent in an update: keeps the stored password; null clears it.'),
  realm: text(253)
    .min(1)
    .nullish()
    .describe('Only challenges of this realm are answered. Absent: any realm.'),
  from_user: userName.nullish().describe('User part of the From header. Defaults to the caller.'),
  from_domain: domain
    .nullish()
    .describe('Host part of the From header. Defaults to the platform’s address.'),
  expires: z
    .int()
    .min(60)
    .max(86_400)
    .nullish()
    .describe('Requested registration lifetime in seconds. Defaults to 3600.'),
})

const gatewayView = z.strictObject({
  id: z.int(),
  host: z.string(),
  port: z.int(),
  transport,
  netmask: z.int(),
  inbound: z.boolean(),
  outbound: z.boolean(),
  priority: z.int(),
  weight: z.int(),
})

const exampleGateway = {
  id: 1,
  host: '198.51.100.7',
  port: 5060,
  transport: 'udp',
  netmask: 32,
  inbound: true,
  outbound: true,
  priority: 10,
  weight: 100,
  status: exampleProbed,
}

const authColumns = {
  type: 'auth_type',
  username: 'auth_username',
  realm: 'auth_realm',
  from_user: 'auth_from_user',
  from_domain: 'auth_from_domain',
  expires: 'auth_expires_seconds',
}

const fields = field.table({
  id: field.id,
  name: field.required(field.name, { example: 'transit' }),
  tenant: field.tenant(),
  customer: field.refersTo('customer', {
    about: 'The customer that pays for calls from this carrier.',
  }),
  customer_id: field.idOf(),
  payer: field.of(field.oneOf(['customer', 'from_number']), {
    default: 'customer',
    about:
      'The payer of calls from this carrier. `customer`: the carrier’s customer. ' +
      '`from_number`, only without a customer: the customer that owns the number in ' +
      'From, within the carrier’s tenant if it has one.',
  }),
  is_active: field.of(field.yesOrNo, { default: true }),
  direction: field.of(field.oneOf(['in', 'out', 'both']), { default: 'both' }),
  gateways: field.required(
    { body: z.array(gatewayBody).min(1).max(32), view: z.array(gatewayView) },
    { example: [exampleGateway] },
  ),
  auth: field.of(
    {
      body: auth,
      view: z.strictObject({
        type: authTypes,
        username: z.string().nullable(),
        realm: z.string().nullable(),
        from_user: z.string().nullable(),
        from_domain: z.string().nullable(),
        expires: z.int().nullable(),
      }),
    },
    {
      stored: () => nested(authColumns),
      default: { type: 'ip' },
      example: {
        type: 'ip',
        username: null,
        realm: null,
        from_user: null,
        from_domain: null,
        expires: null,
      },
    },
  ),
  caller_id: field.of(
    {
      body: callerId,
      view: z.strictObject({ mode: callerIdModes, value: z.string().nullable() }),
    },
    {
      stored: () => nested({ mode: 'caller_id_mode', value: 'caller_id_value' }),
      default: { mode: 'pass' },
      example: { mode: 'pass', value: null },
    },
  ),
  caller_identity: callerIdentity,
  number_rules: field.of(
    {
      body: z.strictObject({ in: numberRules, out: numberRules }),
      view: z.strictObject({ in: shownRules, out: shownRules }),
      stored: json,
    },
    { default: { in: [], out: [] }, example: { in: [], out: [{ match: '^00', replace: '' }] } },
  ),
  ...mediaFields,
  media: carrierMedia,
  strip_headers: { ...stripHeaders, example: ['Diversion'] },
  header_rules: headerRules,
  stir: field.of(
    {
      body: z.strictObject({
        sign: z.boolean().default(false).describe('Calls to it are signed (STIR/SHAKEN).'),
        verify: z
          .enum(verifyPolicies)
          .default('off')
          .describe(
            'The Identity headers of its calls: `mark` writes what they prove into the record, ' +
              '`refuse` also refuses calls whose caller is not proved.',
          ),
      }),
      view: z.strictObject({ sign: z.boolean(), verify: z.enum(verifyPolicies) }),
    },
    {
      stored: () => ({
        read: (row) => ({ sign: row['stir_sign'] === 1, verify: row['stir_verify'] }),
        write: (value) => {
          const { sign, verify } = value as { sign: boolean; verify: VerifyPolicy }
          return { stir_sign: toFlag(sign), stir_verify: verify }
        },
      }),
      default: { sign: false, verify: 'off' },
      example: { sign: true, verify: 'mark' },
    },
  ),
  hunting,
  preset: field.written(preset, { isOnlyAtCreation: true }),
  distribution: field.of(field.oneOf(distributions), {
    default: 'weight',
    about:
      'How gateways of equal priority share its calls: drawn by `weight`, in turn ' +
      '(`round_robin`), or exactly as their weights say (`percent`).',
  }),
  max_calls: field.of(field.limit, { default: 0, about: '0: unlimited.', example: 100 }),
  max_cps: field.of(field.limit, { default: 0, about: '0: unlimited.', example: 10 }),
  rate_plan: field.refersTo('rate_plan', {
    about: 'Prices of the carrier, compared by routes with mode "lcr".',
  }),
  rate_plan_id: field.idOf(),
  inbound_set: field.written(reference.nullish(), {
    refersTo: 'dispatcher_set',
    about: 'Number or name of the dispatcher set for its calls. Absent: inbound routes decide.',
  }),
  inbound_set_id: field.idOf({ example: 1 }),
  created_at: field.createdAt,
  updated_at: field.updatedAt,
})

type CarrierBody = z.output<typeof fields.body>

/** A carrier with its status from the engine. */
export const liveCarrierView = fields.view
  .extend({
    gateways: z.array(
      gatewayView.extend({
        status: probed.nullable().describe('Null when the gateway is not probed.'),
      }),
    ),
    registration: z
      .enum(['registered', 'unregistered', 'registering', 'failed'])
      .nullable()
      .describe('Null when the carrier requires no registration.'),
    status: z.strictObject({
      is_usable: z.boolean(),
      active_calls: count,
      registration: z
        .strictObject({
          registrar: z.string(),
          expires_at: moment.nullable(),
          next_attempt_at: moment.nullable(),
          last_answer: z
            .strictObject({ at: moment, status: z.int(), reason: z.string() })
            .nullable(),
        })
        .nullable(),
    }),
  })
  .meta({ id: 'Carrier' })

type CarrierWriting = Writing<typeof fields.body, typeof fields.view>
export type CarrierView = ViewOf<typeof fields.view>
export type LiveCarrier = z.output<typeof liveCarrierView>

const gateways = {
  table: 'carrier_gateway',
  parent: 'carrier_id',
  keys: ['host', 'port', 'transport', 'netmask'],
} as const

export const carriers: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Carrier',
  table: 'carrier',
  path: '/routing/carriers',
  scope: 'carriers',
  fields,
  hasOwnRoutes: true,
  children: {
    gateways: {
      ...gateways,
      order: 'id',
      view: ({ carrier_id: _, is_by_tenant: _writer, is_inbound, is_outbound, ...gateway }) => ({
        ...gateway,
        inbound: is_inbound === 1,
        outbound: is_outbound === 1,
      }),
      document: ({ id: _, ...gateway }: z.output<typeof gatewayView>) => gateway,
    },
  },
  found: { title: 'carrier.name', screen: 'carriers', page: 'carrier.id' },
  search: ['carrier.name'],
  order: ['carrier.name'],
  limits: ['carriers'],
  childLimits: ['gateways'],
  store: (deps) => new CarrierStore(carriers, deps),
  prepare: withPreset,
  destinations: (carrier) => carrier.gateways.map(uriOf),
  async check(writing) {
    const { body: carrier, before, scope, tenantId, columns, deps } = writing
    const { store, reserved } = deps
    if (columns['customer_id'] !== null && carrier.payer === 'from_number')
      throw badReference('payer', 'is "from_number", but the carrier has a customer')
    await refuseWithoutCredentials(writing)
    await refuseForeignCaller(store, scope, carrier, before)
    await refuseOtherCurrency(writing)
    const claimed = { ...carrier, auth: carrier.auth.type }
    const claims = carrier.gateways.map((gateway) => gatewayClaim(gateway, claimed))
    const path = (index: number) => `gateways.${index}.host`
    await refuseForeignAddresses(store, { tenantId, scope }, claims, reserved.networks, path)
    const payer = columns['customer_id']
    const after = { customer_id: typeof payer === 'number' ? payer : null }
    if (before !== undefined) await refuseOtherPayer(store, before, after, scope)
    return undefined
  },
  async written(id, writing) {
    await putPassword(id, writing)
    await putGateways(id, writing)
  },
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'carrier', ids: [id] }),
  beyond: whoPays,
  described: {
    tag: 'Routing',
    shown: liveCarrierView,
    instances: 'all',
    example: {
      ...fields.example,
      registration: null,
      status: { is_usable: true, active_calls: 0, registration: null },
    },
    body: { name: 'transit', gateways: [{ host: '198.51.100.7' }], max_calls: 100, max_cps: 10 },
    patch: { max_calls: 200 },
  },
}

class CarrierStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  protected override unsupported({ auth: given }: CarrierBody) {
    return withoutEffect(given)
  }

  override async isNewSecret(carrierId: number, { auth: { password } }: CarrierBody) {
    if (password === undefined) return false
    const { store } = this.deps
    const stored = await sealedPassword(store, carrierId)
    return (stored === null ? null : store.secrets.open(passwordOf(carrierId), stored)) !== password
  }
}

/** The carrier with its status from the engine. */
export function withLiveStatus(
  carrier: CarrierView,
  { trunks, calls }: Pick<EnginePort, 'trunks' | 'calls'>,
): LiveCarrier {
  const registration = trunks.registrationOf(carrier.id)
  const probedGateways = carrier.gateways.map((gateway) => {
    const status = trunks.gatewayStatus(gateway.id)
    return { ...gateway, status: status === undefined ? null : probedStatusView(status) }
  })
  const isReachable = probedGateways.some(
    ({ status }) => status === null || status.state === 'active',
  )
  return {
    ...carrier,
    gateways: probedGateways,
    registration: registration?.state ?? null,
    status: {
      is_usable: carrier.is_active && isReachable,
      active_calls: calls.countByCarrier(carrier.id),
      registration:
        registration === undefined
          ? null
          : {
              registrar: registration.registrar,
              expires_at: timeOrNull(registration.expiresAt),
              next_attempt_at: timeOrNull(registration.nextAttemptAt),
              last_answer: registration.lastAnswer && {
                ...registration.lastAnswer,
                at: timeToText(registration.lastAnswer.at),
              },
            },
    },
  }
}

/** Setting the payer requires the scope that assigns numbers to customers. */
function whoPays({ before, after }: WrittenRow<CarrierView>): readonly BeyondScope[] {
  return fieldsWhere(
    [
      after.customer_id !== null && after.customer_id !== before?.customer_id,
      'customer',
      ['customers:write'],
    ],
    [after.payer === 'from_number' && before?.payer !== after.payer, 'payer', ['customers:write']],
  )
}

/** A preset also means TLS to the gateways that name no other transport. */
function withPreset(given: CarrierBody): CarrierBody {
  const carrier = filledIn(given)
  if (carrier.preset === undefined) return carrier
  const byTls = ({ transport: named, ...gateway }: GatewayBody) => ({
    ...gateway,
    transport: named === 'udp' ? ('tls' as const) : named,
  })
  return { ...carrier, gateways: carrier.gateways.map(byTls) }
}

/** `refuseWithoutCredentials` checks the password: an update may keep the stored one. */
function withoutEffect({ type, ...fields }: CarrierBody['auth']): (RequestProblem | false)[] {
  const credentials = ['username', 'password', 'realm'] as const
  const useless = type === 'ip' ? [...credentials, 'expires' as const] : ['expires' as const]
  return type === 'register'
    ? []
    : useless.map(
        (field) =>
          fields[field] != null && {
            path: `auth.${field}`,
            message: `has no effect with auth "${type}"; in an update, null clears it`,
          },
      )
}

async function refuseWithoutCredentials({ body: { auth: given }, before, deps }: CarrierWriting) {
  if (given.type === 'ip') return
  if (given.username == null)
    throw badReference('auth.username', `is required with auth "${given.type}"`)
  const keepsPassword =
    given.password === undefined &&
    before !== undefined &&
    (await sealedPassword(deps.store, before.id)) !== null
  if (given.password == null && !keepsPassword)
    throw badReference('auth.password', `is required with auth "${given.type}"`)
}

/**
 * Least-cost routing compares plain numbers, so carriers that may meet in a route must share a
 * currency.
 */
async function refuseOtherCurrency({ before, tenantId, columns, deps }: CarrierWriting) {
  const planId = columns['rate_plan_id']
  if (typeof planId !== 'number') return
  const others = deps.store.db
    .selectFrom('carrier')
    .innerJoin('rate_plan', 'rate_plan.id', 'carrier.rate_plan_id')
    .select('currency')
    .where('carrier.id', '<>', before?.id ?? 0)
    .where('currency', '<>', (row) =>
      row.selectFrom('rate_plan as own').select('own.currency').where('own.id', '=', planId),
    )
    // Platform routes cannot use carriers of tenants.
    .where((row) =>
      row.or([
        row('carrier.tenant_id', 'is', null),
        row('carrier.tenant_id', same(tenantId), tenantId),
      ]),
    )
  const other = await first(deps.store, others.limit(1))
  if (other === undefined) return
  throw badReference('rate_plan', `must be in ${other.currency}, like those of other carriers`)
}

const passwordOf = (row: number) => ({ table: 'carrier', column: 'auth_password', row }) as const

async function sealedPassword(store: Store, id: number): Promise<string | null> {
  const query = store.db.selectFrom('carrier').select('auth_password').where('id', '=', id)
  return (await first(store, query))?.auth_password ?? null
}

/**
 * Absent, the stored one stays, with any kind of auth: only null clears it. It is encrypted for its
 * row, so the row is written first.
 */
async function putPassword(id: number, { body: { auth: given }, deps }: CarrierWriting) {
  const { password } = given
  if (password === undefined) return
  const { store } = deps
  const sealed = password === null ? null : store.secrets.seal(passwordOf(id), password)
  const query = store.db.updateTable('carrier').set({ auth_password: sealed })
  await execute(store, query.where('id', '=', id))
}

async function putGateways(id: number, writing: CarrierWriting): Promise<void> {
  const { body: carrier, scope, tenantId, deps } = writing
  const { store, reserved } = deps
  await refuseAmbiguous(id, writing)
  const present = (await childrenOf(store, gateways, [id], 'id')).get(id) ?? []
  const known = new Set(present.map((row) => keyOf(gateways, row)))
  const isNew = (gateway: GatewayBody) => !known.has(keyOf(gateways, gateway))
  const fresh = carrier.gateways.flatMap((gateway, index) => {
    const { host: at, port, transport: by, netmask } = gateway
    const endpoint = { host: at, port, transport: by, netmask, path: `gateways.${index}.host` }
    return isNew(gateway) ? [{ carrier: carrier.name, tenantId, ...endpoint }] : []
  })
  await refuseReachedGateways(store, fresh, tenantId)
  const written = fresh.map((gateway) => ({ path: gateway.path, uri: uriOf(gateway) }))
  refuseOwnAddresses(written, scope, reserved.own)
  const rows = carrier.gateways.map(({ inbound, outbound, ...gateway }): Row => {
    const columns = { ...gateway, is_inbound: toFlag(inbound), is_outbound: toFlag(outbound) }
    return known.has(keyOf(gateways, columns))
      ? columns
      : { ...columns, is_by_tenant: toFlag(scope.tenantId !== null) }
  })
  await putChildren(store, gateways, id, rows)
}

/** SPECIFICATION.md §10.1: rejects ambiguous gateways of one owner. */
async function refuseAmbiguous(id: number, { body: carrier, tenantId, deps }: CarrierWriting) {
  for (const [index, gateway] of carrier.gateways.entries()) {
    const key = keyOf(gateways, gateway)
    const twin = carrier.gateways.findIndex((each) => keyOf(gateways, each) === key)
    if (twin < index) throw badReference(`gateways.${index}.host`, `duplicates gateways.${twin}`)
  }
  if (!carrier.is_active || carrier.direction === 'out') return
  const others = await inboundGatewaysOfOthers(deps.store, id, tenantId)
  for (const [index, gateway] of carrier.gateways.entries()) {
    const rival = gateway.inbound && others.find((other) => isAmbiguous(gateway, other))
    if (!rival) continue
    const message = `the carrier ${JSON.stringify(rival.name)} has the same network and port`
    const title = 'The source would be ambiguous between two carriers'
    const details = [{ path: `gateways.${index}.host`, message }]
    throw new ApiError(409, 'ambiguous_gateway', title, { details })
  }
}

const inboundGatewaysOfOthers = (store: Store, carrierId: number, tenantId: number | null) =>
  all(
    store,
    store.db
      .selectFrom('carrier_gateway')
      .innerJoin('carrier', 'carrier.id', 'carrier_gateway.carrier_id')
      .select(['carrier.name', 'host', 'port', 'transport', 'netmask'])
      .where('carrier.id', '<>', carrierId)
      .where('carrier.tenant_id', same(tenantId), tenantId)
      .where('carrier.is_active', '=', 1)
      .where('carrier.direction', '<>', 'out')
      .where('is_inbound', '=', 1),
  )

const uriOf = ({
  host: at,
  port,
  transport: by,
}: Pick<GatewayBody, 'host' | 'port' | 'transport'>): string =>
  `sip:${hostPort(at, port)};transport=${by}`
