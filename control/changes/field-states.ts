/**
 * States that name only the fields which a change is about: changes of other fields of the same thing do not stand in
 * each other's way, and undoing one leaves the others as they are.
 */
import type { Json } from './kinds.ts'
import { isDeepStrictEqual } from 'node:util'

export type FieldState = Readonly<Record<string, Json>>

/** Null: it is not there, or its state has no fields. */
export const fieldsOf = (state: Json | null): FieldState | null =>
  typeof state === 'object' && state !== null && !Array.isArray(state)
    ? // Of JSON, an object that is no array has names.
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

/** Whether two changes are about the same; one that adds or removes the thing is about all of it. */
export function shareFields(one: Json | null, other: Json | null): boolean {
  const [fields, others] = [fieldsOf(one), fieldsOf(other)]
  if (fields === null || others === null) return true
  return Object.keys(fields).some((field) => Object.hasOwn(others, field))
}

/** Those fields of a state that another one has, too. */
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
