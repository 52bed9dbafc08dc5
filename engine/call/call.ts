/** One call from INVITE to record: what is known about it, its state, and how it is stopped. */
import type { CallState, CallTransfer } from '../../schema/contracts/calls.ts'
import type { Account, Verdict } from '../../schema/contracts/charging.ts'
import type { Attempt, CallRecord } from '../../schema/call-record.ts'
import type { Origin } from '../routing/routing.ts'
import type { End } from './cdr/end-reason.ts'
import type { Conversation } from './legs/conversation.ts'
import type { Invite } from './legs/invite.ts'
import type { Destination, Route } from './inbound/route.ts'
import type { Agent } from './srf/drachtio.ts'

export type Direction = CallRecord['direction']

/** What the INVITE itself tells. */
export interface CallStart {
  readonly callUuid: string
  readonly callId: string
  readonly callerNumber: string
  readonly callerName: string | null
  readonly calledNumber: string
  /** `address:port` of the sender, or which part of Tollgate began the call. */
  readonly sourceAddress: string
  /** It began here: nobody has sent an INVITE. */
  readonly isOurs?: boolean
  /** Milliseconds by the steady clock, as all times of a call (schema/clock.ts). */
  readonly startedAt: number
}

/** Where a call went, or is being tried. */
export interface Place {
  readonly setId: number | null
  readonly nodeId: number | null
  /** The node's destination, such as `sip:10.0.0.5:5060;transport=udp`. */
  readonly node: string | null
  readonly carrierId: number | null
  readonly carrier: string | null
  readonly agentId: number | null
}

export const nowhere: Place = {
  ...{ setId: null, nodeId: null, node: null, carrierId: null, carrier: null, agentId: null },
}

/** Something that was decided about a call, for its trace. */
export type Note = {
  /** Milliseconds. */
  readonly at: number
} & (
  | { readonly what: 'recognized'; readonly origin: Origin }
  | { readonly what: 'charged'; readonly verdict: Verdict }
  | { readonly what: 'routed'; readonly route: Route }
  | { readonly what: 'transfer'; readonly transfer: CallTransfer }
)

export class Call {
  readonly start: CallStart
  /** Added to a time of the call it gives milliseconds UTC, by the machine's clock when the call began. */
  readonly stampOffsetMs: number
  direction: Direction = 'inbound'
  /** Who pays; known after the authorization. */
  account: Account | null = null
  /** Nobody of another tenant may be made to pay; null: whoever it is. */
  payerTenantId: number | null = null
  /** Who calls, as soon as it is admitted. */
  origin: Origin | undefined
  /** What is being called, or was reached. */
  destination: Destination | undefined
  /** Since its answer: its legs, and whom they talk to. */
  conversation: Conversation | undefined
  transfer: CallTransfer | undefined
  /** What its caller has sent; undefined: not admitted yet, or nobody has called from outside. */
  invite: Invite | undefined
  /** Whose connection the calling leg is on; undefined: none yet. */
  near: Agent | undefined
  /** The extension that has sent this call to the outside, as a SIP URI; undefined: none. */
  forwardedBy: string | undefined
  /** How many transfers, one after the other, have led to this call. */
  transfersBefore = 0
  /** How many transfers that its parties have asked for came to nothing. */
  failedTransfers = 0
  /** Changed only by `ActiveCalls.place`, which counts by it. */
  place: Place = nowhere
  readonly attempts: Attempt[] = []
  /** Call-IDs, the caller's first. */
  readonly legs: string[]
  readonly notes: Note[] = []
  /** `address:port` of whoever is at the end of each leg; null: not heard of yet. */
  readonly peers: { caller: string | null; callee: string | null }
  /** Nobody is asked to pay for it. */
  isFree = false
  isEmergency = false
  /** The whole grant since the answer; Infinity when the call costs nothing. */
  grantedSeconds = Infinity
  /** Milliseconds; null: not yet, or never. */
  firstProgressAt: number | null = null
  answeredAt: number | null = null
  #stopped: End | undefined
  readonly #onStop = new Set<(end: End) => void>()

  #state: CallState = 'DIALING'
  readonly #onState: (call: Call, before: CallState) => void

  /** `onState` hears of every change. */
  constructor(
    start: CallStart,
    onState: (call: Call, before: CallState) => void = () => undefined,
    stampOffsetMs = 0,
  ) {
    this.start = start
    this.stampOffsetMs = stampOffsetMs
    this.legs = [start.callId]
    this.peers = { caller: start.isOurs === true ? null : start.sourceAddress, callee: null }
    this.#onState = onState
  }

  get isTransferring(): boolean {
    return this.transfer?.state === 'transferring'
  }

  get state(): CallState {
    return this.#state
  }

  set state(state: CallState) {
    const before = this.#state
    this.#state = state
    if (state !== before) this.#onState(this, before)
  }

  /** Why the call is over, as soon as it is; the first reason counts. */
  get stopped(): End | undefined {
    return this.#stopped
  }

  /**
   * Ends the call in whatever it is doing. False when it was already ending, so that crossing
   * BYEs, a hang-up racing an answer and an empty wallet count once.
   */
  stop(end: End): boolean {
    if (this.#stopped) return false
    this.#stopped = end
    for (const act of [...this.#onStop]) act(end)
    return true
  }

  /**
   * What stopping means at present: cancel an attempt, or hang up both legs. The returned function
   * takes it back.
   */
  whenStopped(act: (end: End) => void): () => void {
    this.#onStop.add(act)
    return () => void this.#onStop.delete(act)
  }
}
