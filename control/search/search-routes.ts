/** `GET /search`: finds what has this name, number, Call-ID or uuid, and the asker may read. */
import { Hono } from 'hono'
import { z } from 'zod'
import { readApart } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { admitScope, requiresCredential } from '../auth/requires.ts'
import type { Scope } from '../auth/scopes.ts'
import { isVisible } from '../calls/active-call-view.ts'
import { ApiError } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, queryInteger } from '../http/envelope.ts'
import { text } from '../http/fields.ts'
import { data } from '../http/operation.ts'
import type { Platform } from '../http/platform.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { moment } from '../http/view-fields.ts'
import { dataOf } from '../instances/instance-client.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import type { WithReports } from '../reports/reports.ts'
import { callHit, endedCalls, liveCalls } from './found-calls.ts'
import { foundRows } from './found-rows.ts'
import { searchedKinds, type SearchedKind } from './kinds.ts'
import { rank, rankOf } from './rank.ts'

const MAX_TEXT = 100
const MAX_HITS = 10
const DEFAULT_HITS = 5

const query = z.strictObject({
  q: text(MAX_TEXT)
    .refine((value) => value.trim() !== '', 'is empty')
    .transform((value) => value.trim())
    .describe('A name or a part of it; a number, Call-ID or uuid, or its beginning.'),
  limit: queryInteger(/^[1-9]\d{0,2}$/, 'must be an integer of at least 1', 1)
    .transform((limit) => Math.min(limit, MAX_HITS))
    .default(DEFAULT_HITS)
    .meta({ default: DEFAULT_HITS, description: `Hits of a kind; at most ${MAX_HITS}.` }),
})

const hit = z
  .strictObject({
    kind: z.string(),
    id: z.string().describe('The uuid of a call or a key, the id of anything else.'),
    title: z.string(),
    detail: z.string().describe('What stands beside the name; may be empty.'),
    at: moment.nullable().describe('When a call began. Null: it is no call.'),
    path: z.string().describe('Where the console shows it.'),
  })
  .meta({ id: 'SearchHit' })

export type SearchHit = z.output<typeof hit>

const hits = z
  .array(hit)
  .describe('Those of a kind stand together, the kind with the best hit first.')

const exampleHit = {
  kind: 'customer',
  id: '7',
  title: 'Acme',
  detail: 'billing@acme.example',
  at: null,
  path: '/console/customers/7',
}

type SearchDeps = Pick<Platform, 'store' | 'engine' | 'ocs'> & WithReports & WithOthers

export const searchRoutes = (deps: SearchDeps) =>
  new Hono<ControlEnv>().get(
    '/search',
    describeRoute({
      id: 'search',
      tag: 'System',
      summary: 'Find calls, customers, numbers and all else that the credential may read',
      answer: data(hits, [exampleHit]),
      instances: 'all',
    }),
    requiresCredential(),
    validate('query', query),
    async (c) => {
      const { q, limit } = c.req.valid('query')
      const { principal } = c.var
      const search = { text: q, tenantId: principal.tenantId, domain: principal.domain, limit }
      const live = mayRead(principal, 'calls:read')
        ? liveCalls(deps.engine.calls, ({ tenantId }) => isVisible(tenantId, principal), search)
        : []
      const calls = live.map(callHit)
      const peers = deps.others?.of(c)
      // Another instance asks: all of them have the same tables, and each its own live calls.
      if (deps.others !== undefined && peers === undefined) return ok(c, calls)
      const [stored, answers] = await Promise.all([
        readApart(deps.store, principal.tenantId, () => inTables(deps, principal, search)),
        peers?.all({ method: 'GET', target: c.env.incoming.url ?? '' }) ?? [],
      ])
      const ofPeers = answers.flatMap((answer) => dataOf(answer, hits) ?? [])
      return ok(c, merged([...calls, ...ofPeers, ...stored], q, limit))
    },
  )

/** Whether a route that requires this scope would admit the principal. */
function mayRead(principal: Principal, scope: Scope): boolean {
  try {
    admitScope(principal, scope)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

interface Search {
  readonly text: string
  readonly tenantId: number | null
  readonly domain: string | null
  readonly limit: number
}

async function inTables(
  { store, ocs, reports }: SearchDeps,
  principal: Principal,
  search: Search,
): Promise<readonly SearchHit[]> {
  const isSearched = ({ scope, isOfPlatform, isOfBilling }: SearchedKind): boolean =>
    mayRead(principal, `${scope}:read`) &&
    (isOfPlatform !== true || principal.tenantId === null) &&
    (isOfBilling !== true || ocs !== undefined)
  const kinds = searchedKinds().filter(isSearched)
  const ended = mayRead(principal, 'cdrs:read') ? endedCalls({ store, reports }, search) : []
  const rows = kinds.map(async (kind) =>
    (await foundRows(store, kind, search)).map(({ id, title, beside, page }): SearchHit => ({
      kind: kind.kind,
      id: kind.page === undefined ? id : (page ?? id),
      title,
      detail: beside.join(', '),
      at: null,
      path: pathOf(kind, title, page),
    })),
  )
  return [...(await ended).map(callHit), ...(await Promise.all(rows)).flat()]
}

const pathOf = ({ screen }: SearchedKind, title: string, page: string | undefined): string =>
  page === undefined
    ? `/console/${screen}?q=${encodeURIComponent(title)}`
    : `/console/${screen}/${encodeURIComponent(page)}`

/** Calls of all instances together; the kind with the best hit first. */
function merged(all: readonly SearchHit[], wanted: string, limit: number): readonly SearchHit[] {
  const byKind = new Map<string, Map<string, SearchHit>>()
  for (const each of all) {
    const known = byKind.get(each.kind) ?? new Map<string, SearchHit>()
    // A call that has just ended may be live in one answer and stored in another.
    if (!known.has(each.id)) known.set(each.id, each)
    byKind.set(each.kind, known)
  }
  return [...byKind.values()]
    .map((known) => [...known.values()].slice(0, limit))
    .map((ofKind) => ({ ofKind, best: bestOf(ofKind, wanted) }))
    .toSorted((one, other) => one.best - other.best)
    .flatMap(({ ofKind }) => ofKind)
}

const bestOf = (ofKind: readonly SearchHit[], wanted: string): number =>
  Math.min(
    ...ofKind.map(({ kind, id, title, detail }) =>
      kind !== 'call'
        ? rankOf({ title, beside: detail.split(', ') }, wanted)
        : callRank(id, title, wanted),
    ),
  )

/** A call is known by its uuid and both its numbers; by a Call-ID, nothing else is found. */
const callRank = (uuid: string, title: string, wanted: string): number =>
  Math.min(
    rank.beginsBeside,
    ...[uuid, ...title.split(' → ')].map((name) => rankOf({ title: name, beside: [] }, wanted)),
  )
