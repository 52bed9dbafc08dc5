/** What happened in a period: calls by how they ended, and requests of the API that failed, by route and key. */
import { sql } from 'kysely'
import { z } from 'zod'
import { HOUR_MS } from '../../../schema/clock.ts'
import { timeToText } from '../../../schema/columns.ts'
import { all } from '../../../schema/sql/query.ts'
import { readApart } from '../../../schema/sql/read-apart.ts'
import type { Principal } from '../../auth/principal.ts'
import { callSums, type SumsReader } from '../../reports/unusual/call-sums.ts'
import { inTurn } from '../../reports/searches.ts'
import { type Asked, count, moment } from './views.ts'

export const failuresView = z.strictObject({
  start: moment,
  end: moment,
  calls: z.strictObject({
    total: count,
    answered: count,
    failed: count.describe('Not answered, and not refused by the platform.'),
    refused: z.record(z.string(), count).describe('By denial_code.'),
  }),
  api_requests: z.strictObject({ total: count, failed: count }).describe('Of keys, whole hours.'),
  api_failures: z
    .array(
      z.strictObject({
        route: z.string(),
        code: z.string().describe('The code of the error, or its status.'),
        key: z
          .string()
          .nullable()
          .describe('Uuid. Null: no key, or one that the credential may not see.'),
        requests: count,
        first_at: moment,
        last_at: moment,
      }),
    )
    .describe('Most frequent first; whole hours.'),
})

export interface FailuresReader extends SumsReader {
  /** The only SIP domain whose keys are meant; null: all. */
  readonly domain: string | null
  /** Whether the credential may read keys and calls. */
  readonly maySeeKeys: boolean
  readonly maySeeCalls: boolean
}

/** What this credential may be shown. */
export const failuresReader = (
  { store, pause }: Pick<SumsReader, 'store' | 'pause'>,
  { tenantId, domain, isOnlyDomain, scopes }: Principal,
): FailuresReader => ({
  store,
  pause,
  tenantId,
  domain,
  maySeeKeys: scopes.has('keys:read'),
  maySeeCalls: (domain === null || isOnlyDomain === true) && scopes.has('cdrs:read'),
})

type Failures = z.output<typeof failuresView>

export const failuresIn = (reader: FailuresReader, asked: Asked): Promise<Failures> =>
  readApart(reader.store, reader.tenantId, () => countFailures(reader, asked))

async function countFailures(reader: FailuresReader, asked: Asked): Promise<Failures> {
  const { from, before, limit } = asked
  const sums = reader.maySeeCalls ? await inTurn(reader, () => callSums(reader, from, before)) : []
  const refused: Record<string, number> = {}
  const calls = { total: 0, answered: 0, failed: 0 }
  for (const { denial, answered, ...sum } of sums) {
    const unanswered = sum.calls - answered
    calls.total += sum.calls
    calls.answered += answered
    if (denial === null) calls.failed += unanswered
    else if (unanswered > 0) refused[denial] = (refused[denial] ?? 0) + unanswered
  }
  const totals = await totalsOf(reader, asked)
  const failures = await failuresOf(reader, asked, limit)
  return {
    start: timeToText(from),
    end: timeToText(before),
    calls: { ...calls, refused },
    api_requests: totals,
    api_failures: failures.map(({ route, code, uuid, requests, firstAt, lastAt }) => ({
      route,
      code,
      key: reader.maySeeKeys ? uuid : null,
      requests,
      first_at: timeToText(firstAt),
      last_at: timeToText(lastAt),
    })),
  }
}

/** Of tenants the requests of their keys. */
const hoursIn = ({ store, tenantId, domain }: FailuresReader, { from, before }: Asked) =>
  store.db
    .selectFrom('api_hour')
    .leftJoin('application_key', 'application_key.id', 'api_hour.application_key_id')
    .where('hour', '>=', Math.floor(from / HOUR_MS))
    .where('hour', '<', Math.ceil(before / HOUR_MS))
    .$if(tenantId !== null, (own) => own.where('application_key.tenant_id', '=', tenantId))
    .$if(domain !== null, (own) => own.where('application_key.domain', '=', domain))

async function totalsOf(reader: FailuresReader, asked: Asked) {
  const query = hoursIn(reader, asked)
    .select([
      sql<number>`CAST(coalesce(sum(requests), 0) AS bigint)`.as('total'),
      sql<number>`CAST(coalesce(sum(CASE WHEN outcome = '' THEN 0 ELSE requests END), 0) AS bigint)`.as(
        'failed',
      ),
    ])
    // Of requests without a key, only those that failed are counted.
    .where('application_key_id', '<>', 0)
  const [row] = await all(reader.store, query)
  return row ?? { total: 0, failed: 0 }
}

function failuresOf(reader: FailuresReader, asked: Asked, limit: number) {
  const query = hoursIn(reader, asked)
    .select(['route', 'outcome as code', 'application_key.uuid'])
    .select([
      sql<number>`CAST(sum(requests) AS bigint)`.as('requests'),
      sql<number>`min(first_at)`.as('firstAt'),
      sql<number>`max(last_at)`.as('lastAt'),
    ])
    .where('outcome', '<>', '')
    .groupBy(['route', 'outcome', 'application_key.uuid'])
    .orderBy('requests', 'desc')
    .limit(limit)
  return all(reader.store, query)
}
