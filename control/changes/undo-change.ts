/**
 * Undoes a change: its target gets back the state that it had. Refused when the target was changed since, so that nothing
 * that was done later is lost.
 */
import type { RestorableKind } from './kinds.ts'
import type { ChangeWorld, Json } from './kinds.ts'
import { type RequestScope, requestScope } from '../auth/tenants.ts'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { transaction } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { admitScope } from '../auth/requires.ts'
import { allScopes } from '../auth/scopes.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import { type ChangeEntry, ChangeStore, CLAIM_MS, type Ended, stateIn } from './change-store.ts'
import { isSameState, restorable } from './kinds.ts'
import { quoted } from '../http/clean-text.ts'
import { lossOf } from './kept-states.ts'
import { changeUnderWay } from './make-change.ts'
import { lastAbout, stateAtEnd } from './related-change.ts'

export interface UndoOrder {
  readonly principal: Principal
  readonly changeId: string
  readonly reason: string
  readonly isDryRun: boolean
}

export interface UndoneChange {
  /** In a dry run: as it stands. */
  readonly entry: ChangeEntry
  readonly isDryRun: boolean
  /** False: it was undone before. In a dry run: whether it would be undone. */
  readonly isChanged: boolean
  readonly effect: string
  /** The state of the target before it is undone. */
  readonly state: Json | null
}

/** Throws an `ApiError` unless the caller may see and undo the change, and nothing came after it. */
export async function undoChange(order: UndoOrder, world: ChangeWorld): Promise<UndoneChange> {
  const { principal, changeId, isDryRun } = order
  const entries = new ChangeStore(world.store)
  const entry = await entries.find(changeId, principal.tenantId)
  if (entry === undefined) throw notFound('Change')
  admitScopes(entry, principal)
  const kind = restorable(world.kinds, entry.target_kind)
  if (kind === null || (entry.undo === 'none' && !isOver(entry))) throw notReversible(entry)
  const asker = requestScope(principal, world.now)
  const restoring = { kind, entries, world, asker, admit: admission(kind, principal, world) }
  // What was created, and is removed again, is not there to be looked at.
  if (!isOver(entry) || entry.state_before !== null) await restoring.admit(entry)
  const ended = { state: 'undone', undone_at: world.now(), undone_by: principal.actor } as const
  const restored = isDryRun
    ? await transaction(world.store, () => admitted(entry, restoring))
    : await restore(entry, { ...ended, undo_reason: order.reason }, restoring)
  const now = (await entries.find(changeId, principal.tenantId)) ?? entry
  if (restored !== 'ended')
    return { entry: now, isDryRun, isChanged: true, effect: effectOf(entry, kind), ...restored }
  const state = await kind.read(entry.target_id, world)
  return { entry: now, isDryRun, isChanged: false, effect: endedEffect(now), state }
}

export interface Restoring {
  readonly kind: RestorableKind
  readonly entries: ChangeStore
  readonly world: ChangeWorld
  readonly asker: RequestScope
  /** Throws unless the caller may undo it. */
  readonly admit: (entry: ChangeEntry) => Promise<void>
}

/** A change can be undone, and its target has this state until then. */
interface Undoable {
  readonly state: Json | null
}

/** Restores the state before a change, and ends its entry. 'ended': it has been undone before. */
export async function restore(
  entry: ChangeEntry,
  ended: Ended,
  restoring: Restoring,
): Promise<Undoable | 'ended'> {
  const { kind, entries, world, asker } = restoring
  const { change_id: changeId, target_id: id } = entry
  const before =
    ended.state === 'expired' ? await stateAtEnd(entry, kind, entries) : stateIn(entry.state_before)
  const undoable = await transaction(world.store, async () => {
    const found = await admitted(entry, restoring)
    if (found === 'ended') return found
    if (kind.isRow) {
      await kind.restore(id, before, world, asker)
      await entries.end(entry, ended)
    } else await entries.claim(changeId, world.now() + CLAIM_MS)
    return found
  })
  if (undoable === 'ended') return undoable
  if (!kind.isRow) await restoreBeside(entry, before, ended, restoring)
  await kind.follow?.(world, id)
  return undoable
}

/** The entry is claimed. After a crash in between it is undone once more, which changes nothing. */
async function restoreBeside(
  entry: ChangeEntry,
  before: Json | null,
  ended: Ended,
  { kind, entries, world, asker }: Restoring,
): Promise<void> {
  try {
    await kind.restore(entry.target_id, before, world, asker)
  } catch (error) {
    if (error instanceof ApiError) await entries.claim(entry.change_id, null)
    throw error
  }
  await entries.end(entry, ended)
}

/** Reads the entry again, and throws unless it can be undone now. */
async function admitted(
  { change_id: changeId }: ChangeEntry,
  { kind, entries, world, admit }: Restoring,
): Promise<Undoable | 'ended'> {
  const entry = await entries.find(changeId, null)
  if (entry === undefined) throw notFound('Change')
  if (isOver(entry)) return 'ended'
  await admit(entry)
  const target = { kind: entry.target_kind, id: entry.target_id }
  if (await entries.isClaimed(target, world.now())) throw changeUnderWay()
  if (entry.state === 'unconfirmed') throw unconfirmed()
  // Its states may have given way meanwhile.
  if (entry.undo === 'none') throw notReversible(entry)
  const after = stateIn(entry.state_after)
  // What was not there before is not removed with what was changed of it since, such as its password.
  const about = entry.state_before === null ? null : after
  const later = await lastAbout(entries, kind, target, about, entry.id)
  const state = await kind.read(entry.target_id, world)
  // A process that has ended while it undid the change may have restored the state.
  const isExpected =
    isSameState(kind, state, after) ||
    (entry.claimed_until !== null && isSameState(kind, state, stateIn(entry.state_before)))
  if (entry.state !== 'made' || later !== undefined || !isExpected) throw changedSince(later)
  return { state }
}

/** The scopes of the tool that made the change; those of MCP are required where MCP is used. */
function admitScopes({ scopes }: ChangeEntry, principal: Principal): void {
  for (const scope of z.array(z.enum(allScopes)).parse(JSON.parse(scopes)))
    admitScope(principal, scope)
}

const admission =
  (kind: RestorableKind, principal: Principal, world: ChangeWorld) =>
  async (entry: ChangeEntry): Promise<void> => {
    const change = { from: stateIn(entry.state_after), to: stateIn(entry.state_before) }
    await kind.admit(entry.target_id, change, principal, world)
  }

/** A person approves it by this text, so it says what is taken back; that text has names in quotes already. */
function effectOf(entry: ChangeEntry, kind: RestorableKind): string {
  const { change_id, tool, target_kind, target_id, effect, state_before } = entry
  const becomes =
    state_before === null
      ? (kind.uncreated ?? 'is removed: it was not there')
      : 'gets back the state that it had'
  return `The ${target_kind} ${quoted(target_id)} ${becomes} before change ${change_id} (${tool}), whose effect was: ${effect}`
}

const endedEffect = ({ state, undone_at: at }: ChangeEntry): string =>
  `Nothing changes: it was ${state === 'expired' ? 'over' : 'undone'} at ${timeToText(at ?? 0)} already.`

const isOver = ({ state }: ChangeEntry): boolean => state === 'undone' || state === 'expired'

const notReversible = (entry: ChangeEntry): ApiError =>
  conflict(
    'not_reversible',
    `What ${entry.tool} did cannot be undone${whyLost(entry)}. Nothing was changed`,
  )

function whyLost(entry: ChangeEntry): string {
  switch (lossOf(entry)) {
    case 'let_go':
      return `: the state before it is not kept any more, because later changes of ${entry.tenant_id === null ? 'the platform' : 'this tenant'} have taken the place of the oldest ones`
    case 'too_long':
      return ': the state before it was too long to keep'
    case null:
      return ''
  }
}

const unconfirmed = (): ApiError =>
  conflict(
    'not_confirmed',
    'The process ended while it made this change, and the target does not have its state. Nothing was changed',
  )

export const CHANGED_SINCE = 'changed_since'

const changedSince = (later: ChangeEntry | undefined): ApiError =>
  conflict(
    CHANGED_SINCE,
    later === undefined
      ? 'The target has another state now than after this change. Nothing was changed: look at it, and set what you want'
      : `The target was changed since, by change ${later.change_id} (${later.tool}). Nothing was changed: undo that one first, or set what you want`,
  )
