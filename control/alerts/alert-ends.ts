/**
 * Finds alerts that nothing else would end: their rule is gone, or what they are about. Each end
 * has a sentence that says so.
 */
import { HOUR_MS } from '../../schema/clock.ts'
import type { AlertRuleKind } from '../../schema/contracts/alert-kinds.ts'
import type { InstanceStatus } from '../../schema/contracts/instances.ts'
import { hostPort } from '../../schema/sip/index.ts'
import { all } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertEnd, AlertRow } from './alert-book.ts'
import { subjectText } from './alert-facts.ts'

/** An instance of the installation, as heartbeats show it. */
export type HeardInstance = Pick<InstanceStatus, 'name' | 'state' | 'heartbeatAt'>

interface LookedAt {
  readonly alerts: readonly AlertRow[]
  readonly store: Store
  readonly instances: readonly HeardInstance[]
  readonly now: number
}

type Look = (looked: LookedAt) => Promise<readonly Ended[]>
/** Null: it goes on. */
type Ended = readonly [alert: AlertRow, why: string | null]

/** The alerts of these that are over, each with its end. */
export async function endsOf(looked: LookedAt): Promise<ReadonlyMap<AlertRow, AlertEnd>> {
  const ends = new Map<AlertRow, AlertEnd>()
  for (const [alert, why] of await ofRules(looked))
    if (why !== null) ends.set(alert, { by: 'rule', why })
  for (const [kind, look] of Object.entries(looks)) {
    const alerts = looked.alerts.filter((alert) => alert.kind === kind && !ends.has(alert))
    if (alerts.length === 0) continue
    for (const [alert, why] of await look({ ...looked, alerts }))
      if (why !== null) ends.set(alert, { by: 'removal', why })
  }
  return ends
}

async function ofRules({ alerts, store }: LookedAt): Promise<readonly Ended[]> {
  const ids = [...new Set(alerts.map(({ rule_id: id }) => id))]
  if (ids.length === 0) return []
  const query = store.db.selectFrom('alert_rule').select(['id', 'kind', 'is_enabled'])
  const rows = await all(store, query.where('id', 'in', ids))
  const rules = new Map(rows.map((rule) => [rule.id, rule]))
  return alerts.map((alert) => {
    const rule = rules.get(alert.rule_id)
    if (rule === undefined) return [alert, 'The alert rule was deleted']
    if (rule.is_enabled === 0) return [alert, 'The alert rule was switched off']
    return [alert, rule.kind === alert.kind ? null : 'The alert rule looks at something else now']
  })
}

/** The number in a subject such as `customer 5 EUR`; NaN: it has none. */
const numberOf = ({ subject }: AlertRow): number => Number(subject.split(' ')[1])

const numbersOf = (alerts: readonly AlertRow[]): readonly number[] => [
  ...new Set(alerts.map(numberOf).filter(Number.isSafeInteger)),
]

async function ofNodes({ alerts, store }: LookedAt): Promise<readonly Ended[]> {
  const numbers = numbersOf(alerts)
  const query = store.db
    .selectFrom('dispatcher_set')
    .leftJoin('dispatcher_node', (join) =>
      join
        .onRef('dispatcher_node.dispatcher_set_id', '=', 'dispatcher_set.id')
        .on('dispatcher_node.is_enabled', '=', 1),
    )
    .select(['set_id', 'tenant_id', 'host', 'internal_port', 'transport'])
    .where('set_id', 'in', numbers)
  const rows = numbers.length === 0 ? [] : await all(store, query)
  const tenants = new Map(rows.map(({ set_id: id, tenant_id: tenant }) => [id, tenant]))
  const present = new Set(
    rows.map(({ set_id: set, host, internal_port: port, transport }) =>
      subjectText(`node ${set} sip:${hostPort(host ?? '', port ?? 0)};transport=${transport}`),
    ),
  )
  return alerts.map((alert) => {
    const tenant = tenants.get(numberOf(alert))
    if (tenant === undefined) return [alert, 'The dispatcher set was deleted']
    if (!present.has(alert.subject)) return [alert, 'The node has left the dispatcher set']
    return [alert, ofOther(alert, tenant, 'The dispatcher set')]
  })
}

/** Rules of a tenant see what is its own. */
const ofOther = (alert: AlertRow, tenantId: number | null, what: string): string | null =>
  alert.tenant_id === null || alert.tenant_id === tenantId ? null : `${what} has another owner now`

const ofRows =
  (table: 'carrier' | 'customer', what: string): Look =>
  async ({ alerts, store }) => {
    const ids = numbersOf(alerts)
    const query = store.db.selectFrom(table).select(['id', 'tenant_id'])
    const rows = ids.length === 0 ? [] : await all(store, query.where('id', 'in', ids))
    const tenants = new Map(rows.map(({ id, tenant_id: tenant }) => [id, tenant]))
    return alerts.map((alert) => {
      const id = numberOf(alert)
      const tenant = tenants.get(id)
      if (tenant !== undefined) return [alert, ofOther(alert, tenant, what)]
      // Events of earlier versions named a carrier without its number.
      return [alert, Number.isNaN(id) ? null : `${what} was deleted`]
    })
  }

/** Call records have the name of the carrier. */
async function ofCarrierNames({ alerts, store }: LookedAt): Promise<readonly Ended[]> {
  const nameOf = ({ subject }: AlertRow): string => subject.slice('carrier '.length)
  const query = store.db
    .selectFrom('carrier')
    .select('name')
    .where('name', 'in', alerts.map(nameOf))
  const names = new Set((await all(store, query)).map(({ name }) => name))
  return alerts.map((alert) => [
    alert,
    names.has(nameOf(alert)) ? null : 'There is no carrier of this name any more',
  ])
}

async function ofWebhooks({ alerts, store }: LookedAt): Promise<readonly Ended[]> {
  const query = store.db
    .selectFrom('webhook_endpoint')
    .select('id')
    .where('id', 'in', numbersOf(alerts))
    .where('removed_at', 'is', null)
  const present = new Set((await all(store, query)).map(({ id }) => id))
  return alerts.map((alert) => [
    alert,
    present.has(numberOf(alert)) ? null : 'The webhook was deleted',
  ])
}

/** An instance that is not heard for so long does not come back in order to end its alerts. */
const AWAY_MS = HOUR_MS

const isAway = ({ state, heartbeatAt }: HeardInstance, now: number): boolean =>
  (state === 'stopped' || state === 'lost') && now - heartbeatAt > AWAY_MS

/** Only the instance itself knows its disks and certificates. */
async function ofOwnInstances({ alerts, instances, now }: LookedAt): Promise<readonly Ended[]> {
  const known = new Map(instances.map((instance) => [instance.name, instance]))
  return alerts.map((alert) => {
    const [name = ''] = alert.subject.split(' ', 1)
    const instance = known.get(name)
    if (instance === undefined) return [alert, `There is no instance ${name} any more`]
    return [alert, isAway(instance, now) ? `Instance ${name} is not heard any more` : null]
  })
}

async function ofInstances({ alerts, instances }: LookedAt): Promise<readonly Ended[]> {
  const known = new Set(instances.map(({ name }) => `instance ${name}`))
  return alerts.map((alert) => [
    alert,
    known.has(alert.subject) ? null : 'There is no such instance any more',
  ])
}

async function ofFindings({ alerts, store }: LookedAt): Promise<readonly Ended[]> {
  const ids = numbersOf(alerts)
  const query = store.db.selectFrom('finding').select('id').where('closed_at', 'is', null)
  const rows = ids.length === 0 ? [] : await all(store, query.where('id', 'in', ids))
  const open = new Set(rows.map(({ id }) => id))
  return alerts.map((alert) => [alert, open.has(numberOf(alert)) ? null : 'The finding is closed'])
}

const looks: Readonly<Partial<Record<AlertRuleKind, Look>>> = {
  node_down: ofNodes,
  carrier_down: ofRows('carrier', 'The carrier'),
  instance_lost: ofInstances,
  asr_below: ofCarrierNames,
  mos_below: ofCarrierNames,
  spend_above: ofRows('customer', 'The customer'),
  balance_below: ofRows('customer', 'The customer'),
  certificate_expiring: ofOwnInstances,
  disk_low: ofOwnInstances,
  webhook_failing: ofWebhooks,
  finding_opened: ofFindings,
}
