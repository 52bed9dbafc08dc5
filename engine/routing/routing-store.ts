/** Carriers and routes from the database. A row that cannot be used is left out and told. */
import { fromFlag } from '../../schema/columns.ts'
import type { Database } from '../../schema/database.ts'
import { mediaRulesOf, readNames } from '../../schema/rules/media.ts'
import type { NumberRule } from '../../schema/rules/number-rule.ts'
import { compileNumberRules, numberRuleProblem } from '../../schema/rules/number-rule.ts'
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/sql/query.ts'
import { carrierGateways } from '../../schema/carrier-gateways.ts'
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
  TenantRecord,
} from './routing-records.ts'

export async function loadRouting(store: Store): Promise<RoutingRecords> {
  const problems: string[] = []
  return {
    tenants: await loadTenants(store),
    carriers: await loadCarriers(store, problems),
    gateways: await carrierGateways(store),
    outboundRoutes: await loadOutboundRoutes(store),
    inboundRoutes: await loadInboundRoutes(store, problems),
    agents: await loadAgents(store),
    problems,
  }
}

async function loadTenants(store: Store): Promise<TenantRecord[]> {
  const { db } = store
  const domains = new Map<number, string[]>()
  const numbers = new Map<number, string[]>()
  const add = (lists: Map<number, string[]>, tenantId: number, entry: string): void => {
    const list = lists.get(tenantId)
    if (list) list.push(entry)
    else lists.set(tenantId, [entry])
  }
  for (const row of await all(store, db.selectFrom('tenant_domain').selectAll()))
    add(domains, row.tenant_id, row.domain)
  for (const row of await all(store, db.selectFrom('tenant_number').selectAll()))
    add(numbers, row.tenant_id, row.prefix)
  // Two blocks of numbers may be one with an exit code: it belongs to the older tenant.
  const query = db.selectFrom('tenant').select(['id', 'slug', 'is_active']).orderBy('id')
  const tenants = await all(store, query)
  return tenants.map((row) => ({
    tenantId: row.id,
    slug: row.slug,
    isActive: fromFlag(row.is_active),
    domains: domains.get(row.id) ?? [],
    numbers: numbers.get(row.id) ?? [],
  }))
}

async function loadCarriers(store: Store, problems: string[]): Promise<CarrierRecord[]> {
  const gateways = await all(
    store,
    store.db.selectFrom('carrier_gateway').selectAll().orderBy('id'),
  )
  const carriers = await all(store, store.db.selectFrom('carrier').selectAll().orderBy('id'))
  return carriers.flatMap((row) => {
    const numberRules = compileBoth(row.number_rules)
    const codecs = row.codecs === null ? null : readNames(row.codecs)
    const password = openPassword(store, row)
    if (typeof numberRules !== 'string' && codecs !== undefined && password !== undefined) {
      const own = gateways.filter((gateway) => gateway.carrier_id === row.id).map(gatewayOf)
      return [carrierOf({ ...row, auth_password: password }, own, numberRules)]
    }
    // Without its rules a carrier would be sent wrong numbers: better none.
    const wrong =
      codecs === undefined ? 'codecs are not a list of names' : 'its password is damaged'
    const reason = typeof numberRules === 'string' ? numberRules : wrong
    problems.push(`carrier ${row.name} is not used: ${reason}`)
    return []
  })
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
    maxCalls: row.max_calls,
    maxCps: row.max_cps,
    ratePlanId: row.rate_plan_id,
    inboundSetId: row.inbound_set_id,
    gateways,
  }
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
})

async function loadOutboundRoutes(store: Store): Promise<OutboundRouteRecord[]> {
  const rows = await all(store, store.db.selectFrom('outbound_route').selectAll().orderBy('id'))
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
  }))
}

async function loadInboundRoutes(store: Store, problems: string[]): Promise<InboundRouteRecord[]> {
  const rows = await all(store, store.db.selectFrom('inbound_route').selectAll().orderBy('id'))
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

async function loadAgents(store: Store): Promise<AgentRecord[]> {
  const rows = await all(store, store.db.selectFrom('ai_agent').selectAll().orderBy('id'))
  return rows.map((row) => ({
    agentId: row.id,
    name: row.name,
    tenantId: row.tenant_id,
    extension: row.extension,
    uri: row.sip_uri,
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

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
