/**
 * Makes a change and enters it, so that it can be undone. Where the target is a row, change and entry are one
 * transaction; otherwise the entry is written before the change, and settled after it (`change-duties.ts` settles what a
 * crash has left).
 */
import type { RestorableKind } from './kinds.ts'
import type { ChangeDeps, Json } from './kinds.ts'
import { isDeepStrictEqual } from 'node:util'
import { timeToText } from '../../schema/columns.ts'
import { transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Principal } from '../auth/principal.ts'
import type { Scope } from '../auth/scopes.ts'
import { ApiError, conflict } from '../http/api-error.ts'
import {
  type ChangeEntry,
  ChangeStore,
  CLAIM_MS,
  type NewChangeEntry,
  stateIn,
  stateText,
  type Target,
} from './change-store.ts'
import { sharedFields } from './field-states.ts'
import { isSameState, restorable } from './kinds.ts'
import type { Plan } from './plan.ts'
import { lastAbout } from './related-change.ts'

/** What was asked for, and the caller. */
export interface ChangeOrder {
  readonly principal: Principal
  readonly tool: string
  /** Those that undoing it requires, besides those of MCP. */
  readonly scopes: readonly Scope[]
  readonly reason: string | null
  readonly isDryRun: boolean
  /** A new UUID: the target may be named by it. */
  readonly changeId: string
  /** Milliseconds UTC; null: until it is undone. */
  readonly expiresAt: number | null
  /** The proposal that a person approved; absent: there was none. */
  readonly proposalId?: string | undefined
}

export interface MadeChange<O> {
  readonly plan: Pick<Plan<O>, 'effect' | 'affected' | 'before' | 'after' | 'undo'>
  readonly isDryRun: boolean
  /** In a dry run: whether it would be. */
  readonly isChanged: boolean
  /** Null: nothing was changed. */
  readonly changeId: string | null
  /** Null: never, or nothing was changed. */
  readonly expiresAt: number | null
  readonly own: O
}

/** `makePlan` reads the present state; it runs again when that has changed meanwhile. */
export async function makeChange<O>(
  order: ChangeOrder,
  makePlan: () => Promise<Plan<O>>,
  world: ChangeDeps,
): Promise<MadeChange<O>> {
  const plan = await makePlan()
  const entries = new ChangeStore(world.store)
  const kind = restorable(world.kinds, plan.target.kind)
  if (isDeepStrictEqual(plan.before, plan.after)) return keepLonger(order, plan, entries, world)
  if (order.isDryRun) return made(order, plan, plan.preview)
  const making = { order, entries, world }
  const done =
    kind?.isRow === true
      ? await asRow({ ...making, kind }, plan, makePlan)
      : await beside(making, plan, makePlan)
  if (done === undefined) return keepLonger(order, await makePlan(), entries, world)
  await kind?.follow?.(world, done.plan.target.id)
  return made(order, done.plan, done.own)
}

function made<O>(order: ChangeOrder, plan: MadeChange<O>['plan'], own: O): MadeChange<O> {
  const { isDryRun } = order
  const changeId = isDryRun ? null : order.changeId
  const expiresAt = plan.undo === 'none' ? null : order.expiresAt
  return { plan, isDryRun, isChanged: true, changeId, expiresAt, own }
}

interface Making {
  readonly order: ChangeOrder
  readonly entries: ChangeStore
  readonly world: ChangeDeps
}

interface Done<O> {
  readonly plan: Plan<O>
  readonly own: O
}

/** Others that change the same row at the same moment come first this often. */
const MAX_ATTEMPTS = 5

/** Resolves with undefined when it has become so meanwhile. */
async function asRow<O>(
  making: Making & { readonly kind: RestorableKind },
  first: Plan<O>,
  makePlan: () => Promise<Plan<O>>,
): Promise<Done<O> | undefined> {
  const { order, kind, entries, world } = making
  let plan = first
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const planned = plan
    const done = await transaction(world.store, async () => {
      const current = await kind.read(planned.target.id, world)
      if (!isSameState(kind, current, planned.before)) return undefined
      const own = await planned.apply()
      await entries.insert(entryOf(order, planned, world, 'made'))
      return { plan: planned, own }
    })
    if (done !== undefined) return done
    plan = await makePlan()
    if (isDeepStrictEqual(plan.before, plan.after)) return undefined
  }
  throw changeUnderWay()
}

/** Resolves with undefined when it has become so meanwhile. */
async function beside<O>(
  { order, entries, world }: Making,
  first: Plan<O>,
  makePlan: () => Promise<Plan<O>>,
): Promise<Done<O> | undefined> {
  await transaction(world.store, async () => {
    if (await entries.isClaimed(first.target, world.now())) throw changeUnderWay()
    await entries.insert(entryOf(order, first, world, 'pending'))
  })
  try {
    // No other change of the target is under way now: this is the state to come back to.
    const plan = await makePlan()
    if (!isDeepStrictEqual(plan.target, first.target)) throw changeUnderWay()
    if (isDeepStrictEqual(plan.before, plan.after)) {
      await entries.remove(order.changeId)
      return undefined
    }
    if (!isDeepStrictEqual(plan.before, first.before))
      await entries.rewrite(entryOf(order, plan, world, 'pending'))
    const own = await plan.apply()
    await settle(entries, order.changeId)
    return { plan, own }
  } catch (error) {
    // A refusal says that nothing has changed; of another error it is not known.
    if (error instanceof ApiError && error.status < 500) await entries.remove(order.changeId)
    throw error
  }
}

/** It is made: while the database is away its entry waits to be settled. */
async function settle(entries: ChangeStore, changeId: string): Promise<void> {
  try {
    await entries.settle(changeId, 'made')
  } catch (error) {
    if (!isUnstored(error)) throw error
  }
}

export const UNDER_WAY = 'change_under_way'

export const changeUnderWay = (): ApiError =>
  conflict(
    UNDER_WAY,
    'Another change of the same target is under way. Nothing was changed: look at its state again, then retry',
  )

/**
 * It is as wanted already. Where an earlier change would end sooner than asked for now, it lasts longer: a new change
 * takes its place, which leads back to the same state. It never ends sooner by this: who may not undo it could otherwise
 * let it run out.
 */
async function keepLonger<O>(
  order: ChangeOrder,
  plan: Plan<O>,
  entries: ChangeStore,
  world: ChangeDeps,
): Promise<MadeChange<O>> {
  const unchanged = {
    plan,
    isDryRun: order.isDryRun,
    isChanged: false,
    changeId: null,
    expiresAt: null,
    own: plan.preview,
  }
  if (plan.undo === 'none') return unchanged
  const kind = restorable(world.kinds, plan.target.kind)
  return transaction(world.store, async () => {
    const earlier = await temporary(kind, plan.target, plan.after, entries, world)
    const endsAt = earlier?.expires_at ?? null
    if (earlier === undefined || endsAt === null) return unchanged
    if (order.expiresAt !== null && order.expiresAt <= endsAt) {
      const effect = `Nothing changes: it is so already, until ${timeToText(endsAt)}.`
      return { ...unchanged, plan: { ...plan, effect }, expiresAt: endsAt }
    }
    const effect = longerEffect(order.expiresAt, endsAt)
    const longer = { ...plan, effect, ...longerStates(earlier, plan.after) }
    if (!order.isDryRun) await entries.insert(entryOf(order, longer, world, 'made'))
    return made(order, longer, plan.preview)
  })
}

/** The change of a duration that has made this state of the target; undefined: it is so for good. */
export async function temporary(
  kind: RestorableKind | null,
  target: Target,
  state: Json | null,
  entries: ChangeStore,
  world: ChangeDeps,
): Promise<ChangeEntry | undefined> {
  const earlier = await lastAbout(entries, kind, target, state)
  if (kind === null || earlier === undefined || earlier.expires_at === null) return undefined
  // What writes without an entry, such as a seed file, has changed it since.
  const current = await kind.read(target.id, world)
  return isSameState(kind, current, stateIn(earlier.state_after)) ? earlier : undefined
}

/** Of the change that takes the place of a temporary one: it leads back to the same state. */
export function longerStates(earlier: ChangeEntry, state: Json | null) {
  const before = sharedFields(stateIn(earlier.state_before), state)
  return { before, after: sharedFields(state, before) }
}

export const longerEffect = (until: number | null, endsAt: number): string =>
  `It stays so ${until === null ? 'until it is undone' : `until ${timeToText(until)}`}, instead of until ${timeToText(endsAt)}.`

export function entryOf(
  order: Omit<ChangeOrder, 'isDryRun'>,
  plan: Pick<Plan<unknown>, 'target' | 'before' | 'after' | 'effect' | 'undo'>,
  { now }: ChangeDeps,
  state: 'pending' | 'made',
): NewChangeEntry {
  const { principal, changeId, tool, reason, expiresAt, proposalId } = order
  return {
    change_id: changeId,
    at: now(),
    tool,
    reason,
    state,
    effect: plan.effect,
    actor: principal.actor,
    actor_name: principal.kind === 'key' ? principal.name : null,
    tenant_id: principal.tenantId,
    scopes: JSON.stringify(order.scopes),
    target_kind: plan.target.kind,
    target_id: plan.target.id,
    undo: plan.undo,
    state_before: stateText(plan.before),
    state_after: stateText(plan.after),
    expires_at: plan.undo === 'none' ? null : expiresAt,
    proposal_id: proposalId ?? null,
    claimed_until: state === 'pending' ? now() + CLAIM_MS : null,
  }
}
