/**
 * Keeps answered calls in the journal, so that the next process goes on with them, and restores them there
 * before it serves.
 */
import type { Charging, SavedEntry } from '../../schema/contracts/charging.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { ActiveCalls } from './active-calls.ts'
import { callUuidOf } from './call-machine/leg.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import { SAVED_VERSION, type SavedCall } from './call-machine/saved-call.ts'
import { cause, reasonHeader } from './cdr/end-reason.ts'
import type { Deadlines } from './deadlines.ts'
import type { Credentials } from './signalling.ts'
import type { Legs } from './legs.ts'
import { messageOf } from './user-agent/message-values.ts'
import type { SavedLeg } from './user-agent/restore.ts'

export interface SavedCallsDeps {
  readonly calls: ActiveCalls
  readonly signalling: Pick<Legs, 'save' | 'restore' | 'perform' | 'forget' | 'isHeld'>
  readonly charging: Pick<Charging, 'changed' | 'resume' | 'abandon'>
  readonly deadlines: Deadlines
  /** For challenges in the dialogs with a carrier: passwords are not saved. */
  readonly credentialsOf: (carrierId: number) => Credentials | undefined
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly dispatch: (event: MachineEvent) => void
  readonly log: Log
}

/** How many calls of the last run go on, and how many had to be closed. */
export interface Restored {
  readonly restored: number
  readonly abandoned: number
}

const LATER_MS = 1_000

/** Events after which an answered call may be stable again. */
const settling: ReadonlySet<MachineEvent['type']> = new Set([
  'ack',
  'acknowledged',
  'response',
  'requestFailed',
  'bye',
  'extended',
  'supervise',
])

export class SavedCalls {
  readonly #deps: SavedCallsDeps
  /** Calls with a transfer that are looked at again. */
  readonly #waiting = new Set<string>()

  constructor(deps: SavedCallsDeps) {
    this.#deps = deps
  }

  /** What the journal keeps of a call; undefined: it is not stable, or its server is another process. */
  textOf(callUuid: string): string | undefined {
    const saved = this.#deps.calls.saved(callUuid, (legId) => this.#sipOf(legId))
    return saved && JSON.stringify(saved)
  }

  /** Without the descriptions that the call has anyway. */
  #sipOf(legId: string): SavedLeg | undefined {
    const { calls, signalling } = this.#deps
    const { dialog, invite, listens, relayed } = signalling.save(legId) ?? {}
    const beside = relayed && { relayed }
    if (invite !== undefined) return { invite, ...beside }
    if (listens !== undefined) return { listens, ...beside }
    if (dialog?.session === undefined) return dialog && { dialog, ...beside }
    const { session } = dialog
    const isTold = session.localSdp === calls.leg(legId)?.told
    const kept = isTold ? { ...dialog, session: { ...session, localSdp: '' } } : dialog
    return { dialog: kept, ...beside }
  }

  /** The event has been handled. What it has changed is in the journal within 10 ms. */
  noteChange(event: MachineEvent): void {
    if (!settling.has(event.type)) return
    for (const callUuid of this.#concerned(event)) this.#save(callUuid)
  }

  /** After a transfer a leg exchanges media with one of another call, and both calls become stable at once. */
  #concerned(event: MachineEvent): readonly string[] {
    if ('callUuid' in event) return [event.callUuid]
    if (!('legId' in event)) return []
    const { calls } = this.#deps
    const own = callUuidOf(event.legId)
    const leg = calls.leg(event.legId)
    const partner = leg && calls.partnerOf(leg)
    return partner === undefined || partner.callUuid === own ? [own] : [own, partner.callUuid]
  }

  /** Another process goes on with all calls next. Returns those with which it cannot: they are not stable. */
  saveAll(): readonly string[] {
    return this.#deps.calls
      .list()
      .flatMap(({ callUuid }) => (this.#save(callUuid) ? [] : [callUuid]))
  }

  #save(callUuid: string): boolean {
    const call = this.#deps.calls.call(callUuid)
    if (call?.phase !== 'answered' || call.end !== undefined) return false
    const text = this.textOf(callUuid)
    if (text !== undefined) this.#deps.charging.changed(callUuid, text)
    // Its last step may be an event of another call, or of a leg that is gone by then.
    else if (call.transfer !== undefined || this.#isHeld(callUuid)) this.#saveLater(callUuid)
    return text !== undefined
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
    deadlines.at(now() + LATER_MS, () => {
      this.#waiting.delete(callUuid)
      this.#save(callUuid)
    })
  }

  /** Before the first packet. Each call goes on, or is closed as of its last sign of life. */
  restore(entries: readonly SavedEntry[]): Restored {
    const { calls, dispatch } = this.#deps
    const restored = entries.flatMap((entry) => this.#restored(entry) ?? [])
    for (const saved of restored) {
      const { callUuid } = saved
      if (!calls.resume(saved)) dispatch({ type: 'stop', callUuid, end: closed })
      else if (saved.call.phase === 'answered') dispatch({ type: 'resumed', callUuid })
      else dispatch({ type: 'journalled', callUuid, isStored: true })
    }
    return { restored: restored.length, abandoned: entries.length - restored.length }
  }

  /** Undefined: it cannot go on, and is closed. A fault in one call keeps no other from being restored. */
  #restored(entry: SavedEntry): SavedCall | undefined {
    const { charging, log } = this.#deps
    const { callUuid } = entry
    let saved: SavedCall | undefined
    try {
      saved = read(entry.state)
      const reason = saved ? this.#begin(saved, entry) : 'its saved state cannot be read'
      if (reason === undefined) return saved
      log('error', 'a call of the last run cannot go on', { callUuid, reason })
    } catch (error) {
      log('error', 'a call of the last run cannot go on', { callUuid, reason: messageOf(error) })
    }
    if (saved) this.#release(saved)
    charging.abandon(callUuid)
    return undefined
  }

  /** Why the call cannot go on; undefined: it does. */
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

  /** The parties of a call that cannot go on get BYE, as far as their dialogs could be restored. */
  #release(saved: SavedCall): void {
    const { calls, signalling } = this.#deps
    calls.forgetSaved(saved)
    for (const { id: legId } of saved.legs) {
      signalling.perform({ type: 'bye', legId, headers: { Reason: reasonHeader(closed) } })
      signalling.forget(legId)
    }
  }
}

/** With its times by the steady clock of this process, and what its peer was told last. */
function shifted(leg: SavedLeg, shiftMs: number, told: string): SavedLeg {
  const { dialog } = leg
  if (dialog?.session === undefined) return leg
  const { dueAt, localSdp } = dialog.session
  const session = { ...dialog.session, dueAt: dueAt + shiftMs, localSdp: localSdp || told }
  return { ...leg, dialog: { ...dialog, session } }
}

const closed = { kind: 'cut', by: 'system', cause: cause.failure, code: null } as const

const offerOf = ({ offer, texts }: SavedCall): string => texts[offer ?? -1] ?? ''

/** Undefined: another version has written it, or the disk has damaged it. */
function read(text: string): SavedCall | undefined {
  try {
    const saved = JSON.parse(text) as SavedCall
    const isWhole = Array.isArray(saved.legs) && Array.isArray(saved.texts)
    return saved.version === SAVED_VERSION && isWhole ? saved : undefined
  } catch {
    return undefined
  }
}
