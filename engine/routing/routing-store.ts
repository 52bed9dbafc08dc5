/** Carriers and routes from the database. A row that cannot be used is left out and reported. */
import { fromFlag } from '../../schema/columns.ts'
import { lossTermsOf } from '../../schema/rules/loss-protection.ts'
import type { Database } from '../../schema/tables/database.ts'
import { mediaRulesOf, readNames } from '../../schema/rules/media.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, inSlices, SLICE, slicesOf } from '../../schema/sql/query.ts'
import { Buckets } from '../../schema/buckets.ts'
import type { Selectable } from 'kysely'
import type {
  AgentRecord,
  CarrierRecord,
  GatewayRecord,
  InboundRouteRecord,
  InboundTarget,
  OutboundRouteRecord,
  RewriteNumber,
  RoutingRecords,
  StirPolicy,
  TenantRecord,
} from './routing-records.ts'
import {
  compileNumberRules,
  type NumberRule,
  numberRuleProblem,
} from '../../schema/rules/numbers.ts'
import {
  compileHeaderRules,
  type CompiledRules,
  type HeaderRule,
  ruleActions,
  ruleDirections,
  ruleParts,
} from '../../schema/rules/header-rules.ts'
import { readHunting } from '../../schema/rules/hunting.ts'
import type { HuntingRules } from '../../schema/contracts/hunting.ts'
import type { ChangedRouting } from '../../schema/contracts/changed-rows.ts'

/** All rows, a slice after the other, or those that have changed. */
export async function loadRouting(store: Store, changed?: ChangedRouting): Promise<RoutingRecords> {
  const problems: string[] = []
  const records = { ...none, problems }
  switch (changed?.of) {
    case 'tenant':
      return { ...records, tenants: await loadTenants(store, changed.ids) }
    case 'carrier':
      return { ...records, ...(await loadCarriers(store, problems, changed.ids)) }
    case 'outbound_route':
      return { ...records, outboundRoutes: await loadOutboundRoutes(store, problems, changed.ids) }
    case 'inbound_route':
      return { ...records, inboundRoutes: await loadInboundRoutes(store, problems, changed.ids) }
    case 'agent':
      return { ...records, agents: await loadAgents(store, changed.ids) }
    case 'dispatcher_set':
      return { ...records, ...(await loadLeadingTo(store, problems, changed.ids)) }
    case undefined:
      return {
        tenants: await loadTenants(store),
        ...(await loadCarriers(store, problems)),
        outboundRoutes: await loadOutboundRoutes(store, problems),
        inboundRoutes: await loadInboundRoutes(store, problems),
        agents: await loadAgents(store),
        problems,
      }
  }
}

const none = {
  tenants: [],
  carriers: [],
  gateways: [],
  outboundRoutes: [],
  inboundRoutes: [],
  agents: [],
}

/** Carriers and inbound routes that name one of these sets. */
async function loadLeadingTo(store: Store, problems: string[], setIds: readonly number[]) {
  const { db } = store
  const carriers = db.selectFrom('carrier').select('id').where('inbound_set_id', 'in', setIds)
  const routes = db
    .selectFrom('inbound_route')
    .select('id')
    .where('target_type', '=', 'set')
    .where('target', 'in', setIds.map(String))
  const idsOf = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id)
  return {
    ...(await loadCarriers(store, problems, idsOf(await all(store, carriers)))),
    inboundRoutes: await loadInboundRoutes(store, problems, idsOf(await all(store, routes))),
  }
}

/** Rows by ascending id: these, or (undefined) all. */
async function rowsOf<Row extends { readonly id: number }>(
  ids: readonly number[] | undefined,
  some: (ids: readonly number[]) => Promise<readonly Row[]>,
  after: (id: number) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const rows: Row[] = []
  if (ids === undefined) for await (const slice of slicesOf(after)) rows.push(...slice)
  else for await (const slice of inSlices(ids)) rows.push(...(await some(slice)))
  return rows
}

async function loadTenants(store: Store, ids?: readonly number[]): Promise<TenantRecord[]> {
  const { db } = store
  const domains = new Buckets<number, { readonly domain: string }>()
  const numbers = new Buckets<number, { readonly prefix: string }>()
  const domainQuery = db.selectFrom('tenant_domain').selectAll()
  const numberQuery = db.selectFrom('tenant_number').selectAll()
  for (const row of await all(store, ids ? domainQuery.where('tenant_id', 'in', ids) : domainQuery))
    domains.add(row.tenant_id, row)
  for (const row of await all(store, ids ? numberQuery.where('tenant_id', 'in', ids) : numberQuery))
    numbers.add(row.tenant_id, row)
  const query = db.selectFrom('tenant').select(['id', 'slug', 'is_active']).orderBy('id')
  const tenants = await rowsOf(
    ids,
    (some) => all(store, query.where('id', 'in', some)),
    (after) => all(store, query.where('id', '>', after).limit(SLICE)),
  )
  return tenants.map((row) => ({
    tenantId: row.id,
    slug: row.slug,
    isActive: fromFlag(row.is_active),
    domains: domains.of(row.id).map(({ domain }) => domain),
    numbers: numbers.of(row.id).map(({ prefix }) => prefix),
  }))
}

async function loadCarriers(
  store: Store,
  problems: string[],
  ids?: readonly number[],
): Promise<Pick<RoutingRecords, 'carriers' | 'gateways'>> {
  const { db } = store
  const query = db.selectFrom('carrier').selectAll().orderBy('id')
  const rows = await rowsOf(
    ids,
    (some) => all(store, query.where('id', 'in', some)),
    (after) => all(store, query.where('id', '>', after).limit(SLICE)),
  )
  const gatewayQuery = db.selectFrom('carrier_gateway').selectAll().orderBy('id')
  const gatewayRows = await rowsOf(
    ids,
    (some) => all(store, gatewayQuery.where('carrier_id', 'in', some)),
    (after) => all(store, gatewayQuery.where('id', '>', after).limit(SLICE)),
  )
  const gateways = new Buckets<number, Selectable<Database['carrier_gateway']>>()
  for (const gateway of gatewayRows) gateways.add(gateway.carrier_id, gateway)
  const carriers = rows.flatMap((row) => {
    const numberRules = compileBoth(row.number_rules)
    const codecs = row.codecs === null ? null : readNames(row.codecs)
    const password = openPassword(store, row)
    const headerRules = readHeaderRules(row.header_rules)
    const hunting = huntingOf(row)
    if (
      typeof numberRules !== 'string' &&
      typeof headerRules !== 'string' &&
      typeof hunting !== 'string' &&
      codecs !== undefined &&
      password !== undefined
    ) {
      const own = gateways.of(row.id).map(gatewayOf)
      const carrier = carrierOf({ ...row, auth_password: password }, own, numberRules)
      return [{ ...carrier, ...(headerRules && { headerRules }), ...(hunting && { hunting }) }]
    }
    // Without its rules a carrier would be sent wrong numbers: better none.
    const wrong =
      codecs === undefined ? 'codecs are not a list of names' : 'its password is damaged'
    const rules = [numberRules, headerRules, hunting].find((each) => typeof each === 'string')
    const reason = typeof rules === 'string' ? rules : wrong
    problems.push(`carrier ${row.name} is not used: ${reason}`)
    return []
  })
  const places = rows.flatMap(({ id: carrierId, name: carrier, tenant_id: tenantId }) =>
    gateways.of(carrierId).map(({ host, port, transport, netmask }) => ({
      carrierId,
      carrier,
      tenantId,
      host,
      port,
      transport,
      netmask,
    })),
  )
  return { carriers, gateways: places }
}

/** Undefined: it cannot be read. */
function openPassword(
  store: Store,
  { id, auth_password: sealed }: Selectable<Database['carrier']>,
): string | null | undefined {
  if (sealed === null) return null
  return store.secrets.open({ table: 'carrier', column: 'auth_password', row: id }, sealed)
}

function carrierOf(
  row: Selectable<Database['carrier']>,
  gateways: readonly GatewayRecord[],
  numberRules: CarrierRecord['numberRules'],
): CarrierRecord {
  return {
    carrierId: row.id,
    name: row.name,
    tenantId: row.tenant_id,
    customerId: row.customer_id,
    payer: row.payer,
    isActive: fromFlag(row.is_active),
    direction: row.direction,
    auth: {
      type: row.auth_type,
      username: row.auth_username,
      password: row.auth_password,
      realm: row.auth_realm,
      fromUser: row.auth_from_user,
      fromDomain: row.auth_from_domain,
      expiresSeconds: row.auth_expires_seconds,
    },
    callerId: { mode: row.caller_id_mode, value: row.caller_id_value },
    numberRules,
    media: mediaRulesOf(row),
    stripHeaders: headersOf(row),
    stir: stirOf(row),
    maxCalls: row.max_calls,
    maxCps: row.max_cps,
    ratePlanId: row.rate_plan_id,
    inboundSetId: row.inbound_set_id,
    gateways,
    ...(row.distribution !== 'weight' && { distribution: row.distribution }),
  }
}

/** Undefined: it is off in both directions. */
function stirOf(row: Selectable<Database['carrier']>): StirPolicy | undefined {
  const isSigned = fromFlag(row.stir_sign)
  const { stir_verify: verify } = row
  return isSigned || verify !== 'off' ? { isSigned, verify } : undefined
}

/** Undefined: its calls hunt as usual. A text: why they cannot. */
function huntingOf({
  hunting,
}: Selectable<Database['carrier']>): HuntingRules | string | undefined {
  return hunting === null ? undefined : (readHunting(hunting) ?? 'hunting has no rules')
}

const gatewayOf = (row: Selectable<Database['carrier_gateway']>): GatewayRecord => ({
  gatewayId: row.id,
  host: row.host,
  port: row.port,
  transport: row.transport,
  netmask: row.netmask,
  isInbound: fromFlag(row.is_inbound),
  isOutbound: fromFlag(row.is_outbound),
  priority: row.priority,
  weight: row.weight,
  isByTenant: fromFlag(row.is_by_tenant) || undefined,
})

async function loadOutboundRoutes(
  store: Store,
  problems: string[],
  ids?: readonly number[],
): Promise<OutboundRouteRecord[]> {
  const query = store.db.selectFrom('outbound_route').selectAll().orderBy('id')
  const rows = await rowsOf(
    ids,
    (some) => all(store, query.where('id', 'in', some)),
    (after) => all(store, query.where('id', '>', after).limit(SLICE)),
  )
  return rows.map((row) => ({
    routeId: row.id,
    name: row.name,
    tenantId: row.tenant_id,
    customerId: row.customer_id,
    carrierId: row.carrier_id,
    prefix: row.prefix,
    priority: row.priority,
    weight: row.weight,
    mode: row.mode,
    strip: row.strip,
    prepend: row.prepend,
    isActive: fromFlag(row.is_active),
    isEmergency: fromFlag(row.is_emergency),
    ...(row.loss_protection !== null && { lossTerms: lossTermsOf(row) }),
    distribution: row.distribution,
    ...floorsIn(row.quality, row.name, problems),
  }))
}

/** Without its floors a route is tried in its place. */
function floorsIn(
  json: string | null,
  route: string,
  problems: string[],
): Pick<OutboundRouteRecord, 'floors'> {
  if (json === null) return {}
  const stored = readJson(json)
  const at = (name: string): number | null => {
    const value: unknown =
      typeof stored === 'object' && stored !== null ? Reflect.get(stored, name) : undefined
    return typeof value === 'number' && value > 0 ? value : null
  }
  const windowSeconds = at('window')
  const minCalls = at('min_calls')
  if (windowSeconds === null || minCalls === null) {
    problems.push(`the floors of outbound route ${route} cannot be read`)
    return {}
  }
  const minAsr = at('min_asr')
  const minAcdSeconds = at('min_acd')
  const maxPddMs = at('max_pdd_ms')
  return { floors: { minAsr, minAcdSeconds, maxPddMs, windowSeconds, minCalls } }
}

async function loadInboundRoutes(
  store: Store,
  problems: string[],
  ids?: readonly number[],
): Promise<InboundRouteRecord[]> {
  const query = store.db.selectFrom('inbound_route').selectAll().orderBy('id')
  const rows = await rowsOf(
    ids,
    (some) => all(store, query.where('id', 'in', some)),
    (after) => all(store, query.where('id', '>', after).limit(SLICE)),
  )
  return rows.flatMap((row) => {
    const target = targetOf(row)
    if (!target) {
      problems.push(`inbound route ${row.name} is not used: ${row.target} is not a set id`)
      return []
    }
    return [
      {
        routeId: row.id,
        name: row.name,
        tenantId: row.tenant_id,
        carrierId: row.carrier_id,
        prefix: row.prefix,
        domain: row.domain,
        ...(row.verification !== null && { verification: row.verification }),
        target,
        priority: row.priority,
        isActive: fromFlag(row.is_active),
      },
    ]
  })
}

function targetOf(row: Selectable<Database['inbound_route']>): InboundTarget | undefined {
  const { target_type: kind, target, tenant_id: tenantId } = row
  if (kind === 'extension') {
    const [extension = '', domain = null] = target.split('@')
    return { kind, extension, tenantId, domain }
  }
  if (!/^\d{1,15}$/.test(target)) return undefined
  return kind === 'agent' ? { kind, agentId: Number(target) } : { kind, setId: Number(target) }
}

async function loadAgents(store: Store, ids?: readonly number[]): Promise<AgentRecord[]> {
  const query = store.db.selectFrom('ai_agent').selectAll().orderBy('id')
  const rows = await rowsOf(
    ids,
    (some) => all(store, query.where('id', 'in', some)),
    (after) => all(store, query.where('id', '>', after).limit(SLICE)),
  )
  return rows.map((row) => ({
    agentId: row.id,
    name: row.name,
    tenantId: row.tenant_id,
    extension: row.extension,
    uri: row.sip_uri,
    isByTenant: fromFlag(row.is_by_tenant) || undefined,
    maxCalls: row.max_calls,
    isActive: fromFlag(row.is_active),
    media: mediaRulesOf(row),
    stripHeaders: headersOf(row),
  }))
}

const headersOf = (row: { readonly strip_headers: string | null }) =>
  row.strip_headers === null
    ? undefined
    : readNames(row.strip_headers)?.map((name) => name.toLowerCase())

/** Both directions of `number_rules` as functions, or what is wrong with them. */
function compileBoth(json: string): { in: RewriteNumber; out: RewriteNumber } | string {
  const stored = readJson(json)
  const inbound = readRules(stored, 'in')
  const outbound = readRules(stored, 'out')
  if (!inbound || !outbound) return 'number_rules are not {in: [{match, replace}], out: […]}'
  for (const rule of [...inbound, ...outbound]) {
    const problem = numberRuleProblem(rule)
    if (problem !== undefined) return `number rule ${rule.match}: ${problem}`
  }
  return { in: compileNumberRules(inbound), out: compileNumberRules(outbound) }
}

function readRules(stored: unknown, direction: 'in' | 'out'): NumberRule[] | undefined {
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return undefined
  const list: unknown = direction in stored ? Reflect.get(stored, direction) : []
  return Array.isArray(list) && list.every(isRule) ? list : undefined
}

const isRule = (rule: unknown): rule is NumberRule =>
  typeof rule === 'object' &&
  rule !== null &&
  typeof Reflect.get(rule, 'match') === 'string' &&
  typeof Reflect.get(rule, 'replace') === 'string'

/** Undefined: there are none. A text: why they cannot be used. */
function readHeaderRules(json: string): CompiledRules | string | undefined {
  if (json === '[]') return undefined
  const stored = readJson(json)
  if (!Array.isArray(stored) || !stored.every(isHeaderRule)) return 'header_rules are no rules'
  return compileHeaderRules(stored)
}

const isHeaderRule = (rule: unknown): rule is HeaderRule =>
  typeof rule === 'object' &&
  rule !== null &&
  isAmong(ruleDirections, Reflect.get(rule, 'direction')) &&
  isAmong(ruleActions, Reflect.get(rule, 'do')) &&
  isAmong(ruleParts, Reflect.get(rule, 'part')) &&
  typeof Reflect.get(rule, 'header') === 'string' &&
  ['parameter', 'value', 'source', 'pattern', 'replacement'].every((name) =>
    ['string', 'undefined'].includes(typeof Reflect.get(rule, name)),
  )

const isAmong = (values: readonly string[], value: unknown): boolean =>
  typeof value === 'string' && values.includes(value)

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
