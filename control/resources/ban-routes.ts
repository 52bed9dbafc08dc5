/** `/guard/bans`: lists banned SIP sources, bans a source, and lifts a ban. */
import { isIP } from 'node:net'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import type { AccountLock, Ban, EnginePort } from '../../schema/contracts/engine.ts'
import { sourceIn } from '../../schema/net/ip-address.ts'
import { requiresGlobal } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { wrongTenant } from '../auth/tenants.ts'
import { operationOf } from '../changes/audit.ts'
import { change, type ChangeOrder, type Plan, recordChange, writeQuery } from '../changes/change.ts'
import type { ChangeDeps, Json, RestorableKind } from '../changes/kinds.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, ok } from '../http/envelope.ts'
import { data } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'

/** The last one is that of a lock. */
export const banReasons = [
  'password_guessing',
  'unknown_calls',
  'operator',
  'wrong_passwords',
] as const

const banView = z
  .strictObject({
    source: z.string().describe('An IPv4 address or an IPv6 network.'),
    account: z
      .string()
      .nullable()
      .describe('Of a lock: the account whose passwords are not checked from there. Null: a ban.'),
    reason: z.enum(banReasons).describe('`wrong_passwords`: too many for one account.'),
    since: moment,
    until: moment,
    dropped_packets: count,
  })
  .meta({ id: 'Ban' })

const path = '/guard/bans'
const day = 86_400

const newBan = z.strictObject({
  address: z
    .string()
    .max(45)
    .refine((text) => isIP(text) !== 0, 'Expected an IP address'),
  duration_seconds: z
    .int()
    .min(1)
    .max(30 * day)
    .default(600),
})
/** An address, or a source as in the list. */
const oneBan = z.strictObject({ source: z.string().min(1).max(60) })

export function banRoutes(deps: ChangeDeps) {
  return new Hono<ControlEnv>()
    .route('/', listBansRoute(deps))
    .route('/', createBanRoute(deps))
    .route('/', deleteBanRoute(deps))
}

function listBansRoute(deps: ChangeDeps) {
  return new Hono<ControlEnv>().get(
    path,
    describeRoute({
      id: 'listBans',
      tag: 'System',
      summary: 'List banned SIP sources and locked accounts',
      answer: data(z.array(banView), [
        {
          source: '203.0.113.9',
          account: null,
          reason: 'password_guessing',
          since: exampleTime,
          until: '2026-01-01T00:10:00.000Z',
          dropped_packets: 1200,
        },
      ]),
    }),
    requiresGlobal('guard:read'),
    (c) => ok(c, bansAndLocks(deps.engine)),
  )
}

function createBanRoute(deps: ChangeDeps) {
  const { guard } = deps.engine
  return new Hono<ControlEnv>().post(
    path,
    describeRoute({
      id: 'createBan',
      tag: 'System',
      summary: 'Ban a SIP source for a period',
      body: { address: '203.0.113.9', duration_seconds: 3600 },
      answer: data(
        z.strictObject({ address: z.string(), duration_seconds: count }),
        { address: '203.0.113.9', duration_seconds: 3600 },
        201,
      ),
    }),
    requiresGlobal('guard:write'),
    validate('query', writeQuery),
    validate('json', newBan),
    repeatable(),
    async (c) => {
      const { address, duration_seconds: seconds } = c.req.valid('json')
      const { reason = null } = c.req.valid('query')
      const source = sourceIn(address)
      const until = deps.now() + seconds * 1_000
      // A longer ban replaces a temporary one, whose end would lift it.
      const before = () => stateBeforeBan(source, until, deps)
      const ban = () => guard.ban(source, seconds * 1_000)
      const changeId = await entered(deps, c, { source, before, after: 'banned', reason }, ban)
      const data = { address, duration_seconds: seconds }
      recordChange(c, changeId, { before: null, after: data }, reason)
      return created(c, `/api/v1${path}/${encodeURIComponent(address)}`, data)
    },
  )
}

function deleteBanRoute(deps: ChangeDeps) {
  const { guard } = deps.engine
  return new Hono<ControlEnv>().delete(
    `${path}/:source`,
    describeRoute({
      id: 'deleteBan',
      tag: 'System',
      summary: 'Lift a ban and the locks of a source',
      answer: data(z.strictObject({ source: z.string(), banned: z.literal(false) }), {
        source: '203.0.113.9',
        banned: false,
      }),
      refusals: [404],
    }),
    requiresGlobal('guard:write'),
    validate('param', oneBan),
    validate('query', writeQuery),
    async (c) => {
      const source = sourceIn(c.req.valid('param').source)
      const { reason = null } = c.req.valid('query')
      const before = () => banStateOf(source, deps)
      const unban = async () => {
        if (!(await guard.unban(source))) throw notFound('ban')
      }
      const changeId = await entered(deps, c, { source, before, after: 'heard', reason }, unban)
      recordChange(c, changeId, { before: { source }, after: null }, reason)
      return ok(c, { source, banned: false })
    },
  )
}

/**
 * Records a change of an operator's ban. A ban that the guard set itself is not a change of an
 * operator.
 */
async function entered(
  deps: ChangeDeps,
  c: Context<ControlEnv>,
  { reason, ...state }: NewState & { readonly reason: string | null },
  apply: () => Promise<void>,
): Promise<string | null> {
  if (state.before() === state.after) {
    await apply()
    return null
  }
  const order: ChangeOrder = {
    principal: c.var.principal,
    tool: operationOf(c),
    reason,
    scopes: ['guard:write'],
  }
  return (await change(deps, order, () => planOf(state, apply))).changeId
}

interface NewState {
  readonly source: string
  readonly before: () => ReturnType<typeof banStateOf>
  readonly after: ReturnType<typeof banStateOf>
}

function planOf({ source, before, after }: NewState, apply: () => Promise<void>): Plan<void> {
  const isBan = after === 'banned'
  return {
    target: { kind: 'sip_ban', id: source },
    before: before(),
    after,
    effect: isBan
      ? `SIP packets of ${quoted(source)} are dropped.`
      : `SIP packets of ${quoted(source)} are heard again.`,
    affected: {},
    // The end of the ban is not stored.
    undo: isBan ? 'restores' : 'none',
    preview: undefined,
    apply,
  }
}

const viewOf = ({ source, reason, since, until, dropped }: Ban) => ({
  source,
  account: null,
  reason,
  since: timeToText(since),
  until: timeToText(until),
  dropped_packets: dropped,
})

const lockView = ({ source, user, since, until }: AccountLock) => ({
  source,
  account: user,
  reason: 'wrong_passwords' as const,
  since: timeToText(since),
  until: timeToText(until),
  // They are read, and answered with a challenge.
  dropped_packets: 0,
})

export type BanView = ReturnType<typeof viewOf> | ReturnType<typeof lockView>

/** The oldest first. */
export const bansAndLocks = ({ guard }: Pick<EnginePort, 'guard'>): readonly BanView[] =>
  [...guard.bans().map(viewOf), ...guard.locks().map(lockView)].toSorted((one, other) =>
    one.since < other.since ? -1 : Number(one.since > other.since),
  )

/** The longest that the guard bans for. */
const LONGEST_BAN_MS = 30 * DAY_MS

type BanState = 'banned' | 'heard'

export const sipBanKind: RestorableKind = {
  isRow: false,
  read: (source, deps) => Promise.resolve(banStateOf(source, deps)),
  restore: (source, state, deps) => setBan(source, stateIn(state), LONGEST_BAN_MS, deps),
  admit: (_, __, { tenantId }) =>
    tenantId === null ? Promise.resolve() : Promise.reject(wrongTenant()),
}

/**
 * The end of an operator's ban in milliseconds UTC; undefined: there is none. Bans that the guard
 * set itself do not count.
 */
const bannedUntil = (source: string, { engine }: Pick<ChangeDeps, 'engine'>): number | undefined =>
  engine.guard.bans().find((ban) => ban.source === source && ban.reason === 'operator')?.until

const banStateOf = (source: string, deps: Pick<ChangeDeps, 'engine'>): BanState =>
  bannedUntil(source, deps) === undefined ? 'heard' : 'banned'

/** The state before a ban up to this time. A ban that ends sooner does not count as one. */
export const stateBeforeBan = (
  source: string,
  until: number,
  deps: Pick<ChangeDeps, 'engine'>,
): BanState => ((bannedUntil(source, deps) ?? -Infinity) >= until ? 'banned' : 'heard')

export async function setBan(
  source: string,
  state: BanState,
  durationMs: number,
  { engine }: Pick<ChangeDeps, 'engine'>,
): Promise<void> {
  if (state === 'banned') await engine.guard.ban(source, durationMs)
  else await engine.guard.endOperatorBan(source)
}

function stateIn(state: Json | null): BanState {
  if (state === 'banned' || state === 'heard') return state
  throw new ApiError(409, 'not_reversible', 'This change has no earlier state to restore')
}
