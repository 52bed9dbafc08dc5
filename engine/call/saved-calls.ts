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
import type { LegSignalling } from './user-agent/leg-signalling.ts'
import type { SavedLeg } from './user-agent/restore.ts'

export interface SavedCallsDeps {
  readonly calls: ActiveCalls
  readonly signalling: Pick<LegSignalling, 'save' | 'restore' | 'perform' | 'forget'>
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

/** A change is saved this soon: a crash before it goes on with the call as it was. */
const SOON_MS = 20
/** The journal has enough of a call that was just answered: it is saved once more if it lives this long. */
const LATER_MS = 1_000

/** Events after which an answered call is saved again. The ACK of the answer changes least. */
const savedAfter: Partial<Record<MachineEvent['type'], 'soon' | 'later'>> = {
  ack: 'later',
  acknowledged: 'soon',
  request: 'soon',
  response: 'soon',
  requestFailed: 'soon',
  bye: 'soon',
  extended: 'soon',
  supervise: 'soon',
}

export class SavedCalls {
  readonly #deps: SavedCallsDeps
  readonly #soon: Changed
  readonly #later: Changed

  constructor(deps: SavedCallsDeps) {
    this.#deps = deps
    const save = (callUuid: string): void => this.#save(callUuid)
    this.#soon = new Changed(deps, SOON_MS, save)
    this.#later = new Changed(deps, LATER_MS, save)
  }

  /** What the journal keeps of a call; undefined: it could not go on after a crash. */
  textOf(callUuid: string): string | undefined {
    const { calls, signalling } = this.#deps
    const sipOf = (legId: string): SavedLeg | undefined => {
      const { media: _offer, ...sip } = signalling.save(legId) ?? {}
      return sip.dialog === undefined && sip.invite === undefined ? undefined : sip
    }
    const saved = calls.saved(callUuid, sipOf)
    return saved && JSON.stringify(saved)
  }

  /** The event has been handled. */
  noteChange(event: MachineEvent): void {
    const delay = savedAfter[event.type]
    if (delay === undefined) return
    const changed = delay === 'soon' ? this.#soon : this.#later
    for (const callUuid of this.#concerned(event)) {
      const call = this.#deps.calls.call(callUuid)
      if (call?.phase === 'answered' && call.end === undefined) changed.add(callUuid)
    }
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

  #save(callUuid: string): void {
    const call = this.#deps.calls.call(callUuid)
    if (call?.phase !== 'answered' || call.end !== undefined) return
    const text = this.textOf(callUuid)
    if (text !== undefined) this.#deps.charging.changed(callUuid, text)
    // Its last step may be an event of another call, or of a leg that is gone by then.
    else if (call.transfer !== undefined) this.#later.add(callUuid)
  }

  /** Before the first packet. Each call goes on, or is closed as of its last sign of life. */
  restore(entries: readonly SavedEntry[]): Restored {
    const { calls, dispatch } = this.#deps
    const restored = entries.flatMap((entry) => this.#restored(entry) ?? [])
    for (const saved of restored) {
      const { callUuid } = saved.call.start
      if (!calls.resume(saved)) dispatch({ type: 'stop', callUuid, end: closed })
      else if (saved.call.phase === 'answered') dispatch({ type: 'resumed', callUuid })
      else dispatch({ type: 'journalled', callUuid, isStored: true })
    }
    return { restored: restored.length, abandoned: entries.length - restored.length }
  }

  /** Undefined: it cannot go on, and is closed. */
  #restored({ callUuid, state, shiftMs }: SavedEntry): SavedCall | undefined {
    const { calls, charging, log } = this.#deps
    const saved = read(state)
    const reason =
      saved === undefined ? 'its saved state cannot be read' : this.#begin(saved, shiftMs)
    if (saved !== undefined && reason === undefined) return saved
    log('error', 'a call of the last run cannot go on', { callUuid, reason })
    if (saved !== undefined) {
      this.#release(saved)
      calls.forgetSaved(saved)
    }
    charging.abandon(callUuid)
    return undefined
  }

  /** Why the call cannot go on; undefined: it does. */
  #begin(saved: SavedCall, shiftMs: number): string | undefined {
    const { calls, signalling, charging, credentialsOf } = this.#deps
    const { start, place } = calls.restore(saved, shiftMs)
    const { carrierId } = place
    const credentials = carrierId === null ? undefined : credentialsOf(carrierId)
    for (const { id, isUac, sip } of saved.legs) {
      const leg = shifted(sip, shiftMs)
      const media = offerOf(saved)
      if (!signalling.restore(id, { ...leg, media }, isUac ? credentials : undefined))
        return `the dialog of leg ${id} cannot be restored`
    }
    return charging.resume(start.callUuid) ? undefined : 'it can no longer be charged'
  }

  /** The parties of a call that cannot go on get BYE, as far as their dialogs could be restored. */
  #release({ legs }: SavedCall): void {
    const { signalling } = this.#deps
    for (const { id: legId } of legs) {
      signalling.perform({ type: 'bye', legId, headers: { Reason: reasonHeader(closed) } })
      signalling.forget(legId)
    }
  }
}

/** With its times by the steady clock of this process. */
function shifted(leg: SavedLeg, shiftMs: number): SavedLeg {
  const { dialog } = leg
  if (dialog?.session === undefined) return leg
  const session = { ...dialog.session, dueAt: dialog.session.dueAt + shiftMs }
  return { ...leg, dialog: { ...dialog, session } }
}

const closed = { kind: 'cut', by: 'system', cause: cause.failure, code: null } as const

const offerOf = ({ offer, texts }: SavedCall): string => texts[offer ?? -1] ?? ''

/** Undefined: another version has written it, or the disk has damaged it. */
function read(text: string): SavedCall | undefined {
  try {
    const saved = JSON.parse(text) as SavedCall
    return saved.version === SAVED_VERSION ? saved : undefined
  } catch {
    return undefined
  }
}

/** Calls that wait to be saved, together. */
class Changed {
  readonly #deps: Pick<SavedCallsDeps, 'deadlines' | 'now'>
  readonly #delayMs: number
  readonly #save: (callUuid: string) => void
  readonly #callUuids = new Set<string>()

  constructor(
    deps: Pick<SavedCallsDeps, 'deadlines' | 'now'>,
    delayMs: number,
    save: (callUuid: string) => void,
  ) {
    this.#deps = deps
    this.#delayMs = delayMs
    this.#save = save
  }

  add(callUuid: string): void {
    const { deadlines, now } = this.#deps
    if (this.#callUuids.size === 0) deadlines.at(now() + this.#delayMs, () => this.#saveAll())
    this.#callUuids.add(callUuid)
  }

  #saveAll(): void {
    const callUuids = [...this.#callUuids]
    this.#callUuids.clear()
    for (const callUuid of callUuids) this.#save(callUuid)
  }
}
