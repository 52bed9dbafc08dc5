/** Findings in the use of keys. */
import { sql } from 'kysely'
import { HOUR_MS } from '../../../../schema/clock.ts'
import { all } from '../../../../schema/sql/query.ts'
import { quoted } from '../../../http/clean-text.ts'
import { changesBy } from '../key-activity.ts'
import { PAST_DAYS } from '../../../reports/unusual/baseline.ts'
import type { Finding } from './finding.ts'
import { keyFinding } from './key-use.ts'
import type { AnomalyWorld, Span } from './world.ts'

const PAST_MS = PAST_DAYS * 24 * HOUR_MS
/** Those with the most requests. */
const MAX_KEYS = 500
const MAX_CHANGES = 500

export async function findInKeys(world: AnomalyWorld, span: Span): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const key of await usedKeys(world, span)) {
    const finding = await findingOf(world, key, span)
    if (finding !== undefined) findings.push(finding)
    await world.pause()
  }
  return findings
}

function usedKeys({ store, tenantId, domain }: AnomalyWorld, { from, before }: Span) {
  const query = store.db
    .selectFrom('api_hour')
    .innerJoin('application_key', 'application_key.id', 'api_hour.application_key_id')
    .select(['application_key.id', 'application_key.uuid', 'application_key.name'])
    .select([sql<number>`min(first_at)`.as('firstAt'), sql<number>`max(last_at)`.as('lastAt')])
    .where('api_hour.hour', '>=', Math.floor(from / HOUR_MS))
    .where('api_hour.hour', '<', Math.ceil(before / HOUR_MS))
    .$if(tenantId !== null, (own) => own.where('application_key.tenant_id', '=', tenantId))
    .$if(domain !== null, (own) => own.where('application_key.domain', '=', domain))
    .groupBy(['application_key.id', 'application_key.uuid', 'application_key.name'])
    .orderBy(sql`sum(api_hour.requests)`, 'desc')
    .limit(MAX_KEYS)
  return all(store, query)
}

type UsedKey = Awaited<ReturnType<typeof usedKeys>>[number]

async function findingOf(
  { store }: AnomalyWorld,
  { id, uuid, name, firstAt, lastAt }: UsedKey,
  { from, before }: Span,
): Promise<Finding | undefined> {
  const addresses = store.db
    .selectFrom('key_address')
    .select(['address', 'first_at', 'requests'])
    .where('application_key_id', '=', id)
    .where('first_at', '<', before)
  const hours = store.db
    .selectFrom('api_hour')
    .select(['hour', 'outcome'])
    .select(sql<number>`CAST(sum(requests) AS bigint)`.as('requests'))
    .where('application_key_id', '=', id)
    .where('hour', '>=', Math.floor((from - PAST_MS) / HOUR_MS))
    .where('hour', '<', Math.ceil(before / HOUR_MS))
    .groupBy(['hour', 'outcome'])
  const past = { from: from - PAST_MS, before, limit: MAX_CHANGES }
  const changes = await changesBy(store, uuid, past)
  const made = changes.filter(({ at }) => at >= from)
  const found = keyFinding(
    {
      addresses: await all(store, addresses),
      hours: await all(store, hours),
      changedAt: changes.map(({ at }) => at),
      changedFrom: made.map(({ address }) => address),
    },
    from,
    before,
  )
  if (found === undefined) return undefined
  const period = { start: new Date(from).toISOString(), end: new Date(before).toISOString() }
  return {
    kind: 'key_use',
    severity: found.severity,
    subject: `key ${uuid}`,
    what: `key ${quoted(name)} ${found.what}.`,
    firstAt: Math.max(firstAt, from),
    lastAt,
    evidence: [uuid, ...made.slice(0, 4).map(({ correlation_id }) => correlation_id)],
    next: { tool: 'get_key_activity', arguments: { uuid, ...period } },
    firstStep: {
      tool: 'suspend_api_key',
      arguments: { identifier: uuid, duration: 3_600, reason: 'unusual use of the key' },
    },
  }
}
