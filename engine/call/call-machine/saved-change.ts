/**
 * The changes in a call since it was saved at its answer. They are few when its caller has
 * acknowledged the 200, and every call is saved then.
 */
import type { SavedCall } from './saved-call.ts'

type SavedLeg = SavedCall['legs'][number]

export interface SavedChange {
  readonly version: number
  readonly call: Partial<SavedCall['call']>
  /** One for each leg, in the order of those of the call. */
  readonly legs: readonly Partial<SavedLeg>[]
  readonly exchange?: SavedCall['exchange']
  /** Descriptions that follow those of the call. */
  readonly texts: readonly string[]
}

/**
 * Undefined: what has changed cannot be told apart from the rest. `after` has the texts of `before`
 * first.
 */
export function changeOf(before: SavedCall, after: SavedCall): SavedChange | undefined {
  // Its 200 is no longer about to go out.
  if (after.answer !== undefined || after.offer !== undefined) return undefined
  if (before.legs.length !== after.legs.length) return undefined
  const call = changedFields(before.call, after.call)
  if (call === undefined) return undefined
  const legs: Partial<SavedLeg>[] = []
  for (const [index, leg] of after.legs.entries()) {
    const earlier = before.legs[index]
    const changed = earlier && changedFields(earlier, leg)
    if (changed === undefined || earlier?.id !== leg.id) return undefined
    legs.push(changed)
  }
  const { version, exchange } = after
  return { version, call, legs, exchange, texts: after.texts.slice(before.texts.length) }
}

export const withChange = (
  { version, callUuid, call, legs, texts }: SavedCall,
  change: SavedChange,
): SavedCall => ({
  version,
  callUuid,
  call: { ...call, ...change.call },
  legs: legs.map((leg, index) => ({ ...leg, ...change.legs[index] })),
  exchange: change.exchange,
  texts: [...texts, ...change.texts],
})

/** Undefined: a field is there no more, which JSON cannot say. */
function changedFields<T extends object>(before: T, after: T): Partial<T> | undefined {
  const changed: Partial<T> = {}
  for (const name in after) {
    if (isSame(before[name], after[name])) continue
    if (after[name] === undefined) return undefined
    changed[name] = after[name]
  }
  return changed
}

/** Whether two plain values are written alike. V8 writes faster than a loop compares. */
const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (isObject(one) && JSON.stringify(one) === JSON.stringify(other))

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null
