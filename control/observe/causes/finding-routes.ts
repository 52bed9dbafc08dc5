/** `/findings`: what was found, since when, who deals with it; acknowledges, snoozes, reopens. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { timeToText } from '../../../schema/columns.ts'
import { all, readApart, transaction } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { admitScope, requires } from '../../auth/requires.ts'
import { repeatable } from '../../auth/idempotency.ts'
import type { Principal } from '../../auth/principal.ts'
import { badRequest, conflict, notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok, pageEndView, queryInteger } from '../../http/envelope.ts'
import { queryTime, text, time } from '../../http/fields.ts'
import { data } from '../../http/operation.ts'
import type { Platform } from '../../http/platform.ts'
import { describeRoute, validate } from '../../http/validate.ts'
import { exampleTime, moment, timeOrNull } from '../../http/view-fields.ts'
import { idParam } from '../../resources/resource-routes.ts'
import { isAdmitted, lackingOf, needs } from './find-anomalies.ts'
import { findingView, type FindingKind, type FindingView, kinds } from './finding.ts'
import {
  detailsOf,
  type FindingRow,
  FindingStore,
  type MarkedFinding,
  type NewMark,
  stateOf,
} from './finding-store.ts'
import { ownActors } from './state-history.ts'

const noun = 'Finding'
const MAX_LIMIT = 200
const USUAL_LIMIT = 50
const MAX_SNOOZE_MS = 30 * DAY_MS
const MAX_NOTE = 500

const states = ['open', 'acknowledged', 'snoozed', 'closed'] as const

const byWhom = {
  at: moment,
  by: z.string().describe('Who; `platform`: somebody of the platform, for a tenant.'),
}

const { handled_by: handling, caused_by: _, ...shownFields } = findingView.shape

const keptFindingView = z
  .strictObject({
    id: z.int(),
    tenant: z.string().nullable().describe('Slug of the owner of the subject. Null: the platform.'),
    state: z
      .enum(states)
      .describe('Of the side that reads: a tenant and the platform mark apart from each other.'),
    ...shownFields,
    opened_at: moment.describe('When a search found it first.'),
    closed_at: moment.nullable().describe('When it had not been found for five minutes.'),
    acknowledged: z.strictObject({ ...byWhom, note: z.string().nullable() }).nullable(),
    snoozed: z.strictObject({ ...byWhom, until: moment, reason: z.string() }).nullable(),
    handled_by: handling.describe('The change in force that dealt with it when it was seen last.'),
  })
  .meta({ id: 'KeptFinding' })

export type KeptFindingsView = z.output<typeof findingsView>

const findingsView = z
  .strictObject({
    findings: z.array(keptFindingView).describe('The newest first.'),
    ...pageEndView,
    skipped: z
      .array(z.strictObject({ kind: z.enum(kinds), needs: z.string() }))
      .describe('Kinds for which the credential has no scope.'),
  })
  .meta({ id: 'KeptFindings' })

export type KeptFindingView = z.output<typeof keptFindingView>

const listOf = <T extends string>(values: readonly [T, ...T[]]) =>
  z
    .string()
    .max(200)
    .transform((given) => given.split(','))
    .pipe(z.array(z.enum(values)).min(1).max(values.length))

const findingsQuery = z.strictObject({
  state: listOf(states)
    .optional()
    .describe(`Some of ${states.join(', ')}. Defaults to all.`),
  kinds: listOf(kinds)
    .optional()
    .describe(`Some of ${kinds.join(', ')}. Defaults to all.`),
  start_date: queryTime.optional().describe('Opened since then.'),
  end_date: queryTime.optional().describe('Opened before then.'),
  limit: queryInteger(/^[1-9]\d{0,8}$/, 'Expected an integer of at least 1', 1)
    .transform((limit) => Math.min(limit, MAX_LIMIT))
    .default(USUAL_LIMIT)
    .meta({ default: USUAL_LIMIT, description: `More than ${MAX_LIMIT} are never given.` }),
  cursor: z
    .string()
    .regex(/^[1-9]\d{0,14}$/, 'must be the cursor of an earlier answer')
    .optional()
    .describe('From an earlier answer with the same arguments.'),
})

const acknowledgeBody = z.strictObject({ note: text(MAX_NOTE).optional() })
const snoozeBody = z.strictObject({
  reason: text(MAX_NOTE).min(1),
  until: time.optional().describe('At most 30 days from now. Absent: `duration` says it.'),
  duration: z
    .int()
    .min(60)
    .max(MAX_SNOOZE_MS / 1_000)
    .optional()
    .describe('Seconds.'),
})

type FindingRouteDeps = Pick<Platform, 'store' | 'now'>

export function findingRoutes(deps: FindingRouteDeps) {
  return new Hono<ControlEnv>()
    .route('/', listFindingsRoute(deps))
    .route('/', getFindingRoute(deps))
    .route('/', acknowledgeFindingRoute(deps))
    .route('/', snoozeFindingRoute(deps))
    .route('/', reopenFindingRoute(deps))
}

const exampleFinding: KeptFindingView = {
  id: 12,
  tenant: 'acme',
  kind: 'destination',
  severity: 'critical',
  state: 'acknowledged',
  subject: 'customer 7',
  what: 'customer 7 "acme" spent 16.50 USD on 15 calls to 881, never on the days before.',
  first_at: exampleTime,
  last_at: exampleTime,
  figures: { cost: 16.5 },
  evidence: ['6f9619ff-8b86-4d01-b42d-00cf4fc964ff'],
  advice: 'Check whether a sample call is legitimate.',
  next: { tool: 'get_ledger', arguments: { customer: 7 } },
  first_step: { tool: 'set_spend_guard', arguments: { customer: 7, prefix: '881' } },
  opened_at: exampleTime,
  closed_at: null,
  acknowledged: { at: exampleTime, by: 'user:anna', note: 'I call the customer.' },
  snoozed: null,
  handled_by: null,
}

const listFindingsRoute = (deps: FindingRouteDeps) =>
  new Hono<ControlEnv>().get(
    '/findings',
    describeRoute({
      id: 'listFindings',
      tag: 'System',
      summary:
        'List findings with their history: a search each minute opens what it finds, and closes ' +
        'it when it has not found it for five minutes. Kinds need the scopes of what they show.',
      answer: data(findingsView, {
        findings: [exampleFinding],
        complete: true,
        cursor: null,
        skipped: [],
      }),
    }),
    requires('cdrs:read'),
    validate('query', findingsQuery),
    async (c) => {
      const { state, kinds: named = kinds, limit, cursor, ...period } = c.req.valid('query')
      const { principal } = c.var
      const wanted = [...new Set(named)]
      const skipped = lackingOf(principal, wanted)
      const filter = {
        states: state,
        kinds: wanted.filter((kind) => !skipped.some((each) => each.kind === kind)),
        hasExtensions: isAdmitted(principal, 'extensions:read'),
        from: period.start_date,
        before: period.end_date,
        below: cursor === undefined ? undefined : Number(cursor),
        limit,
      }
      const reader = { tenantId: principal.tenantId, now: deps.now() }
      const findings = await readApart(deps.store, principal.tenantId, async () => {
        const rows =
          filter.kinds.length === 0 ? [] : await new FindingStore(deps.store).list(filter, reader)
        return { rows, views: await viewsOf(deps, principal, rows.slice(0, limit)) }
      })
      const hasMore = findings.rows.length > limit
      const last = findings.views.at(-1)
      return ok(c, {
        findings: findings.views,
        complete: !hasMore,
        cursor: hasMore && last !== undefined ? String(last.id) : null,
        skipped,
      })
    },
  )

const getFindingRoute = (deps: FindingRouteDeps) =>
  new Hono<ControlEnv>().get(
    '/findings/:id',
    describeRoute({
      id: 'getFinding',
      tag: 'System',
      summary: 'Get a finding',
      answer: data(keptFindingView, exampleFinding),
      refusals: [404],
    }),
    requires('cdrs:read'),
    validate('param', idParam(noun)),
    async (c) => ok(c, await viewOf(deps, c.var.principal, c.req.valid('param').id)),
  )

const acknowledgeFindingRoute = (deps: FindingRouteDeps) =>
  new Hono<ControlEnv>().post(
    '/findings/:id/acknowledge',
    describeRoute({
      id: 'acknowledgeFinding',
      tag: 'System',
      summary: 'Say that somebody deals with a finding, until it is closed',
      body: { note: 'I call the customer.' },
      answer: data(keptFindingView, exampleFinding),
      refusals: [404, 409],
    }),
    requires('calls:write'),
    validate('param', idParam(noun)),
    validate('json', acknowledgeBody),
    repeatable(),
    (c) => {
      const { note = null } = c.req.valid('json')
      return marked(c, deps, c.req.valid('param').id, { state: 'acknowledged', until: null, note })
    },
  )

const snoozeFindingRoute = (deps: FindingRouteDeps) =>
  new Hono<ControlEnv>().post(
    '/findings/:id/snooze',
    describeRoute({
      id: 'snoozeFinding',
      tag: 'System',
      summary:
        'Leave a finding alone for a time, for a reason; it holds for the same finding when it ' +
        'is closed and comes back meanwhile',
      body: { duration: 3_600, reason: 'The carrier works on its gateway until 18:00.' },
      answer: data(keptFindingView, {
        ...exampleFinding,
        state: 'snoozed',
        acknowledged: null,
        snoozed: {
          at: exampleTime,
          by: 'user:anna',
          until: exampleTime,
          reason: 'The carrier works on its gateway until 18:00.',
        },
      }),
      refusals: [404, 409],
    }),
    requires('calls:write'),
    validate('param', idParam(noun)),
    validate('json', snoozeBody),
    repeatable(),
    (c) => {
      const { reason, ...end } = c.req.valid('json')
      const until = snoozeEnd(end, deps.now())
      return marked(c, deps, c.req.valid('param').id, { state: 'snoozed', until, note: reason })
    },
  )

const reopenFindingRoute = (deps: FindingRouteDeps) =>
  new Hono<ControlEnv>().post(
    '/findings/:id/reopen',
    describeRoute({
      id: 'reopenFinding',
      tag: 'System',
      summary: 'Take back that a finding was acknowledged or snoozed',
      answer: data(keptFindingView, { ...exampleFinding, state: 'open', acknowledged: null }),
      refusals: [404, 409],
    }),
    requires('calls:write'),
    validate('param', idParam(noun)),
    repeatable(),
    (c) => marked(c, deps, c.req.valid('param').id, undefined),
  )

function snoozeEnd(
  {
    until,
    duration,
  }: { readonly until?: number | undefined; readonly duration?: number | undefined },
  now: number,
): number {
  if ((until === undefined) === (duration === undefined))
    throw badRequest('Say either until or duration', [
      { path: 'until', message: 'either this or duration is required' },
    ])
  const end = until ?? now + (duration ?? 0) * 1_000
  if (end <= now)
    throw badRequest('The end of the snooze is over', [
      { path: 'until', message: 'must be in the future' },
    ])
  if (end > now + MAX_SNOOZE_MS)
    throw badRequest('A snooze lasts at most 30 days', [
      { path: 'until', message: 'must be at most 30 days from now' },
    ])
  return end
}

/** Undefined: what was said is taken back. Safe to repeat. */
async function marked(
  c: Context<ControlEnv>,
  deps: FindingRouteDeps,
  id: number,
  mark: Pick<NewMark, 'state' | 'until' | 'note'> | undefined,
) {
  const { principal } = c.var
  admitScope(principal, 'cdrs:read')
  const kept = new FindingStore(deps.store)
  const { tenantId, actor } = principal
  const change = await transaction(deps.store, async () => {
    const before = await viewOf(deps, principal, id)
    if (before.closed_at !== null)
      throw conflict('finding_closed', 'The finding is closed: nothing is found any more')
    const actor_name = principal.kind === 'key' ? principal.name : null
    const now = deps.now()
    if (mark === undefined) await kept.unmark(id, { tenantId })
    else await kept.mark(id, { tenantId, now }, { ...mark, actor, actor_name, at: now })
    return { before, after: await viewOf(deps, principal, id) }
  })
  c.set('change', { ...change, reason: mark?.note ?? null })
  return ok(c, change.after)
}

/** Throws 404 where it is not there, or the credential may not see its kind. */
async function viewOf(
  deps: FindingRouteDeps,
  principal: Principal,
  id: number,
): Promise<KeptFindingView> {
  const reader = { tenantId: principal.tenantId, now: deps.now() }
  const row = await new FindingStore(deps.store).find(id, reader)
  if (row === undefined || !maySee(principal, row)) throw notFound(noun)
  const [view] = await viewsOf(deps, principal, [row])
  if (view === undefined) throw notFound(noun)
  return view
}

function maySee(principal: Principal, { kind, subject }: FindingRow): boolean {
  const known = kinds.find((each) => each === kind)
  if (known === undefined) return false
  const isOfExtension = known === 'registration' && !subject.startsWith('carrier ')
  return (
    needs[known].every((scope) => isAdmitted(principal, scope)) &&
    (!isOfExtension || isAdmitted(principal, 'extensions:read'))
  )
}

async function viewsOf(
  { store, now }: FindingRouteDeps,
  principal: Principal,
  rows: readonly MarkedFinding[],
): Promise<readonly KeptFindingView[]> {
  if (rows.length === 0) return []
  const { tenantId } = principal
  const slugs = await slugsOf(store, rows)
  const handled = await handlingOf(store, principal, rows)
  const actors = rows.flatMap(({ mark }) => mark ?? [])
  const isOwn = await ownActors({ store, tenantId }, actors)
  const shownActor = (actor: string, name: string | null): string =>
    isOwn(actor) ? (name ?? actor) : 'platform'
  return rows.map((row) => {
    const { mark } = row
    const { seen_since: _, ...shown } = detailsOf(row)
    const by = mark && {
      at: timeToText(mark.at),
      by: shownActor(mark.actor, mark.actor_name),
    }
    const isSnooze = mark?.state === 'snoozed'
    return {
      id: row.id,
      tenant: row.tenant_id === null ? null : (slugs.get(row.tenant_id) ?? null),
      kind: row.kind as FindingKind,
      severity: row.severity,
      state: stateOf(row, now()),
      subject: row.subject,
      ...shown,
      first_at: timeToText(row.first_at),
      last_at: timeToText(row.last_at),
      opened_at: timeToText(row.opened_at),
      closed_at: timeOrNull(row.closed_at),
      acknowledged: by !== undefined && !isSnooze ? { ...by, note: mark?.note ?? null } : null,
      snoozed:
        by !== undefined && isSnooze
          ? { ...by, until: timeToText(mark?.until ?? 0), reason: mark?.note ?? '' }
          : null,
      handled_by: handled.get(row.handled_change_id ?? '') ?? null,
    }
  })
}

async function slugsOf(
  store: Store,
  rows: readonly FindingRow[],
): Promise<ReadonlyMap<number, string>> {
  const ids = [...new Set(rows.flatMap(({ tenant_id: id }) => id ?? []))]
  if (ids.length === 0) return new Map()
  const query = store.db.selectFrom('tenant').select(['id', 'slug']).where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, slug }) => [id, slug]))
}

/** The changes that dealt with them, as far as they are kept and the reader may see them. */
async function handlingOf(
  store: Store,
  principal: Principal,
  rows: readonly FindingRow[],
): Promise<ReadonlyMap<string, NonNullable<FindingView['handled_by']>>> {
  const ids = [...new Set(rows.flatMap(({ handled_change_id: id }) => id ?? []))]
  if (ids.length === 0) return new Map()
  const query = store.db
    .selectFrom('change_entry')
    .select(['change_id', 'at', 'tool', 'actor', 'actor_name', 'reason', 'expires_at'])
    .where('change_id', 'in', ids)
    .$if(principal.tenantId !== null, (own) => own.where('tenant_id', '=', principal.tenantId))
  const isActorShown = isAdmitted(principal, 'audit:read')
  const seenSince = new Set(
    rows.flatMap((row) => (detailsOf(row).seen_since ? (row.handled_change_id ?? []) : [])),
  )
  return new Map(
    (await all(store, query)).map(
      ({ change_id, at, tool, actor, actor_name, reason, expires_at }) => [
        change_id,
        {
          change_id,
          at: timeToText(at),
          tool,
          by: isActorShown ? (actor_name ?? actor) : null,
          reason,
          expires_at: timeOrNull(expires_at),
          seen_since: seenSince.has(change_id),
        },
      ],
    ),
  )
}
