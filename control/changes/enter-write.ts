/**
 * Changes that requests of the API make to resources: the request writes as ever, and what it has changed is entered in
 * the same transaction. The tools plan first and write then (`make-change.ts`); both make the same entries, and are
 * undone in the same way.
 */
import type { Context } from 'hono'
import { routePath } from 'hono/route'
import { z } from 'zod'
import type { Principal } from '../auth/principal.ts'
import type { Scope } from '../auth/scopes.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { transaction } from '../../schema/sql/query.ts'
import { quoted } from '../tools/clean.ts'
import { newUuid } from '../uuid.ts'
import { changeReason } from './change-fields.ts'
import { ChangeStore, type Target } from './change-store.ts'
import type { ChangeWorld, Json } from './change-world.ts'
import { differing, type FieldState, fieldsOf, pick } from './field-states.ts'
import { type ChangeKind, restorable } from './kinds.ts'
import { entryOf, longerEffect, longerStates, temporary } from './make-change.ts'
import type { Plan } from './plan.ts'
import type { RestorableKind } from './restorable-kind.ts'

/** Of each request that writes a resource. */
export const writeQuery = z.strictObject({ reason: changeReason.optional() })

interface WriteOrder {
  readonly principal: Principal
  /** As in the audit log: `PATCH /api/v1/customers/:id`. */
  readonly operation: string
  readonly target: { readonly kind: ChangeKind; readonly id: string }
  /** As in a sentence: `customer`. */
  readonly noun: string
  /** The fields that the request names. */
  readonly given: Readonly<Record<string, unknown>>
  readonly reason: string | null
}

/** What a write has done, and the scopes that undoing it requires. */
export interface Write<T> {
  readonly written: T
  readonly scopes: readonly Scope[]
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
  const { target, principal, reason } = order
  const kind = restorable(target.kind)
  if (kind === null) throw new Error(`what a request changes of ${target.kind} has no state`)
  const entries = new ChangeStore(world.store)
  return transaction(world.store, async () => {
    const before = await kind.read(target.id, world)
    const { written, scopes } = await write()
    const after = await kind.read(target.id, world)
    const entered = await changeIn(order, { before, after }, { kind, entries, world })
    if (entered === undefined) return { written, changeId: null }
    const changeId = newUuid(world.randomBytes)
    const made = { principal, tool: order.operation, scopes, reason, changeId, expiresAt: null }
    await entries.insert(entryOf(made, { target, ...entered }, world, 'made'))
    return { written, changeId }
  })
}

/** `enterWrite` for the requests of one resource. */
export const writesOf =
  (world: ChangeWorld, kind: ChangeKind, noun: string) =>
  <T>(
    c: Context<ControlEnv>,
    id: number | string,
    { given, reason }: { readonly given: object; readonly reason: string | null },
    write: () => Promise<Write<T>>,
  ): Promise<EnteredWrite<T>> => {
    const order = {
      ...{ principal: c.var.principal, operation: `${c.req.method} ${routePath(c, -1)}` },
      ...{ target: { kind, id: String(id) }, noun: noun.toLowerCase() },
      ...{ given: { ...given }, reason },
    }
    return enterWrite(order, write, world)
  }

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
  { target, noun, given }: WriteOrder,
  states: { readonly before: Json | null; readonly after: Json | null },
  surroundings: Surroundings,
): Promise<Entered | undefined> {
  const [before, after] = [fieldsOf(states.before), fieldsOf(states.after)]
  const what = `The ${noun} ${quoted(nameIn(before ?? after) ?? target.id)}`
  if (before === null) return undefined
  if (after === null)
    return {
      ...{ before: bounded(before), after: null, undo: 'none' },
      effect: `${what} is removed.`,
    }
  const changed = differing(before, after)
  const hasSecret = setsSecret(given)
  const names = Object.keys(changed.after)
  if (names.length === 0 && !hasSecret)
    return keptOn(target, pick(after, namedIn(given, after)), surroundings)
  const isWhole = [changed.before, changed.after].every((state) => state === bounded(state))
  return {
    before: bounded(changed.before),
    after: bounded(changed.after),
    effect: `${what} is changed: ${[...names.map((name) => told(name, changed)), ...(hasSecret ? ['its password'] : [])].slice(0, MAX_TOLD).join('; ')}.`,
    // A secret is not entered, so it cannot come back.
    undo: isWhole && !hasSecret ? 'restores' : 'none',
  }
}

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

/** Characters of a state that is entered. */
const MAX_STATE = 32_768
/** Fields that an effect tells. */
const MAX_TOLD = 8

const bounded = (state: FieldState): FieldState =>
  JSON.stringify(state).length <= MAX_STATE
    ? state
    : Object.fromEntries(Object.keys(state).map((name) => [name, 'longer than is kept']))

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

const setsSecret = (given: unknown): boolean =>
  typeof given === 'object' &&
  given !== null &&
  Object.entries(given).some(
    ([name, value]) => (name === 'password' && value !== undefined) || setsSecret(value),
  )
