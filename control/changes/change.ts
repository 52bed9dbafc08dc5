/**
 * The one way to change something, for tools and for requests of the API. A plan says what a change
 * does, and its entry is written with it. A dry run is a plan that ends there, a proposal is a plan
 * that waits, and an undoing is a plan made of an entry (`undo.ts`). A request that writes rows has
 * no plan: its effect is read from their states before and after.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Context } from 'hono'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Principal } from '../auth/principal.ts'
import type { Scope } from '../auth/scopes.ts'
import { ApiError, conflict } from '../http/api-error.ts'
import { cleanText, plural, quoted } from '../http/clean-text.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { text } from '../http/fields.ts'
import { operationOf } from './audit.ts'
import {
  type ChangeEntry,
  ChangeStore,
  CLAIM_MS,
  lastAbout,
  type NewChangeEntry,
  stateIn,
  stateText,
  type ChangeTarget,
} from './change-store.ts'
import {
  type ChangeDeps,
  type ChangeKind,
  differing,
  fieldsOf,
  type FieldState,
  isSameState,
  type Json,
  pick,
  restorable,
  type RestorableKind,
  sharedFields,
} from './kinds.ts'
import { fieldChange, noMeaning, nounWords } from './field-words.ts'
import { namesOnly, TOO_LONG } from './state-quota.ts'
import { newUuid } from '../http/platform.ts'
import { timeOrNull } from '../http/view-fields.ts'

/** The effect of a change, for its entry and for people. */
export interface ChangeEffect {
  readonly target: ChangeTarget
  /**
   * The row to which the call's names lead, as `customer 7`, where the target does not say it: its
   * id is new, or made of names. What a person approves is of this row only.
   */
  readonly row?: string
  /**
   * The state of the target now and afterwards, as `restore` of the kind understands it, without
   * secrets; null: it is not there. Equal: nothing changes.
   */
  readonly before: Json | null
  readonly after: Json | null
  /**
   * One sentence in our own words. Stored and given texts are in it only as `quoted` of
   * `http/clean-text.ts` makes them: an agent and a person read it.
   */
  readonly effect: string
  /** Who is affected now, such as live calls or requests per hour. */
  readonly affected: Readonly<Record<string, number>>
  /**
   * How it is undone: by `undo_change`, not at all, or, where it undoes a change, by making that
   * one again.
   */
  readonly undo: 'restores' | 'none' | 'repeats'
}

export interface Plan<O> extends ChangeEffect {
  /** A kind of the registry, and an id in that kind. */
  readonly target: { readonly kind: ChangeKind; readonly id: string }
  readonly undo: 'restores' | 'none'
  /** The tool's own fields of the answer of a dry run, and of a call that changes nothing. */
  readonly preview: O
  /**
   * Makes the change, and resolves with the tool's own fields. Where the target is a row, it runs
   * in the transaction that writes the entry: it waits for statements only, and may run again from
   * its beginning.
   */
  readonly apply: () => Promise<O>
  /** Facts that are known only after the change: the id of a new row, and its stored state. */
  readonly applied?: () => { readonly id: string; readonly after: Json }
}

/** Who wants a change, and why. */
export interface ChangeOrder {
  readonly principal: Principal
  /** The tool, or the operation of the API as in the audit log: `PATCH /api/v1/customers/:id`. */
  readonly tool: string
  /** The scopes that undoing requires, besides those of MCP. */
  readonly scopes: readonly Scope[]
  readonly reason: string | null
  readonly isDryRun?: boolean
  /** A new UUID, where the target is named by it; absent: `change` makes one. */
  readonly changeId?: string
  /** Milliseconds UTC; null or absent: until it is undone. */
  readonly expiresAt?: number | null
  /** The proposal that a person approved; absent: there was none. */
  readonly proposalId?: string | undefined
  /** Gets each plan before it runs, and throws when it is not what the person has approved. */
  readonly accept?: ((plan: ChangeEffect) => void) | undefined
}

export interface MadeChange<O> {
  readonly plan: Omit<Plan<O>, 'preview' | 'apply'>
  readonly isDryRun: boolean
  /** Whether anything changes; in a dry run, whether it would. */
  readonly isChanged: boolean
  /** Null: nothing was changed. */
  readonly changeId: string | null
  /** Null: never, or nothing was changed. */
  readonly expiresAt: number | null
  readonly own: O
}

/** Attempts when others change the same target at the same moment. */
const MAX_ATTEMPTS = 5

/** `makePlan` reads the present state; it runs again when that has changed meanwhile. */
export async function change<O>(
  deps: ChangeDeps,
  given: ChangeOrder,
  makePlan: () => Promise<Plan<O>> | Plan<O>,
): Promise<MadeChange<O>> {
  const order = { isDryRun: false, expiresAt: null, changeId: newUuid(deps.randomBytes), ...given }
  const making = { deps, order, entries: new ChangeStore(deps.store) }
  const nextPlan = async () => {
    const plan = await makePlan()
    order.accept?.(plan)
    return plan
  }
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const plan = await nextPlan()
    if (isDeepStrictEqual(plan.before, plan.after)) return keepLonger(making, plan)
    if (order.isDryRun) return made(order, plan, plan.preview)
    const kind = restorable(deps.kinds, plan.target.kind)
    const done =
      kind?.isRow === true
        ? await changeRow(making, kind, plan)
        : await changeOther(making, kind, plan, nextPlan)
    if (done !== undefined) return made(order, done.plan, done.own)
  }
  throw changeUnderWay()
}

interface ChangeContext {
  readonly deps: ChangeDeps
  readonly order: ChangeOrder & Required<Pick<ChangeOrder, 'isDryRun' | 'changeId' | 'expiresAt'>>
  readonly entries: ChangeStore
}

interface AppliedPlan<O> {
  readonly plan: Plan<O>
  readonly own: O
}

function made<O>(
  order: ChangeContext['order'],
  plan: MadeChange<O>['plan'],
  own: O,
): MadeChange<O> {
  const { isDryRun } = order
  const changeId = isDryRun ? null : order.changeId
  const expiresAt = plan.undo === 'none' ? null : order.expiresAt
  return { plan, isDryRun, isChanged: true, changeId, expiresAt, own }
}

/** Undefined: the row has another state than the plan says. */
function changeRow<O>(
  { deps, order, entries }: ChangeContext,
  kind: RestorableKind,
  plan: Plan<O>,
): Promise<AppliedPlan<O> | undefined> {
  const { id } = plan.target
  let done = plan
  return run(deps, {
    kind,
    id,
    idAfter: () => done.target.id,
    check: async () => isSameState(kind, await kind.read(id, deps), plan.before),
    async apply() {
      const own = await plan.apply()
      const { id: newId = id, after = plan.after } = plan.applied?.() ?? {}
      done = { ...plan, target: { ...plan.target, id: newId }, after }
      return { plan: done, own }
    },
    note: () => entries.insert(entryOf(deps, order, done, 'made')),
  })
}

/** Undefined: the target already has the wanted state. */
function changeOther<O>(
  { deps, order, entries }: ChangeContext,
  kind: RestorableKind | null,
  first: Plan<O>,
  nextPlan: () => Promise<Plan<O>>,
): Promise<AppliedPlan<O> | undefined> {
  const { target } = first
  const { changeId } = order
  return run(deps, {
    kind,
    id: target.id,
    async check() {
      if (await entries.isClaimed(target, deps.now())) throw changeUnderWay()
      return true
    },
    claim: {
      take: () => entries.insert(entryOf(deps, order, first, 'pending')),
      // A refusal says that nothing has changed; of another error it is not known.
      release: async ({ status }) => (status < 500 ? entries.remove(changeId) : undefined),
    },
    async apply() {
      // No other change of the target is under way now: this is the state to come back to.
      const plan = await nextPlan()
      if (!isDeepStrictEqual(plan.target, target)) throw changeUnderWay()
      if (isDeepStrictEqual(plan.before, plan.after)) {
        await entries.remove(changeId)
        return undefined
      }
      if (!isDeepStrictEqual(plan.before, first.before))
        await entries.rewrite(entryOf(deps, order, plan, 'pending'))
      return { plan, own: await plan.apply() }
    },
    /** The change is made. While the database is unavailable, the entry waits to be settled. */
    async note() {
      try {
        await entries.settle(changeId, 'made')
      } catch (error) {
        if (!isUnstored(error)) throw error
      }
    },
  })
}

/** One run of a change, or of its undoing. */
interface Run<T> {
  readonly kind: RestorableKind | null
  readonly id: string
  /** The id afterwards, where it is a new row; absent: the same. */
  readonly idAfter?: () => string
  /** Runs in the transaction. False: it cannot go on; throws an `ApiError` when it must not. */
  readonly check: () => Promise<boolean>
  /** Undefined: there was nothing to do. */
  readonly apply: () => Promise<T | undefined>
  /** Notes in the entry that it is done. */
  readonly note: () => Promise<void>
  /** Absent: the target is a row. Otherwise the entry says first that the change is under way. */
  readonly claim?: {
    readonly take: () => Promise<void>
    readonly release: (refusal: ApiError) => Promise<void>
  }
}

/**
 * Changes a row and notes it in one transaction; another target between two: the duties settle what
 * a crash has left between them (`undo.ts`). Then puts it into effect. Undefined: it could not go
 * on, or there was nothing to do.
 */
export async function run<T>(
  deps: ChangeDeps,
  { kind, id, idAfter = () => id, check, apply, note, claim }: Run<T>,
): Promise<T | undefined> {
  const applied = async () => {
    const done = await apply()
    if (done !== undefined) await note()
    return done
  }
  let done: T | undefined
  if (claim === undefined)
    done = await transaction(deps.store, async () => ((await check()) ? applied() : undefined))
  else {
    const isClaimed = await transaction(deps.store, async () => {
      const canGoOn = await check()
      if (canGoOn) await claim.take()
      return canGoOn
    })
    if (!isClaimed) return undefined
    try {
      done = await applied()
    } catch (error) {
      if (error instanceof ApiError) await claim.release(error)
      throw error
    }
  }
  if (done !== undefined) await kind?.follow?.(deps, idAfter())
  return done
}

export const UNDER_WAY = 'change_under_way'

export const changeUnderWay = (): ApiError =>
  conflict(
    UNDER_WAY,
    'Another change of the same target is under way. Nothing was changed: look at its ' +
      'state again, then retry',
  )

/**
 * The target already has the wanted state. If an earlier temporary change ends sooner than this
 * order asks, a new change replaces it, which leads back to the same state. The order never
 * shortens it: a caller who may not undo the change could otherwise let it expire.
 */
async function keepLonger<O>(
  { deps, order, entries }: ChangeContext,
  plan: Plan<O>,
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
  const kind = restorable(deps.kinds, plan.target.kind)
  return transaction(deps.store, async () => {
    const earlier = await temporary(deps, kind, plan.target, plan.after)
    const endsAt = earlier?.expires_at ?? null
    if (earlier === undefined || endsAt === null) return unchanged
    if (order.expiresAt !== null && order.expiresAt <= endsAt) {
      const effect = `Nothing changes: it is so already, until ${timeToText(endsAt)}.`
      return { ...unchanged, plan: { ...plan, effect }, expiresAt: endsAt }
    }
    const longer = { ...plan, ...inPlaceOf(earlier, plan.after, order.expiresAt) }
    if (!order.isDryRun) await entries.insert(entryOf(deps, order, longer, 'made'))
    return made(order, longer, plan.preview)
  })
}

/** The temporary change that made this state of the target; undefined: the state is permanent. */
async function temporary(
  deps: ChangeDeps,
  kind: RestorableKind | null,
  target: ChangeTarget,
  state: Json | null,
): Promise<ChangeEntry | undefined> {
  const earlier = await lastAbout(new ChangeStore(deps.store), kind, target, state)
  if (kind === null || earlier === undefined || earlier.expires_at === null) return undefined
  // A write without an entry, such as a seed file, may have changed it since.
  const current = await kind.read(target.id, deps)
  return isSameState(kind, current, stateIn(earlier.state_after)) ? earlier : undefined
}

/** A change that replaces a temporary one, and leads back to the same state. */
function inPlaceOf(earlier: ChangeEntry, state: Json | null, until: number | null) {
  const before = sharedFields(stateIn(earlier.state_before), state)
  return {
    before,
    after: sharedFields(state, before),
    effect:
      `It stays so ${until === null ? 'until it is undone' : `until ${timeToText(until)}`}, ` +
      `instead of until ${timeToText(earlier.expires_at ?? 0)}.`,
  }
}

function entryOf(
  { now }: ChangeDeps,
  order: Omit<ChangeOrder, 'isDryRun'> & { readonly changeId: string },
  plan: Omit<MadeChange<unknown>['plan'], 'affected' | 'row'>,
  state: 'pending' | 'made',
): NewChangeEntry {
  const { principal, expiresAt = null } = order
  return {
    change_id: order.changeId,
    at: now(),
    tool: order.tool,
    reason: order.reason,
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
    proposal_id: order.proposalId ?? null,
    claimed_until: state === 'pending' ? now() + CLAIM_MS : null,
  }
}

/** The fields and the reason of a request. */
interface WriteRequest {
  readonly given: object
  readonly reason: string | null
  /** A secret that the request makes, as in a sentence: `token`. Absent: it makes none. */
  readonly secret?: string
}

/** The result of a write, and the scopes that undoing it requires. */
interface RowWrite<T> {
  readonly written: T
  readonly scopes: readonly Scope[]
}

interface EnteredWrite<T> {
  readonly written: T
  /** Null: nothing was changed. */
  readonly changeId: string | null
}

/** Serves requests that write one kind of row. `write` may run again from its beginning. */
export const writesOf =
  (deps: ChangeDeps, kind: ChangeKind, noun: string) =>
  <T>(
    c: Context<ControlEnv>,
    id: number | string,
    given: WriteRequest,
    write: () => Promise<RowWrite<T>>,
  ): Promise<EnteredWrite<T>> =>
    writeRow(deps, c, { kind, noun, ...given, isNew: false }, async (read) => {
      const before = await read(id)
      return { id, before, ...(await write()) }
    })

/** The same for something new, whose id is not known before. Undone, it is removed. */
export const creationsOf =
  (deps: ChangeDeps, kind: ChangeKind, noun: string) =>
  <T>(
    c: Context<ControlEnv>,
    given: WriteRequest,
    create: () => Promise<RowWrite<T> & { readonly id: number | string }>,
  ): Promise<EnteredWrite<T>> =>
    writeRow(deps, c, { kind, noun, ...given, isNew: true }, async () => ({
      before: null,
      ...(await create()),
    }))

interface RowOrder extends WriteRequest {
  readonly kind: ChangeKind
  /** Name of the resource: `Customer`. */
  readonly noun: string
  readonly isNew: boolean
}

interface WrittenRow<T> extends RowWrite<T> {
  readonly id: number | string
  readonly before: Json | null
}

/** Writes the row and its entry, or neither. */
function writeRow<T>(
  deps: ChangeDeps,
  c: Context<ControlEnv>,
  order: RowOrder,
  write: (read: (id: number | string) => Promise<Json | null>) => Promise<WrittenRow<T>>,
): Promise<EnteredWrite<T>> {
  const kind = restorable(deps.kinds, order.kind)
  if (kind === null) throw new Error(`what a request changes of ${order.kind} has no state`)
  const read = (id: number | string) => kind.read(String(id), deps)
  return transaction(deps.store, async () => {
    const { id, before, written, scopes } = await write(read)
    const target = { kind: order.kind, id: String(id) }
    const row = { kind, target, noun: nounWords(order.noun), given: { ...order.given } }
    const after = await read(id)
    const { isNew, secret } = order
    const effect =
      (await rowEffectOf(deps, { ...row, isNew, secret }, before, after)) ??
      (await madePermanent(deps, row, after))
    if (effect === undefined) return { written, changeId: null }
    const changeId = newUuid(deps.randomBytes)
    const { principal } = c.var
    const entered = { principal, tool: operationOf(c), scopes, reason: order.reason, changeId }
    const plan = { target, ...effect }
    await new ChangeStore(deps.store).insert(entryOf(deps, entered, plan, 'made'))
    return { written, changeId }
  })
}

interface Row {
  readonly kind: RestorableKind
  readonly target: ChangeTarget
  /** Name of the resource in a sentence: `customer`. */
  readonly noun: string
  /** The fields that the request names. */
  readonly given: Readonly<Record<string, unknown>>
}

type RowEffect = Pick<Plan<unknown>, 'before' | 'after' | 'effect' | 'undo'>

/** Undefined: nothing was changed. */
export async function rowEffectOf(
  deps: ChangeDeps,
  row: Row & { readonly isNew: boolean; readonly secret?: string | undefined },
  ...states: readonly [before: Json | null, after: Json | null]
): Promise<RowEffect | undefined> {
  if (row.isNew) return creationOf(deps, row, states[1])
  const [before, after] = [fieldsOf(states[0]), fieldsOf(states[1])]
  if (before === null) return undefined
  const subject = await subjectOf(deps, row, before)
  if (after === null)
    return { before: bounded(before), after: null, undo: 'none', effect: `${subject} is removed.` }
  const changed = differing(before, after)
  const names = Object.keys(changed.after)
  const secret = row.secret ?? (setsPassword(row.given) ? 'password' : undefined)
  if (names.length === 0 && secret === undefined) return undefined
  const isWhole = [changed.before, changed.after].every((state) => state === bounded(state))
  const secrets = secret === undefined ? [] : [`its ${secret}`]
  const parts = [...secrets, ...(await partsOf(deps, row, [before, after], names))]
  const others = parts.length - MAX_PARTS
  const more = others > 0 ? ` and ${plural(others, 'other field')}` : ''
  return {
    before: bounded(changed.before),
    after: bounded(changed.after),
    effect: `${subject} is changed: ${parts.slice(0, MAX_PARTS).join('; ')}${more}.`,
    // A secret is not entered, so it cannot come back.
    undo: isWhole && secret === undefined ? 'restores' : 'none',
  }
}

/** The stored state shows later whether the row was changed since. */
async function creationOf(deps: ChangeDeps, row: Row, state: Json | null): Promise<RowEffect> {
  const after = fieldsOf(state)
  if (after === null) throw new Error(`the ${row.noun} that was created is not there`)
  const isWhole = after === bounded(after)
  const { balance } = row.given
  const movesMoney = balance !== undefined && balance !== null && balance !== 0
  return {
    before: null,
    after: bounded(after),
    effect: `${await subjectOf(deps, row, after)} is created.`,
    // Money that was moved is not taken back, and who has a ledger is not removed.
    undo: isWhole && !movesMoney ? 'restores' : 'none',
  }
}

/** A request that writes the state of a temporary change again makes it permanent. */
async function madePermanent(
  deps: ChangeDeps,
  { kind, target, given }: Row,
  whole: Json | null,
): Promise<RowEffect | undefined> {
  const state = fieldsOf(whole)
  if (state === null) return undefined
  // A reference is named by its id in the state, money by its unit.
  const names = Object.keys(given).flatMap((name) => [name, `${name}_id`, `${name}_micros`])
  const named = pick(state, names)
  if (Object.keys(named).length === 0) return undefined
  const earlier = await temporary(deps, kind, target, named)
  return earlier && { ...inPlaceOf(earlier, named, null), undo: 'restores' }
}

/** Bytes of a state that is entered. */
const MAX_STATE_BYTES = 32_768
/** Characters of an effect that a person approves: what is cut off is not approved. */
export const MAX_EFFECT = 2_000
/** Fields that an effect names. */
const MAX_PARTS = 8

const bounded = (state: FieldState): FieldState =>
  Buffer.byteLength(JSON.stringify(state)) <= MAX_STATE_BYTES ? state : namesOnly(state, TOO_LONG)

async function subjectOf(
  deps: ChangeDeps,
  { kind, noun, target }: Row,
  state: FieldState,
): Promise<string> {
  if (kind.nameOf !== undefined) return `The ${noun} ${await kind.nameOf(state, deps)}`
  const { name, endpoint_name, number, extension, slug, url } = state
  const named = [name, endpoint_name, number, extension, slug, url].find(
    (each) => typeof each === 'string',
  )
  return `The ${noun} ${quoted(named ?? target.id)}`
}

/** Puts the fields that cost or grant money first: they are named, whatever else is changed. */
const moneyFirst = (names: readonly string[]): readonly string[] => [
  ...names.filter(isMoney),
  ...names.filter((name) => !isMoney(name)),
]

const isMoney = (name: string): boolean => name.endsWith('_micros')

/** Each field that differs, those of money first. */
async function partsOf(
  deps: ChangeDeps,
  { kind, target }: Row,
  [before, after]: readonly [before: FieldState, after: FieldState],
  fields: readonly string[],
): Promise<readonly string[]> {
  const told = async (state: FieldState) => ({
    state,
    meaning: (await kind.meaningOf?.(target.id, state, fields, deps)) ?? noMeaning,
  })
  const sides = [await told(before), await told(after)] as const
  return moneyFirst(fields).map((field) => fieldChange(field, ...sides))
}

const setsPassword = (given: unknown): boolean =>
  typeof given === 'object' &&
  given !== null &&
  Object.entries(given).some(
    ([name, value]) => (name === 'password' && value !== undefined) || setsPassword(value),
  )

/** Notes the change for the audit trail and for the client. */
export function recordChange(
  c: Context<ControlEnv>,
  changeId: string | null,
  states: { readonly before: unknown; readonly after: unknown },
  reason: string | null,
): void {
  c.set('change', { ...states, changeId, reason })
  if (changeId !== null) c.header('X-Change-Id', changeId)
}

/** Thirty days. */
const MAX_DURATION_SECONDS = 2_592_000

/** Why a change is made: it is stored, and shown with the change later. */
export const changeReason = text(500)
  .min(3)
  .refine((value) => value.trim().length >= 3, 'must have at least 3 characters')
  // An agent may quote what it has read: a token in it is not stored.
  .transform((value) => cleanText(value))
  .describe('Why, in 3 to 500 characters; it is stored with the change.')

export const changeDuration = z
  .int()
  .min(60)
  .max(MAX_DURATION_SECONDS)
  .describe('Seconds after which the platform undoes it. Absent: until it is undone.')

export const dryRun = z
  .boolean()
  .default(false)
  .describe('True: tells the effect, and changes nothing.')

/** Query of each request that writes a resource. */
export const writeQuery = z.strictObject({ reason: changeReason.optional() })

/** The fields that the answers of all changes have, in tools and in the API. */
export const changeOutput = {
  dry_run: z.boolean(),
  changed: z.boolean().describe('False: it was so already. In a dry run: whether it would change.'),
  change_id: z.string().nullable().describe('For undo_change; null when nothing was changed.'),
  effect: z.string(),
  affected: z.record(z.string(), z.number()),
  previous_state: z.unknown(),
  undo: z.string().describe('How it is undone, or that it cannot be.'),
  expires_at: z.string().nullable().describe('When the platform undoes it.'),
}

export function answerOf({ plan, isDryRun, isChanged, changeId, expiresAt }: MadeChange<unknown>) {
  return {
    dry_run: isDryRun,
    changed: isChanged,
    change_id: changeId,
    effect: plan.effect,
    affected: { ...plan.affected },
    previous_state: plan.before,
    undo: undoOf(plan.undo, isChanged, changeId),
    expires_at: timeOrNull(expiresAt),
  }
}

function undoOf(undo: Plan<unknown>['undo'], isChanged: boolean, changeId: string | null): string {
  if (!isChanged) return 'Nothing to undo'
  if (undo === 'none') return 'It cannot be undone'
  return changeId === null
    ? 'undo_change, with the change_id of the real call'
    : `undo_change with change_id ${changeId}`
}
