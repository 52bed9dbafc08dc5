/** The audit log: append-only, one entry per mutating request and per tool call. */
import { createHash } from 'node:crypto'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import { type ExpressionBuilder, type Selectable, sql, type SqlBool } from 'kysely'
import { z } from 'zod'
import { MINUTE_MS, type Clocks } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Database } from '../../schema/tables/database.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, includes, readApart, startsWith } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Principal } from '../auth/principal.ts'
import { isLogin } from '../auth/rate-limit.ts'
import { requires } from '../auth/requires.ts'
import type { ChangeDigests, ControlEnv } from '../http/control-env.ts'
import {
  ok,
  endingMeta,
  likePattern,
  MAX_COUNTED,
  MAX_LISTED,
  offsetOf,
  pageQuery,
  startPattern,
} from '../http/envelope.ts'
import { queryTime } from '../http/fields.ts'
import { countOf } from '../http/rows.ts'
import { matchesLike } from '../http/text-match.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { targetNames } from './audit-names.ts'
import { setChangeHeader } from '../instances/peer-answers.ts'
import { exampleTime, moment } from '../http/view-fields.ts'
import { list } from '../http/operation.ts'
import type { AuditEntryTable } from '../../schema/tables/access.ts'

const auditEntryView = z
  .strictObject({
    id: z.int(),
    at: moment,
    actor: z
      .string()
      .describe(
        '`key:<uuid>`, `user:<username>`, `customer:<id>`, `anonymous`, `console` or `platform`.',
      ),
    actor_name: z.string().nullable().describe('For a key: its name at that time.'),
    actor_key_prefix: z
      .string()
      .nullable()
      .describe('For a key: the start of its token at that time.'),
    tenant_id: z.int().nullable(),
    address: z.string(),
    action: z.string(),
    target: z.string(),
    target_name: z
      .string()
      .nullable()
      .describe('How the object is called now; null: it is gone, or has no name.'),
    outcome: z.enum(['success', 'refused', 'failed']),
    status: z.int(),
    code: z
      .string()
      .nullable()
      .describe(
        'Of a refusal; `idempotency_replayed`: the answer to an `Idempotency-Key` was given ' +
          'again, and nothing was done.',
      ),
    before_digest: z.string().nullable().describe('SHA-256 of the resource as the API shows it.'),
    after_digest: z.string().nullable(),
    correlation_id: z.string(),
    change_id: z.string().nullable().describe('Of the change that was made or undone.'),
    effect: z
      .string()
      .nullable()
      .describe('What was done, in a sentence: of that change, or of money moved.'),
    reason: z.string().nullable().describe('As given with the change.'),
    is_agent: z.boolean().describe('The call of a tool, or by a key that names a scope of MCP.'),
  })
  .meta({ id: 'AuditEntry' })

export type AuditEntry = Omit<Selectable<AuditEntryTable>, 'id'>

export interface AuditFilter {
  /** Only entries of this tenant's credentials; null for all. */
  readonly tenantId: number | null
  /** The actor as in the entry, or the name of a key. */
  readonly actor?: string | undefined
  readonly outcome?: AuditEntry['outcome'] | undefined
  /** Prefix of the action, such as `DELETE` or `tool revoke`. */
  readonly action?: string | undefined
  /** Part of the target. */
  readonly target?: string | undefined
  /** True: only entries of agents; false: none of them. */
  readonly agents?: boolean | undefined
  /** True: only what was to change something. */
  readonly changes?: boolean | undefined
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from?: number | undefined
  readonly before?: number | undefined
}

interface Slice {
  readonly limit: number
  readonly offset: number
}

/** Entries in memory while the database cannot be written; each is about 1 kB. */
const MAX_WAITING = 10_000
/** Entries of one statement. */
const BATCH = 100

export class AuditLog {
  readonly #store: Store
  readonly #onLost: (entry: AuditEntry, error: unknown) => void
  readonly #waiting: AuditEntry[] = []
  readonly #flushes = new OneAtATime(() => this.#storeWaiting())
  #isFailing = false
  #error: unknown

  /** @param onLost gets each entry that cannot be stored, so that none is lost silently. */
  constructor(store: Store, onLost: (entry: AuditEntry, error: unknown) => void) {
    this.#store = store
    this.#onLost = onLost
  }

  /** Never fails: a request that was carried out stays so, and its entry is stored later. */
  async record(entry: AuditEntry): Promise<void> {
    this.#waiting.push(entry)
    // The periodic flush tries again: no response waits for an unavailable database server.
    if (!this.#isFailing) await this.flush()
    if (this.#waiting.length > MAX_WAITING) this.#lose(this.#waiting.length - MAX_WAITING)
  }

  /**
   * Stores waiting entries; called periodically. Resolves with false while the database cannot be
   * written. An entry is stored twice when the connection to a database server broke before its
   * answer.
   */
  flush(): Promise<boolean> {
    return this.#flushes.request()
  }

  /** The last flush: `onLost` gets entries that cannot be stored. */
  async close(): Promise<void> {
    if (!(await this.flush())) this.#lose(this.#waiting.length)
  }

  #lose(count: number): void {
    for (const entry of this.#waiting.splice(0, count)) this.#onLost(entry, this.#error)
  }

  async #storeWaiting(): Promise<boolean> {
    let unwritten: readonly AuditEntry[] = []
    while (this.#waiting.length > 0 && unwritten.length === 0)
      unwritten = await this.#write(this.#waiting.splice(0, BATCH))
    this.#waiting.unshift(...unwritten)
    this.#isFailing = unwritten.length > 0
    return !this.#isFailing
  }

  /** Resolves with those that wait until the database can be written. */
  async #write(entries: readonly AuditEntry[]): Promise<readonly AuditEntry[]> {
    try {
      await execute(this.#store, this.#store.db.insertInto('audit_entry').values(entries))
      return []
    } catch (error) {
      this.#error = error
      if (isUnstored(error)) return entries
      if (entries.length > 1) return this.#writeOneByOne(entries)
      // This entry can never be stored; the others must not wait for it.
      for (const entry of entries) this.#onLost(entry, error)
      return []
    }
  }

  async #writeOneByOne(entries: readonly AuditEntry[]): Promise<readonly AuditEntry[]> {
    for (const [index, entry] of entries.entries())
      if ((await this.#write([entry])).length > 0) return entries.slice(index)
    return []
  }

  /** Newest first. */
  list(filter: AuditFilter, page: Slice) {
    return readApart(this.#store, filter.tenantId, () => this.#list(filter, page))
  }

  async #list(filter: AuditFilter, page: Slice) {
    let query = this.#store.db.selectFrom('audit_entry').selectAll()
    if (filter.tenantId !== null) query = query.where('tenant_id', '=', filter.tenantId)
    const { actor, action, target, agents, changes } = filter
    if (actor !== undefined)
      query = query.where((entry) =>
        entry.or([entry('actor', '=', actor), entry('actor_name', '=', actor)]),
      )
    if (filter.outcome !== undefined) query = query.where('outcome', '=', filter.outcome)
    if (filter.from !== undefined) query = query.where('at', '>=', filter.from)
    if (filter.before !== undefined) query = query.where('at', '<', filter.before)
    if (action !== undefined)
      query = query.where(matchesLike(sql.ref<string>('action'), action, startPattern))
    if (target !== undefined)
      query = query.where(matchesLike(sql.ref<string>('target'), target, likePattern))
    if (agents !== undefined)
      query = query.where((entry) => (agents ? isOfAgent(entry) : entry.not(isOfAgent(entry))))
    if (changes === true) query = query.where(isChange)
    const some = query.clearSelect().select('id').limit(MAX_COUNTED)
    const rows = query
      .select((entry) => isOfAgent(entry).as('is_agent'))
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(page.limit)
      .offset(page.offset)
    const listed = page.offset >= MAX_LISTED ? [] : await all(this.#store, rows)
    const effects = await this.#effectsOf(listed)
    const targets = listed.map((entry) => entry.target)
    const names = await targetNames(this.#store, targets, filter.tenantId)
    return {
      entries: (await this.#named(listed)).map((entry) => view(entry, effects, names)),
      total: await countOf(this.#store, some),
    }
  }

  /** Reads effects by the id of the change. */
  async #effectsOf(entries: readonly ListedEntry[]): Promise<ReadonlyMap<string, string>> {
    const ids = [...new Set(entries.flatMap(({ change_id: id }) => id ?? []))]
    if (ids.length === 0) return new Map()
    const query = this.#store.db
      .selectFrom('change_entry')
      .select(['change_id', 'effect'])
      .where('change_id', 'in', ids)
    return new Map((await all(this.#store, query)).map(({ change_id: id, effect }) => [id, effect]))
  }

  /** Entries of older versions have no names: show the current names of their keys. */
  async #named(entries: readonly ListedEntry[]): Promise<readonly ListedEntry[]> {
    const uuids = entries.flatMap(({ actor, actor_name: name }) =>
      name === null && actor.startsWith('key:') ? [actor.slice(4)] : [],
    )
    if (uuids.length === 0) return entries
    const query = this.#store.db
      .selectFrom('application_key')
      .select(['uuid', 'name', 'key_prefix'])
      .where('uuid', 'in', [...new Set(uuids)])
    const found = await all(this.#store, query)
    const keys = new Map(found.map((key) => [`key:${key.uuid}`, key]))
    return entries.map((entry) => {
      const key = entry.actor_name === null ? keys.get(entry.actor) : undefined
      return key === undefined
        ? entry
        : { ...entry, actor_name: key.name, actor_key_prefix: key.key_prefix }
    })
  }
}

type ListedEntry = Selectable<AuditEntryTable> & { readonly is_agent: SqlBool }

/** A call of a tool, or an action of a key with a scope of MCP. */
function isOfAgent(entry: ExpressionBuilder<Database, 'audit_entry'>) {
  const agents = entry
    .selectFrom('application_key')
    .select('uuid')
    .where((key) => includes(key.ref('scopes'), '"mcp:'))
    .whereRef('uuid', '=', sql`substr(actor, 5)`)
  return entry.or([startsWith(entry.ref('action'), 'tool '), entry.exists(agents)])
}

/** Requests, and calls of tools that reported a change. */
export const isChange = (entry: ExpressionBuilder<Database, 'audit_entry'>) =>
  entry.or([
    entry.not(startsWith(entry.ref('action'), 'tool ')),
    entry('before_digest', 'is not', null),
    entry('after_digest', 'is not', null),
  ])

/** The actor of an entry. */
export function auditedActor(
  principal: Principal | undefined,
): Pick<AuditEntry, 'actor' | 'actor_name' | 'actor_key_prefix' | 'tenant_id'> {
  const isKey = principal?.kind === 'key'
  return {
    actor: principal?.actor ?? 'anonymous',
    actor_name: isKey ? principal.name : null,
    actor_key_prefix: isKey ? principal.keyPrefix : null,
    tenant_id: principal?.tenantId ?? null,
  }
}

interface AuditedAction extends Pick<
  AuditEntry,
  'at' | 'address' | 'action' | 'target' | 'status'
> {
  readonly by: Pick<AuditEntry, 'actor' | 'tenant_id'> & Partial<AuditEntry>
  readonly code?: string | null | undefined
  /** Absent: nothing was changed, or the caller does not know. */
  readonly digests?: Pick<ChangeDigests, 'before' | 'after'>
  readonly correlationId: string
  readonly changeId?: string | null | undefined
  readonly reason?: string | null | undefined
  /** A sentence about a deed that has no entry among the changes. */
  readonly effect?: string | undefined
}

export const auditEntry = ({ by, digests, ...audited }: AuditedAction): AuditEntry => ({
  at: audited.at,
  actor: by.actor,
  actor_name: by.actor_name ?? null,
  actor_key_prefix: by.actor_key_prefix ?? null,
  tenant_id: by.tenant_id,
  address: audited.address,
  action: audited.action,
  target: audited.target,
  outcome: audited.status < 400 ? 'success' : audited.status < 500 ? 'refused' : 'failed',
  status: audited.status,
  code: audited.code ?? null,
  before_digest: digests?.before ?? null,
  after_digest: digests?.after ?? null,
  correlation_id: audited.correlationId,
  change_id: audited.changeId ?? null,
  reason: audited.reason ?? null,
  effect: audited.effect ?? null,
})

const view = (
  { is_agent, ...entry }: ListedEntry,
  effects: ReadonlyMap<string, string>,
  names: ReadonlyMap<string, string>,
) => ({
  ...entry,
  target_name: names.get(entry.target) ?? null,
  at: timeToText(entry.at),
  effect: effects.get(entry.change_id ?? '') ?? entry.effect,
  is_agent: Boolean(is_agent),
})

/** SHA-256 of the JSON as the API shows it; null when absent or not reported by the route. */
export function digestOf(shown: unknown): string | null {
  if (shown === null || shown === undefined) return null
  return createHash('sha256').update(JSON.stringify(shown)).digest('base64url')
}

/** The methods to mount it for; the others change nothing. */
export const mutatingMethods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

/**
 * Writes one entry for every mutating request with a valid credential and for every login, whatever
 * the result: it is mounted before everything that may reject. It leaves out requests without a
 * credential, those over a rate limit, and failed logins beyond a few per minute, because any
 * client could fill the disk with them. `onOmitted` counts those logins.
 */
export function auditTrail(
  log: AuditLog,
  { now, steadyNow }: Clocks,
  onOmitted: () => void,
): MiddlewareHandler<ControlEnv> {
  const admits = anonymousLimit(steadyNow)
  return async (c, next) => {
    await next()
    // Nodes report several times per call; call record, ledger and report say more than an entry
    // would.
    if (c.req.path.startsWith('/api/ocs/')) return
    const principal = whoAsked(c)
    const digests = digestsOf(c)
    if (c.get('instanceRequest') !== undefined) setChangeHeader(c, digests)
    const refusal = c.get('refusal')
    if (c.get('isAudited') || (principal === undefined && !isLogin(c))) return
    if (refusal?.code === 'rate_limited') return
    const actor = principal?.actor ?? c.get('loginActor')
    if (actor === undefined && !admits()) return onOmitted()
    await log.record(
      auditEntry({
        at: now(),
        by: { ...auditedActor(principal), actor: actor ?? 'anonymous' },
        address: c.get('clientAddress'),
        action: operationOf(c),
        target: c.req.path,
        status: c.res.status,
        // A repeated answer says that something was done; this time nothing was.
        code: c.get('isReplayed') ? 'idempotency_replayed' : refusal?.code,
        digests,
        correlationId: c.get('correlationId'),
        changeId: digests.changeId,
        reason: c.get('change')?.reason,
        effect: c.get('change')?.effect,
      }),
    )
  }
}

/** `PATCH /api/v1/customers/:id`. */
export const operationOf = (c: Context<ControlEnv>): string => `${c.req.method} ${routePath(c, -1)}`

function digestsOf(c: Context<ControlEnv>): ChangeDigests {
  const change = c.get('change')
  return (
    c.get('changeDigests') ?? {
      before: digestOf(change?.before),
      after: digestOf(change?.after),
      changeId: change?.changeId ?? null,
    }
  )
}

/** A key used from an address that is not allowed is worth an entry. */
function whoAsked(c: Context<ControlEnv>): Principal | undefined {
  const presented = c.get('presented')
  const isKnown = presented.kind === 'accepted' || presented.kind === 'wrong-address'
  return isKnown ? presented.principal : undefined
}

const ENTRIES_A_MINUTE = 60

/**
 * Limits entries per minute for requests without a credential, because any client can send those.
 */
function anonymousLimit(steadyNow: () => number): () => boolean {
  let minute = -1
  let entries = 0
  return () => {
    const current = Math.floor(steadyNow() / MINUTE_MS)
    if (current !== minute) {
      minute = current
      entries = 0
    }
    entries += 1
    return entries <= ENTRIES_A_MINUTE
  }
}

const auditQuery = z.strictObject({
  ...pageQuery,
  actor: z.string().max(200).optional().describe('Of an entry, or the name of a key.'),
  action: z.string().max(200).optional().describe('The start of the action.'),
  target: z.string().max(200).optional().describe('Part of the target.'),
  agents: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .describe('Only what AI agents did, or only what others did.'),
  outcome: z.enum(['success', 'refused', 'failed']).optional(),
  start_date: queryTime.optional(),
  end_date: queryTime.optional(),
})

export const auditRoutes = (log: AuditLog) =>
  new Hono<ControlEnv>().get(
    '/audit',
    describeRoute({
      id: 'listAuditEntries',
      tag: 'System',
      summary: 'List audit log entries, newest first',
      answer: list(auditEntryView, {
        id: 1,
        at: exampleTime,
        actor: 'key:9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
        actor_name: 'deploy',
        actor_key_prefix: 'sbc_live_a1B',
        tenant_id: null,
        address: '192.0.2.1',
        action: 'DELETE /api/v1/customers/:id',
        target: '/api/v1/customers/7',
        target_name: 'Acme',
        outcome: 'success',
        status: 200,
        code: null,
        before_digest: 'x2QJ',
        after_digest: null,
        correlation_id: '5f0c9a52-8c0f-4a86-9f53-2d3f9d3f7c10',
        change_id: null,
        effect: null,
        reason: null,
        is_agent: false,
      }),
    }),
    requires('audit:read'),
    validate('query', auditQuery),
    async (c) => {
      const { page, limit, start_date: from, end_date: before, ...rest } = c.req.valid('query')
      const filter = { tenantId: c.var.principal.tenantId, from, before, ...rest }
      const found = await log.list(filter, { limit, offset: offsetOf({ page, limit }) })
      return ok(c, found.entries, endingMeta({ page, limit }, found.total))
    },
  )

export type AuditEntryView = ReturnType<typeof view>
