/**
 * Undoes a change: its target gets back the state that it had. Refused when the target was changed
 * since, so that nothing that was done later is lost. The platform undoes by itself the changes
 * whose time is over, and settles those that a process has left half made; each node polls, and one
 * of them works on a change.
 */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { Principal } from '../auth/principal.ts'
import { admitScope } from '../auth/requires.ts'
import { allScopes } from '../auth/scopes.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import { cleanText, quoted } from '../http/clean-text.ts'
import { auditEntry, type AuditLog } from './audit.ts'
import { type ChangeOrder, changeUnderWay, MAX_EFFECT, run, UNDER_WAY } from './change.ts'
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
import { everywhere, requestScope, type RequestScope } from '../auth/tenants.ts'

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
async function restore(
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
        `${entry.tenant_id === null ? 'the platform' : 'this tenant'}`
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

const CHANGED_SINCE = 'changed_since'

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
/** Changes of one poll. */
const BATCH = 20
/**
 * How long one waits that cannot be undone now, such as for another node of its set to be in
 * service.
 */
const RETRY_MS = 60_000

const PLATFORM = 'platform'

export interface ChangeDutiesDeps extends ChangeDeps {
  readonly audit: AuditLog
  readonly newCorrelationId: () => string
  readonly log: Log
}

export class ChangeDuties {
  readonly #deps: ChangeDutiesDeps
  readonly #entries: ChangeStore
  /**
   * Changes that could not be undone, with the time of the next attempt: no more than fall due in
   * `RETRY_MS`.
   */
  readonly #waiting = new Map<string, number>()
  #isBusy = false
  #isFailing = false

  /** @param deps `now` is early rather than late: no change ends before its time. */
  constructor(deps: ChangeDutiesDeps) {
    this.#deps = deps
    this.#entries = new ChangeStore(deps.store)
  }

  /**
   * Called before the first request, unless another process serves: claims of a dead process end.
   */
  begin(): Promise<void> {
    return this.#entries.endClaims()
  }

  /** Called every `CHANGES_POLL_MS`; the last call may still be at work. */
  async poll(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      const now = this.#deps.now()
      for (const entry of await this.#entries.abandoned(now, BATCH)) await this.#settle(entry)
      for (const [changeId, retryAt] of this.#waiting)
        if (retryAt <= now) this.#waiting.delete(changeId)
      const waiting = [...this.#waiting.keys()]
      for (const entry of await this.#entries.due(now, BATCH, waiting)) await this.#expire(entry)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing && !isUnstored(error))
        this.#deps.log('warn', 'expired changes could not be undone', { error: String(error) })
      this.#isFailing = true
    } finally {
      this.#isBusy = false
    }
  }

  /**
   * Settles a change whose process has ended: the state of the target shows whether the change was
   * made.
   */
  async #settle(entry: ChangeEntry): Promise<void> {
    const kind = restorable(this.#deps.kinds, entry.target_kind)
    const isMade =
      kind !== null &&
      isSameState(kind, await kind.read(entry.target_id, this.#deps), stateIn(entry.state_after))
    await this.#entries.settle(entry.change_id, isMade ? 'made' : 'unconfirmed')
  }

  async #expire(entry: ChangeEntry): Promise<void> {
    const kind = restorable(this.#deps.kinds, entry.target_kind)
    if (kind === null) return
    const { now, log } = this.#deps
    const ended = { undone_at: now(), undone_by: PLATFORM, undo_reason: null }
    const { change_id: changeId, tool, target_kind, target_id } = entry
    const logged = { changeId, tool, target: `${target_kind} ${target_id}` }
    try {
      const restored = await restore(
        entry,
        { ...ended, state: 'expired' },
        {
          kind,
          entries: this.#entries,
          deps: this.#deps,
          asker: { ...everywhere, actor: PLATFORM, now: now() },
          admit: () => Promise.resolve(),
        },
      )
      if (restored === undefined) return
      log('info', 'a temporary change has expired and was undone', logged)
      await this.#audit(entry)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.code === CHANGED_SINCE || error.status === 404)
        return this.#entries.end(entry, { ...ended, state: 'superseded' })
      if (error.code === UNDER_WAY) return undefined
      this.#waiting.set(changeId, now() + RETRY_MS)
      log('warn', 'a temporary change has expired, but cannot be undone yet', {
        ...logged,
        code: error.code,
      })
    }
  }

  #audit(entry: ChangeEntry): Promise<void> {
    const { audit, newCorrelationId, now } = this.#deps
    return audit.record(
      auditEntry({
        at: now(),
        by: { actor: PLATFORM, tenant_id: entry.tenant_id },
        address: PLATFORM,
        action: `expire ${entry.tool}`,
        target: `${entry.target_kind} ${entry.target_id}`,
        status: 200,
        correlationId: newCorrelationId(),
        changeId: entry.change_id,
        reason: entry.reason,
      }),
    )
  }
}
