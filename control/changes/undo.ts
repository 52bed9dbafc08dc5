/**
 * Undoes a change: its target gets back the state that it had. Refused when the target was changed
 * since, so that nothing that was done later is lost. The platform undoes by itself the changes
 * whose time is over, and settles those that a process has left half made; each instance polls, and
 * one of them works on a change.
 */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { transaction } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { admitScope } from '../auth/requires.ts'
import { allScopes } from '../auth/scopes.ts'
import { type ApiError, conflict, notFound } from '../http/api-error.ts'
import { cleanText, quoted } from '../http/clean-text.ts'
import { type ChangeOrder, changeUnderWay, MAX_EFFECT, run } from './change.ts'
import {
  type ChangeEntry,
  ChangeStore,
  CLAIM_MS,
  type ChangeEnd,
  lastAbout,
  stateAtEnd,
  stateIn,
  stateText,
} from './change-store.ts'
import {
  type ChangeDeps,
  isSameState,
  type Json,
  restorable,
  type RestorableKind,
} from './kinds.ts'
import { lossOf } from './state-quota.ts'
import { requestScope, type RequestScope } from '../auth/tenants.ts'

export interface UndoOrder {
  readonly principal: Principal
  readonly changeId: string
  readonly reason: string
  readonly isDryRun: boolean
  /**
   * Gets the undoing as a plan before it runs, and throws when it is not what a person has
   * approved.
   */
  readonly accept?: ChangeOrder['accept']
}

export interface UndoneChange {
  /** The entry after the undo; in a dry run, as it stands. */
  readonly entry: ChangeEntry
  /** False: it was undone before. In a dry run: whether it would be undone. */
  readonly isChanged: boolean
  readonly effect: string
  /** The state of the target before it is undone. */
  readonly state: Json | null
}

/**
 * Throws an `ApiError` unless the caller may see and undo the change, and nothing came after it.
 */
export async function undoChange(deps: ChangeDeps, order: UndoOrder): Promise<UndoneChange> {
  const { principal, changeId, isDryRun } = order
  const entries = new ChangeStore(deps.store)
  const entry = await entries.find(changeId, principal.tenantId)
  if (entry === undefined) throw notFound('Change')
  // The scopes of the tool that made the change; MCP itself requires its own scopes.
  for (const scope of z.array(z.enum(allScopes)).parse(JSON.parse(entry.scopes)))
    admitScope(principal, scope)
  const kind = restorable(deps.kinds, entry.target_kind)
  if (kind === null || (entry.undo === 'none' && !isOver(entry))) throw notReversible(entry)
  const admit = (change: ChangeEntry) => {
    const states = { from: stateIn(change.state_after), to: stateIn(change.state_before) }
    return kind.admit(change.target_id, states, principal, deps)
  }
  const accept = (state: Json | null, effect = effectOf(entry, kind), after = entry.state_before) =>
    order.accept?.({
      target: { kind: entry.target_kind, id: entry.target_id },
      before: state,
      after: stateIn(after),
      effect: cleanText(effect, MAX_EFFECT),
      affected: {},
      undo: 'repeats',
    })
  const asker = requestScope(principal, deps.now)
  const restoring = { kind, entries, deps, asker, admit, accept }
  // A row that was created and removed again cannot be read.
  if (!isOver(entry) || entry.state_before !== null) await admit(entry)
  const ended = { state: 'undone', undone_at: deps.now(), undone_by: principal.actor } as const
  const restored = isDryRun
    ? await transaction(deps.store, () => undoable(entry, restoring))
    : await restore(entry, { ...ended, undo_reason: order.reason }, restoring)
  const now = (await entries.find(changeId, principal.tenantId)) ?? entry
  if (restored !== undefined)
    return { entry: now, isChanged: true, effect: effectOf(entry, kind), ...restored }
  const state = await kind.read(entry.target_id, deps)
  const effect = endedEffect(now)
  accept(state, effect, stateText(state))
  return { entry: now, isChanged: false, effect, state }
}

interface RestoreContext {
  readonly kind: RestorableKind
  readonly entries: ChangeStore
  readonly deps: ChangeDeps
  readonly asker: RequestScope
  /** Throws unless the caller may undo it. */
  readonly admit: (entry: ChangeEntry) => Promise<void>
  /** Gets the state of the target before it is undone. */
  readonly accept?: (state: Json | null) => void
}

/** A change can be undone, and its target has this state until then. */
interface UndoableState {
  readonly state: Json | null
}

/** Restores the state before a change, and ends its entry. Undefined: it has been undone before. */
export async function restore(
  entry: ChangeEntry,
  ended: ChangeEnd,
  restoring: RestoreContext,
): Promise<UndoableState | undefined> {
  const { kind, entries, deps, asker } = restoring
  const { change_id: changeId, target_id: id } = entry
  const before =
    ended.state === 'expired' ? await stateAtEnd(entry, kind, entries) : stateIn(entry.state_before)
  let found: UndoableState | undefined
  return run(deps, {
    kind,
    id,
    async check() {
      found = await undoable(entry, restoring)
      return found !== undefined
    },
    async apply() {
      await kind.restore(id, before, deps, asker)
      return found
    },
    note: () => entries.end(entry, ended),
    // A crash in between makes it undone once more, which changes nothing.
    ...(!kind.isRow && {
      claim: {
        take: () => entries.claim(changeId, deps.now() + CLAIM_MS),
        release: () => entries.claim(changeId, null),
      },
    }),
  })
}

/**
 * Reads the entry again, and throws unless it can be undone now. Undefined: it has been undone
 * before.
 */
async function undoable(
  { change_id: changeId }: ChangeEntry,
  { kind, entries, deps, admit, accept }: RestoreContext,
): Promise<UndoableState | undefined> {
  const entry = await entries.find(changeId, null)
  if (entry === undefined) throw notFound('Change')
  if (isOver(entry)) return undefined
  await admit(entry)
  const target = { kind: entry.target_kind, id: entry.target_id }
  if (await entries.isClaimed(target, deps.now())) throw changeUnderWay()
  if (entry.state === 'unconfirmed') throw unconfirmed()
  // Its states may have given way meanwhile.
  if (entry.undo === 'none') throw notReversible(entry)
  const after = stateIn(entry.state_after)
  // A created row is not removed with later changes of it, such as its password.
  const about = entry.state_before === null ? null : after
  const later = await lastAbout(entries, kind, target, about, entry.id)
  const state = await kind.read(entry.target_id, deps)
  // A process that has ended while it undid the change may have restored the state.
  const isExpected =
    isSameState(kind, state, after) ||
    (entry.claimed_until !== null && isSameState(kind, state, stateIn(entry.state_before)))
  if (entry.state !== 'made' || later !== undefined || !isExpected) throw changedSince(later)
  accept?.(state)
  return { state }
}

/**
 * A person approves it by this text, so it says what is taken back; that text has names in quotes
 * already.
 */
function effectOf(entry: ChangeEntry, kind: RestorableKind): string {
  const { change_id, tool, target_kind, target_id, effect, state_before } = entry
  const becomes =
    state_before === null
      ? (kind.uncreated ?? 'is removed: it was not there')
      : 'gets back the state that it had'
  return (
    `The ${target_kind} ${quoted(target_id)} ${becomes} before change ${change_id} (${tool}), ` +
    `whose effect was: ${effect}`
  )
}

const endedEffect = ({ state, undone_at: at }: ChangeEntry): string =>
  `Nothing changes: it was ${state === 'expired' ? 'over' : 'undone'} at ` +
  `${timeToText(at ?? 0)} already.`

const isOver = ({ state }: ChangeEntry): boolean => state === 'undone' || state === 'expired'

const notReversible = (entry: ChangeEntry): ApiError =>
  conflict(
    'not_reversible',
    `What ${entry.tool} did cannot be undone${whyLost(entry)}. Nothing was changed`,
  )

function whyLost(entry: ChangeEntry): string {
  switch (lossOf(entry)) {
    case 'let_go':
      return (
        ': its earlier state was deleted to make room for later changes of ' +
        (entry.tenant_id === null ? 'the platform' : 'this tenant')
      )
    case 'too_long':
      return ': its earlier state was too long to be stored'
    case null:
      return ''
  }
}

const unconfirmed = (): ApiError =>
  conflict(
    'not_confirmed',
    'The process ended while it made this change, and the target does not have its state. ' +
      'Nothing was changed',
  )

export const CHANGED_SINCE = 'changed_since'

const changedSince = (later: ChangeEntry | undefined): ApiError =>
  conflict(
    CHANGED_SINCE,
    later === undefined
      ? 'The target no longer has the state that this change gave it. Nothing was changed: ' +
          'look at it, and set the state that you want'
      : `The target has since been changed by change ${later.change_id} (${later.tool}). ` +
          'Nothing was changed: undo that change first, or set the state that you want',
  )

/** Interval between calls of `poll`. */
export const CHANGES_POLL_MS = 1_000
