/**
 * Changes that requests of the API make to resources: the request writes as ever, and what it has created or changed is entered in
 * the same transaction. The tools plan first and write then (`make-change.ts`); both make the same entries, and are
 * undone in the same way.
 */
import {
  type ChangeKind,
  type ChangeWorld,
  type Json,
  restorable,
  type RestorableKind,
} from './kinds.ts'
import type { Context } from 'hono'
import { routePath } from 'hono/route'
import { z } from 'zod'
import type { Principal } from '../auth/principal.ts'
import type { Scope } from '../auth/scopes.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { transaction } from '../../schema/sql/query.ts'
import { quoted } from '../http/clean-text.ts'
import { newUuid } from '../http/platform.ts'
import { changeReason } from './change-fields.ts'
import { ChangeStore, type Target } from './change-store.ts'
import { differing, type FieldState, fieldsOf, pick } from './field-states.ts'
import { namesOnly, TOO_LONG } from './kept-states.ts'
import { entryOf, longerEffect, longerStates, temporary } from './make-change.ts'
import type { Plan } from './plan.ts'

/** Of each request that writes a resource. */
export const writeQuery = z.strictObject({ reason: changeReason.optional() })

interface CreationOrder {
  readonly principal: Principal
  /** As in the audit log: `PATCH /api/v1/customers/:id`. */
  readonly operation: string
  readonly kind: ChangeKind
  /** As in a sentence: `customer`. */
  readonly noun: string
  /** The fields that the request names. */
  readonly given: Readonly<Record<string, unknown>>
  readonly reason: string | null
}

interface WriteOrder extends Omit<CreationOrder, 'kind'> {
  readonly target: { readonly kind: ChangeKind; readonly id: string }
  /** A secret that the request makes, as in a sentence: `token`. Absent: it makes none. */
  readonly secret?: string | undefined
}

/** What a request names, and why it does so. */
interface Given {
  readonly given: object
  readonly reason: string | null
  readonly secret?: string
}

/** What a write has done, and the scopes that undoing it requires. */
export interface Write<T> {
  readonly written: T
  readonly scopes: readonly Scope[]
}

/** A write of something new. */
export interface Creation<T> extends Write<T> {
  readonly id: number | string
}

interface EnteredWrite<T> {
  readonly written: T
  /** Null: nothing was changed. */
  readonly changeId: string | null
}

/** Writes and enters it, or neither. `write` may run again from its beginning. */
async function enterWrite<T>(
  order: WriteOrder,
  write: () => Promise<Write<T>>,
  world: ChangeWorld,
): Promise<EnteredWrite<T>> {
  const { target } = order
  const kind = kindOf(target.kind, world)
  const entries = new ChangeStore(world.store)
  return transaction(world.store, async () => {
    const before = await kind.read(target.id, world)
    const { written, scopes } = await write()
    const after = await kind.read(target.id, world)
    const entered = await changeIn(order, { before, after }, { kind, entries, world })
    if (entered === undefined) return { written, changeId: null }
    const changeId = await enter({ ...order, scopes }, { target, ...entered }, world)
    return { written, changeId }
  })
}

/** The same for something new, whose id is not known before. Undone, it is removed. */
async function enterCreation<T>(
  order: CreationOrder,
  create: () => Promise<Creation<T>>,
  world: ChangeWorld,
): Promise<EnteredWrite<T>> {
  const kind = kindOf(order.kind, world)
  return transaction(world.store, async () => {
    const { id, written, scopes } = await create()
    const target = { kind: order.kind, id: String(id) }
    const created = creationIn(order, target, await kind.read(target.id, world))
    const changeId = await enter({ ...order, scopes }, { target, ...created }, world)
    return { written, changeId }
  })
}

function kindOf(kind: ChangeKind, world: ChangeWorld): RestorableKind {
  const found = restorable(world.kinds, kind)
  if (found === null) throw new Error(`what a request changes of ${kind} has no state`)
  return found
}

async function enter(
  order: Pick<CreationOrder, 'principal' | 'operation' | 'reason'> & Pick<Write<unknown>, 'scopes'>,
  change: Entered & Pick<Plan<unknown>, 'target'>,
  world: ChangeWorld,
): Promise<string> {
  const { principal, operation: tool, scopes, reason } = order
  const changeId = newUuid(world.randomBytes)
  const made = { principal, tool, scopes, reason, changeId, expiresAt: null }
  await new ChangeStore(world.store).insert(entryOf(made, change, world, 'made'))
  return changeId
}

/** `enterWrite` for the requests of one resource. */
export const writesOf =
  (world: ChangeWorld, kind: ChangeKind, noun: string) =>
  <T>(
    c: Context<ControlEnv>,
    id: number | string,
    given: Given,
    write: () => Promise<Write<T>>,
  ): Promise<EnteredWrite<T>> =>
    enterWrite({ ...orderOf(c, noun, given), target: { kind, id: String(id) } }, write, world)

/** `enterCreation` for the requests of one resource. */
export const creationsOf =
  (world: ChangeWorld, kind: ChangeKind, noun: string) =>
  <T>(
    c: Context<ControlEnv>,
    given: Given,
    create: () => Promise<Creation<T>>,
  ): Promise<EnteredWrite<T>> =>
    enterCreation({ ...orderOf(c, noun, given), kind }, create, world)

const orderOf = (c: Context<ControlEnv>, noun: string, { given, reason, secret }: Given) => ({
  principal: c.var.principal,
  operation: `${c.req.method} ${routePath(c, -1)}`,
  noun: noun.toLowerCase(),
  given: { ...given },
  reason,
  secret,
})

/** For the audit trail, and the client. */
export function tellEntered(
  c: Context<ControlEnv>,
  changeId: string | null,
  change: { readonly before: unknown; readonly after: unknown },
  reason: string | null,
): void {
  c.set('change', { ...change, changeId, reason })
  if (changeId !== null) c.header('X-Change-Id', changeId)
}

type Entered = Pick<Plan<unknown>, 'before' | 'after' | 'effect' | 'undo'>

interface Surroundings {
  readonly kind: RestorableKind
  readonly entries: ChangeStore
  readonly world: ChangeWorld
}

/** Undefined: nothing was changed, and nothing that is temporary is kept. */
async function changeIn(
  { target, noun, given, secret = secretIn(given) }: WriteOrder,
  states: { readonly before: Json | null; readonly after: Json | null },
  surroundings: Surroundings,
): Promise<Entered | undefined> {
  const [before, after] = [fieldsOf(states.before), fieldsOf(states.after)]
  if (before === null) return undefined
  const what = whatIs(noun, target, before)
  if (after === null)
    return { before: bounded(before), after: null, undo: 'none', effect: `${what} is removed.` }
  const changed = differing(before, after)
  const names = Object.keys(changed.after)
  if (names.length === 0 && secret === undefined)
    return keptOn(target, pick(after, namedIn(given, after)), surroundings)
  const isWhole = [changed.before, changed.after].every((state) => state === bounded(state))
  const secrets = secret === undefined ? [] : [`its ${secret}`]
  return {
    before: bounded(changed.before),
    after: bounded(changed.after),
    effect: `${what} is changed: ${[...secrets, ...names.map((name) => told(name, changed))].slice(0, MAX_TOLD).join('; ')}.`,
    // A secret is not entered, so it cannot come back.
    undo: isWhole && secret === undefined ? 'restores' : 'none',
  }
}

/** Its state tells later whether it is as it was made. */
function creationIn({ noun, given }: CreationOrder, target: Target, state: Json | null): Entered {
  const after = fieldsOf(state)
  if (after === null) throw new Error(`the ${noun} that was created is not there`)
  const isWhole = after === bounded(after)
  return {
    before: null,
    after: bounded(after),
    effect: `${whatIs(noun, target, after)} is created.`,
    // Money that was moved is not taken back, and who has a ledger is not removed.
    undo: isWhole && !movesMoney(given) ? 'restores' : 'none',
  }
}

const whatIs = (noun: string, { id }: Target, state: FieldState): string =>
  `The ${noun} ${quoted(nameIn(state) ?? id)}`

/** An opening balance. */
const movesMoney = ({ balance }: CreationOrder['given']): boolean =>
  balance !== undefined && balance !== null && balance !== 0

/** Who writes again what a temporary change has made keeps it. */
async function keptOn(
  target: Target,
  named: FieldState,
  { kind, entries, world }: Surroundings,
): Promise<Entered | undefined> {
  if (Object.keys(named).length === 0) return undefined
  const earlier = await temporary(kind, target, named, entries, world)
  if (earlier === undefined) return undefined
  const effect = longerEffect(null, earlier.expires_at ?? 0)
  return { ...longerStates(earlier, named), effect, undo: 'restores' }
}

/** Bytes of a state that is entered. */
const MAX_STATE_BYTES = 32_768
/** Fields that an effect tells. */
const MAX_TOLD = 8

const bounded = (state: FieldState): FieldState =>
  Buffer.byteLength(JSON.stringify(state)) <= MAX_STATE_BYTES ? state : namesOnly(state, TOO_LONG)

function told(name: string, { before, after }: ReturnType<typeof differing>): string {
  const [from, to] = [before[name], after[name]].map((value = null) =>
    typeof value === 'object' && value !== null
      ? undefined
      : typeof value === 'string'
        ? quoted(value)
        : String(value),
  )
  return from === undefined || to === undefined ? name : `${name} ${to}, was ${from}`
}

function nameIn(state: FieldState | null): string | undefined {
  const { name, endpoint_name, extension, slug } = state ?? {}
  return [name, endpoint_name, extension, slug].find((each) => typeof each === 'string')
}

/** The fields of the state that a body names; a reference is named by its id there, money by its unit. */
const namedIn = (given: WriteOrder['given'], state: FieldState): readonly string[] =>
  Object.keys(given)
    .flatMap((name) => [name, `${name}_id`, `${name}_micros`])
    .filter((name) => Object.hasOwn(state, name))

const secretIn = (given: unknown): string | undefined =>
  setsSecret(given) ? 'password' : undefined

const setsSecret = (given: unknown): boolean =>
  typeof given === 'object' &&
  given !== null &&
  Object.entries(given).some(
    ([name, value]) => (name === 'password' && value !== undefined) || setsSecret(value),
  )
