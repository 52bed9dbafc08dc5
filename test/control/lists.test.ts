import { expect, test } from 'vitest'
import { routeNotes } from '../../control/http/validate.ts'
import { setReadingThread } from '../../schema/sql/query.ts'
import { openControl } from '../support/control.ts'
import { localOf, runSql } from '../support/stored.ts'

const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-02-01T00:00:00Z'
/** The queries that lists may be asked; a list refuses what it does not know. */
const queries = [
  '',
  'page=2',
  period,
  'start_date=2026-01-01T00:00:00Z',
  'search=a',
  'state=active',
  'state=open',
  'kind=topup',
  'kind=refund',
  'customer_id=1',
  'actor=a',
  'rate_plan_id=1',
  'outcome=success',
  'action=DELETE',
  `${period}&disposition=BUSY`,
  `${period}&page=2&limit=9`,
]

/** How SQLite will carry out every SELECT of every list, by the request that needs it. */
async function plansOfLists() {
  const control = await openControl()
  const { sqlite } = localOf(control.store)
  await control.tenant('acme', ['acme.example'])
  const tokens = {
    global: await control.key(),
    tenant: await control.key({ tenant_scope: 'tenant', tenant_slug: 'acme' }),
  }
  const apart = new Set<string>()
  const { statements: here } = control.store
  setReadingThread(here, {
    prepare(sql) {
      apart.add(sql)
      return here.prepare(sql)
    },
  })
  const statements = new Map<string, { who: keyof typeof tokens; path: string }>()
  const prepare = sqlite.prepare.bind(sqlite)
  let asking: { who: keyof typeof tokens; path: string } = { who: 'global', path: '' }
  Object.assign(sqlite, {
    prepare: (sql: string) => {
      if (/^select/i.test(sql) && !statements.has(sql)) statements.set(sql, asking)
      return prepare(sql)
    },
  })
  for (const { method, path, query } of routeNotes(control.app)) {
    if (method !== 'GET' || query === undefined) continue
    for (const who of ['global', 'tenant'] as const)
      for (const text of queries) {
        asking = { who, path: `${path}?${text}` }
        await control.request(`${path.replace(':id', '1')}?${text}`, { token: tokens[who] })
      }
  }
  return [...statements].map(([sql, from]) => {
    const places = Array.from({ length: sql.match(/\?/g)?.length ?? 0 }, () => 1)
    const steps = prepare<number[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...places)
    return { ...from, sql, steps: steps.map(({ detail }) => detail), isApart: apart.has(sql) }
  })
}

const plans = await plansOfLists()

test('the statements of every list are seen', () => {
  const paths = new Set(plans.map(({ path }) => path.slice(0, path.indexOf('?'))))
  for (const path of ['/audit', '/users', '/customers', '/rates', '/reports/cdrs', '/webhooks'])
    expect(paths).toContain(`/api/v1${path}`)
  expect(plans.length).toBeGreaterThan(100)
})

test('no list sorts: each is read in the order of an index, as far as the page', () => {
  // A sum for each carrier is no list: its groups are few, and a thread reads the records in
  // slices.
  const isSorted = (step: string) => step.includes('TEMP B-TREE') && !step.endsWith('GROUP BY')
  // Unusual keys and wrong passwords of a period are a report, of at most 2,000 rows an hour. A
  // tenant has at most a thousand spend guards, in three indexes. Of each of its plans, 20 decks
  // are kept.
  const isBounded = ({ who, sql }: (typeof plans)[number]) =>
    /from "(?:api_hour|wrong_password)"/.test(sql) ||
    (who === 'tenant' && /from "(?:spend_guard|rate_deck)"/.test(sql))
  const sorting = plans.filter((plan) => plan.steps.some(isSorted) && !isBounded(plan))
  expect(sorting).toEqual([])
})

test("no list of a tenant reads the rows of the others: it searches by the tenant's index", () => {
  const reading = plans.filter(
    ({ who, steps }) =>
      who === 'tenant' &&
      // Rate plans are few, and what stands in a subquery was searched for already.
      steps.some((step) => /^SCAN (?!\(subquery|rate_plan\b|some\b|slice\b|CONSTANT)/.test(step)),
  )
  expect(reading).toEqual([])
})

test('only a search for text, a count, or a page in order of the rows reads a table as it lies', () => {
  const reading = plans.filter(
    ({ sql, steps }) =>
      steps.some((step) => /^SCAN (?!some\b|slice\b|CONSTANT)/.test(step) && !/USING/.test(step)) &&
      !/ like |count\(\*\)|limit \?|in \(\)/i.test(sql),
  )
  expect(reading).toEqual([])
})

test('whatever a list looks through is read apart from calls', () => {
  // Reports of calls run in the thread as a whole. The rest finds a row by what names it.
  const isLong = ({ sql, path }: (typeof plans)[number]) =>
    / like |count\(|sum\(|limit \? offset/i.test(sql) &&
    !/from "(?:cdr|refused_calls|call_sum)/.test(sql) &&
    path !== ''
  expect(plans.filter((plan) => isLong(plan) && !plan.isApart)).toEqual([])
  expect(plans.filter((plan) => isLong(plan)).length).toBeGreaterThan(100)
})

/** As many rows as are listed, and a few more. */
const rows = `WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 100003)`

test('the longest lists end after 100,000 entries: nothing further is counted or skipped', async () => {
  const control = await openControl()
  const token = await control.key()
  const body = { name: 'Acme', email: 'a@acme.example', balance: '0' }
  await control.request('/api/v1/customers', { token, body })
  await runSql(
    control.store,
    `${rows} INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
      SELECT id, 'a', 'b', 'c', 'd', 'success', 200, 'e' FROM n`,
  )
  await runSql(
    control.store,
    `${rows} INSERT INTO ledger_entry
        (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
      SELECT (SELECT id FROM wallet), 'adjust', 1, id, id, 'a', id FROM n`,
  )
  for (const path of ['/api/v1/audit', '/api/v1/customers/1/ledger']) {
    const page = async (number: number) => {
      const answer = await control.request(`${path}?limit=200&page=${number}`, { token })
      return answer.body as { data: unknown[]; meta: { total: number; truncated?: true } }
    }
    const last = await page(500)
    expect([last.data.length, last.meta.total, last.meta.truncated]).toEqual([200, 100_000, true])
    expect((await page(501)).data).toEqual([])
  }
  const whole = await control.request('/api/v1/audit?end_date=1970-01-01T00:01:40Z', { token })
  expect(whole.body).toMatchObject({ meta: { page: 1, limit: 50, total: 99_999 } })
  expect(whole.body).not.toHaveProperty('meta.truncated')
})
