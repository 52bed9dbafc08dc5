import type { SavedEntry } from '../../schema/contracts/charging.ts'
import { ReleasingMap } from '../../schema/sip/index.ts'
import type { CallDeps } from './call-deps.ts'
import type { SavedDialog } from '../sip-server/application.ts'
import { callUuidOf } from './call-machine/leg.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import { failure, reasonHeader } from './cdr/end-reason.ts'
import type { Legs } from './legs.ts'
import type { DigestLogin } from './signalling.ts'
import type { SavedLeg } from './user-agent/leg-signalling.ts'
import { messageOf } from './user-agent/received-request.ts'
import { SAVED_VERSION, type SavedCall } from './call-machine/saved-call.ts'
import { changeOf, type SavedChange, withChange } from './call-machine/saved-change.ts'

export interface SavedCallsDeps extends Pick<
  CallDeps,
  'calls' | 'charging' | 'deadlines' | 'now' | 'log'
> {
  /** For challenges in the dialogs with a carrier that are restored: passwords are not saved. */
  readonly credentialsOf: (carrierId: number) => DigestLogin | undefined
  readonly signalling: Legs
  readonly dispatch: (event: MachineEvent) => void
}

/** How many calls of the last run continue, and how many had to be closed. */
export interface Restored {
  readonly restored: number
  readonly abandoned: number
}

const SAVE_AGAIN_MS = 1_000

/** Messages that have waited in the sockets come first: a BYE there needs no question. */
const FIRST_QUESTION_MS = 100
/** The parties of so many calls are asked at a time: of 500 calls in a second. */
const QUESTIONS_INTERVAL_MS = 20
const CALLS_AT_A_TIME = 10

/** An answered call may be stable again after one of these events. */
const settling: ReadonlySet<MachineEvent['type']> = new Set([
  'ack',
  'acknowledged',
  'response',
  'requestFailed',
  'bye',
  'extended',
  'supervise',
])

/** Saves answered calls to the journal, and restores them at the start of the next process. */
export class SavedCalls {
  readonly #deps: SavedCallsDeps
  /** Calls that are saved again later, because they were not stable. */
  readonly #waiting = new Set<string>()
  /** Calls as they were saved at their answer, until they are saved again. */
  readonly #atAnswer = new ReleasingMap<string, SavedCall>()

  constructor(deps: SavedCallsDeps) {
    this.#deps = deps
  }

  /**
   * The saved state of a call that is about to be answered, for the journal. Undefined: the call is
   * not stable, or its server is another process.
   */
  atAnswer(callUuid: string): string | undefined {
    const saved = this.#deps.calls.saved(callUuid, this.#sipOf)
    if (saved === undefined) return undefined
    this.#atAnswer.set(callUuid, saved)
    return JSON.stringify(saved)
  }

  /** The call is over. */
  forget(callUuid: string): void {
    this.#atAnswer.delete(callUuid)
  }

  /** The SIP state of a leg, without the descriptions that the saved call already contains. */
  readonly #sipOf = (legId: string): SavedLeg | undefined => {
    const { calls, signalling } = this.#deps
    const { dialog, invite, listens, relayed } = signalling.save(legId) ?? {}
    const media = relayed && { relayed }
    if (invite !== undefined) return { invite, ...media }
    if (listens !== undefined) return { listens, ...media }
    if (dialog?.session === undefined) return dialog && { dialog, ...media }
    const { session } = dialog
    const isLastSent = session.localSdp === calls.leg(legId)?.lastSdpSent
    const short = isLastSent ? { ...dialog, session: { ...session, localSdp: undefined } } : dialog
    return { dialog: short, ...media }
  }

  /** Saves the calls that a handled event has changed. The journal has them within 10 ms. */
  noteChange(event: MachineEvent): void {
    if (!settling.has(event.type)) return
    for (const callUuid of this.#affectedBy(event)) this.#save(callUuid)
  }

  /**
   * After a transfer a leg exchanges media with one of another call, and both calls become stable
   * at once.
   */
  #affectedBy(event: MachineEvent): readonly string[] {
    if ('callUuid' in event) return [event.callUuid]
    if (!('legId' in event)) return []
    const { calls } = this.#deps
    const own = callUuidOf(event.legId)
    const leg = calls.leg(event.legId)
    const partner = leg && calls.partnerOf(leg)
    return partner === undefined || partner.callUuid === own ? [own] : [own, partner.callUuid]
  }

  /**
   * Saves all calls for the next process. Returns the calls that it cannot continue, because they
   * are not stable.
   */
  saveAll(): readonly string[] {
    // Whole states: an earlier version reads no change.
    this.#atAnswer.clear()
    return this.#deps.calls
      .list()
      .flatMap(({ callUuid }) => (this.#save(callUuid, this.#wholeSipOf) ? [] : [callUuid]))
  }

  /** As every earlier version reads it: who stops in order may go back to one. */
  readonly #wholeSipOf = (legId: string): SavedLeg | undefined => {
    const saved = this.#sipOf(legId)
    return saved?.dialog ? { ...saved, dialog: whole(saved.dialog) } : saved
  }

  #save(callUuid: string, sipOf = this.#sipOf): boolean {
    const call = this.#deps.calls.call(callUuid)
    if (call?.phase !== 'answered' || call.end !== undefined) return false
    const { calls, charging } = this.#deps
    const before = this.#atAnswer.get(callUuid)
    const saved = calls.saved(callUuid, sipOf, before?.texts)
    if (saved === undefined) {
      // The last step of the transfer may be an event of another call, or of a leg that has ended.
      if (call.transfer !== undefined || this.#isHeld(callUuid)) this.#saveLater(callUuid)
      return false
    }
    this.#atAnswer.delete(callUuid)
    const change = before && changeOf(before, saved)
    if (change) charging.changed(callUuid, JSON.stringify(change), true)
    else charging.changed(callUuid, JSON.stringify(saved))
    return true
  }

  #isHeld(callUuid: string): boolean {
    const { calls, signalling } = this.#deps
    const { caller, callee } = calls.call(callUuid)?.legs ?? {}
    return [caller, callee].some((legId) => signalling.isHeld?.(legId ?? '') === true)
  }

  #saveLater(callUuid: string): void {
    if (this.#waiting.has(callUuid)) return
    const { deadlines, now } = this.#deps
    this.#waiting.add(callUuid)
    deadlines.at(now() + SAVE_AGAIN_MS, () => {
      this.#waiting.delete(callUuid)
      this.#save(callUuid)
    })
  }

  /**
   * To be called before the first packet. Each call continues, or is closed as of its last sign of
   * life.
   */
  restore(entries: readonly SavedEntry[]): Restored {
    const { calls, dispatch } = this.#deps
    const restored = entries.flatMap((entry) => this.#restored(entry) ?? [])
    for (const saved of restored) {
      const { callUuid } = saved
      if (!calls.resume(saved)) dispatch({ type: 'stop', callUuid, end: failure })
      else if (saved.call.phase === 'answered') dispatch({ type: 'resumed', callUuid })
      else dispatch({ type: 'journalled', callUuid, isStored: true })
    }
    this.#askAll(restored)
    return { restored: restored.length, abandoned: entries.length - restored.length }
  }

  /** Asks the parties of all calls whether they are still there, not all at once. */
  #askAll(restored: readonly SavedCall[]): void {
    const { deadlines, now } = this.#deps
    let at = now() + FIRST_QUESTION_MS
    for (let from = 0; from < restored.length; from += CALLS_AT_A_TIME) {
      deadlines.at(at, () => {
        for (const { callUuid } of restored.slice(from, from + CALLS_AT_A_TIME)) this.#ask(callUuid)
      })
      at += QUESTIONS_INTERVAL_MS
    }
  }

  /**
   * Saved before: after another crash the next question must have a higher CSeq than this one (RFC
   * 3261 §12.2.1.1).
   */
  #ask(callUuid: string): void {
    this.#save(callUuid)
    this.#deps.dispatch({ type: 'ask', callUuid })
  }

  /**
   * Undefined: the call cannot continue, and is closed. A fault in one call does not affect the
   * others.
   */
  #restored(entry: SavedEntry): SavedCall | undefined {
    const { charging, log } = this.#deps
    const { callUuid } = entry
    let saved: SavedCall | undefined
    try {
      saved = read(entry)
      const reason = saved ? this.#begin(saved, entry) : 'its saved state cannot be read'
      if (reason === undefined) return saved
      log('error', 'a call of the previous process could not be resumed', { callUuid, reason })
    } catch (error) {
      log('error', 'a call of the previous process could not be resumed', {
        callUuid,
        reason: messageOf(error),
      })
    }
    if (saved) this.#release(saved)
    charging.abandon(callUuid)
    return undefined
  }

  /** Why the call cannot continue. Undefined: it continues. */
  #begin(saved: SavedCall, entry: SavedEntry): string | undefined {
    const { calls, signalling, charging, credentialsOf } = this.#deps
    const { carrierId } = calls.restore(saved, entry).place
    const credentials = carrierId === null ? undefined : credentialsOf(carrierId)
    for (const { id, isUac, told, sip } of saved.legs) {
      const leg = shifted(sip, entry.shiftMs, saved.texts[told] ?? '')
      const media = offerOf(saved)
      if (!signalling.restore(id, { ...leg, media }, isUac ? credentials : undefined))
        return `the dialog of leg ${id} cannot be restored`
    }
    return charging.resume(saved.callUuid) ? undefined : 'it can no longer be charged'
  }

  /**
   * Sends BYE to the parties of a call that cannot continue, as far as their dialogs could be
   * restored.
   */
  #release(saved: SavedCall): void {
    const { calls, signalling } = this.#deps
    calls.forgetSaved(saved)
    for (const { id: legId } of saved.legs) {
      signalling.perform({ type: 'bye', legId, headers: { Reason: reasonHeader(failure) } })
      signalling.forget(legId)
    }
  }
}

/**
 * Converts the times of a saved leg to the steady clock of this process, and adds the last SDP sent
 * to its peer.
 */
function shifted(leg: SavedLeg, shiftMs: number, lastSdpSent: string): SavedLeg {
  const { dialog } = leg
  if (dialog?.session === undefined) return leg
  const { dueAt, localSdp } = dialog.session
  const session = { ...dialog.session, dueAt: dueAt + shiftMs, localSdp: localSdp || lastSdpSent }
  return { ...leg, dialog: { ...dialog, session } }
}

/** With the fields that are absent because they are empty, 0 or false. */
function whole(dialog: SavedDialog): SavedDialog {
  const { routeSet = [], isFlowBound = false, session } = dialog
  const complete = { ...dialog, routeSet, isFlowBound }
  if (session === undefined) return complete
  const { localSdp = '', minSeconds = 0 } = session
  return { ...complete, session: { ...session, localSdp, minSeconds } }
}

const offerOf = ({ offer, texts }: SavedCall): string => texts[offer ?? -1] ?? ''

/** Undefined: another version has written it, or the disk has damaged it. */
function read({ state, change }: SavedEntry): SavedCall | undefined {
  try {
    const saved = JSON.parse(state) as SavedCall
    const changed = change === undefined ? undefined : (JSON.parse(change) as SavedChange)
    if (!isWhole(saved) || (changed !== undefined && !isWhole(changed))) return undefined
    return changed ? withChange(saved, changed) : saved
  } catch {
    return undefined
  }
}

const isWhole = ({ version, legs, texts }: SavedCall | SavedChange): boolean =>
  version === SAVED_VERSION && Array.isArray(legs) && Array.isArray(texts)
