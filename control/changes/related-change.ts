/** Which other change of the same target a change has to do with. */
import type { RestorableKind } from './kinds.ts'
import type { Json } from './kinds.ts'
import type { ChangeEntry, ChangeStore, Target } from './change-store.ts'
import { stateIn } from './change-store.ts'
import { fieldsOf, sharedFields } from './field-states.ts'
import { isSameState } from './kinds.ts'

/** The last change that stands and is about the same as this state; with `after`, one that was made after it. */
export async function lastAbout(
  entries: ChangeStore,
  kind: RestorableKind | null,
  target: Target,
  state: Json | null,
  after = 0,
): Promise<ChangeEntry | undefined> {
  const made = await entries.lastMade(target, after)
  return made.find((entry) => isAbout(kind, entry, state))
}

const isAbout = (
  kind: RestorableKind | null,
  { state_before: before, state_after: after }: ChangeEntry,
  state: Json | null,
): boolean =>
  kind?.isAbout === undefined ||
  kind.isAbout(stateIn(before), state) ||
  kind.isAbout(stateIn(after), state)

/**
 * The state to which the end of a change leads: that before it. Where a temporary change had made that state, and its
 * time is over meanwhile, it is the state before that one, and so on.
 */
export async function stateAtEnd(
  entry: ChangeEntry,
  kind: RestorableKind,
  entries: ChangeStore,
): Promise<Json | null> {
  const target = { kind: entry.target_kind, id: entry.target_id }
  const earlier = await entries.lastBefore(target, entry.id)
  let state = stateIn(entry.state_before)
  let over = entry
  for (const under of earlier.filter((each) => isAbout(kind, each, stateIn(entry.state_before)))) {
    const wasOver = under.expires_at !== null && under.expires_at <= over.at
    const after = sharedFields(stateIn(under.state_after), state)
    if (under.state !== 'superseded' || wasOver || !isSameState(kind, state, after)) break
    const before = sharedFields(stateIn(under.state_before), state)
    const [fields, restored] = [fieldsOf(state), fieldsOf(before)]
    state = fields === null || restored === null ? before : { ...fields, ...restored }
    over = under
  }
  return state
}
