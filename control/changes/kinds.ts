/** The kinds of things that can be changed and restored. */
import { isDeepStrictEqual } from 'node:util'
import type { Database } from '../../schema/tables/database.ts'
import type { KeyStore } from '../auth/key-store.ts'
import type { Principal } from '../auth/principal.ts'
import type { RequestScope, TenantScope } from '../auth/tenants.ts'
import type { Platform } from '../http/platform.ts'

/** A JSON value. */
export type Json =
  string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

export interface ChangeDeps extends Pick<
  Platform,
  'store' | 'engine' | 'ocs' | 'now' | 'randomBytes' | 'alerts'
> {
  readonly kinds: Kinds
  readonly keys: KeyStore
  readonly tenants: Pick<TenantScope, 'clear'>
  /** Jobs that a change has begun, or its undoing; absent: another OCS has the prices. */
  readonly reratings?: { readonly wake: () => void } | undefined
  readonly settings: Pick<
    Platform['settings'],
    | 'reservedNetworks'
    | 'ownPlaces'
    | 'hasMediaRelay'
    | 'allowsPrivateTargets'
    | 'allowsPrivateCertificates'
  >
}

/** The meaning of the values of a state, beyond themselves. */
export interface StateMeaning {
  /** That of its amounts; null: nothing says it. */
  readonly currency: string | null
  /** Names of the rows to which its fields refer, by field. */
  readonly names: Readonly<Record<string, string>>
}

/** A kind of thing that can be brought back to the state it had. */
export interface RestorableKind {
  /**
   * Its state is in rows: it is read, restored and entered in one transaction, so `read`, `restore`
   * and `admit` wait for statements only. Otherwise the entry is written before the change, and
   * settled after it.
   */
  readonly isRow: boolean
  /** Null: it is not there. */
  readonly read: (id: string, deps: ChangeDeps) => Promise<Json | null>
  /**
   * Throws an `ApiError` when it cannot take that state now; nothing has changed then.
   *
   * @param asker may write no more than by a request of its own; the platform may write everywhere.
   */
  readonly restore: (
    id: string,
    state: Json | null,
    deps: ChangeDeps,
    asker: RequestScope,
  ) => Promise<void>
  /** Names a thing without a name of its own, as `for "49" of the plan "retail"`. */
  readonly nameOf?: (state: FieldState, deps: ChangeDeps) => Promise<string>
  /** Reads the meaning of these fields of its state; absent: they mean no more than they say. */
  readonly meaningOf?: (
    id: string,
    state: FieldState,
    fields: readonly string[],
    deps: ChangeDeps,
  ) => Promise<StateMeaning>
  /** The effect of undoing a creation, as a phrase; absent: "is removed: it was not there". */
  readonly uncreated?: string
  /**
   * Whether a thing with the first state has the state of a change. Absent: they are the same JSON.
   */
  readonly isSame?: (state: Json | null, ofChange: Json | null) => boolean
  /**
   * Whether two changes with these states are about the same. Absent: all changes of one thing are.
   */
  readonly isAbout?: (one: Json | null, other: Json | null) => boolean
  /**
   * Throws an `ApiError` unless the principal may bring it from one state to the other; the
   * platform always may.
   */
  readonly admit: (
    id: string,
    change: { readonly from: Json | null; readonly to: Json | null },
    principal: Principal,
    deps: ChangeDeps,
  ) => Promise<void>
  /** Updates this process after the commit of a change or its undoing. */
  readonly follow?: (deps: ChangeDeps, id: string) => Promise<void>
}

/** A row by the name of its table, and what has another name or no row, such as a live call. */
export type ChangeKind =
  keyof Database | 'agent' | 'api_key' | 'dispatcher_sets' | 'live_call' | 'sip_ban' | 'spend_guard'

/** Null: irreversible. */
export type Kinds = Readonly<Partial<Record<ChangeKind, RestorableKind | null>>>

/** Null: irreversible, or a kind of another version of the program. */
export function restorable(kinds: Kinds, kind: string): RestorableKind | null {
  const known: Readonly<Record<string, RestorableKind | null>> = kinds
  return known[kind] ?? null
}

/** Whether a thing has the state of a change of it. */
export const isSameState = (
  kind: Pick<RestorableKind, 'isSame'> | null,
  ...[state, ofChange]: Parameters<NonNullable<RestorableKind['isSame']>>
): boolean => (kind?.isSame ?? isDeepStrictEqual)(state, ofChange)

export type FieldState = Readonly<Record<string, Json>>

/** Null: it is not there, or its state has no fields. */
export const fieldsOf = (state: Json | null): FieldState | null =>
  typeof state === 'object' && state !== null && !Array.isArray(state)
    ? // An object of JSON that is no array has names.
      (state as FieldState)
    : null

/** Whether a thing with this state has every field of another one. */
export function hasFields(whole: Json | null, wanted: Json | null): boolean {
  const [all, some] = [fieldsOf(whole), fieldsOf(wanted)]
  if (all === null || some === null) return isDeepStrictEqual(whole, wanted)
  return Object.entries(some).every(([field, value]) =>
    isDeepStrictEqual(all[field] ?? null, value),
  )
}

/**
 * Whether two changes are about the same; one that adds or removes the thing is about all of it.
 */
export function shareFields(one: Json | null, other: Json | null): boolean {
  const [fields, others] = [fieldsOf(one), fieldsOf(other)]
  if (fields === null || others === null) return true
  return Object.keys(fields).some((field) => Object.hasOwn(others, field))
}

/** The fields of a state that another one has, too. */
export function sharedFields(state: Json | null, other: Json | null): Json | null {
  const [fields, others] = [fieldsOf(state), fieldsOf(other)]
  if (fields === null || others === null) return state
  return pick(fields, Object.keys(others))
}

export const pick = (state: FieldState, names: readonly string[]): FieldState =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = state[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** The fields that differ. A field that one of them lacks is null there. */
export function differing(
  before: FieldState,
  after: FieldState,
): { readonly before: FieldState; readonly after: FieldState } {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = names.filter((name) => !isDeepStrictEqual(at(before, name), at(after, name)))
  const part = (of: FieldState) => Object.fromEntries(changed.map((name) => [name, at(of, name)]))
  return { before: part(before), after: part(after) }
}

const at = (state: FieldState, name: string): Json => state[name] ?? null
