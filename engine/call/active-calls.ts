/** The live calls: this file lists, counts, hangs up and drains them. */
import type { Attempt, CallRecord } from '../../schema/contracts/call-record.ts'
import type { ActiveCall, CallState, CallTransfer, Unserved } from '../../schema/contracts/calls.ts'
import type { Charging, SavedEntry } from '../../schema/contracts/charging.ts'
import { silentAtApplication } from './application/silent-runs.ts'
import {
  forgetCall,
  beginCall,
  beginInvitedCall,
  type NewCall,
  type ReceivedInvite,
} from './call-machine/call.ts'
import {
  emptyWorld,
  type LiveCall,
  type LiveLeg,
  type Note,
  nowhere,
  type Side,
} from './call-machine/state.ts'
import { callUuidOf } from './call-machine/leg.ts'
import { legOf, partnerOf } from './call-machine/calling.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import * as saving from './call-machine/saved-call.ts'
import { type CallParties, partiesOf } from './call-parties.ts'
import { isPaidByPlatform, stamped, tenantOfCall } from './cdr/cdr.ts'
import { cause, type End } from './cdr/end-reason.ts'
import type { CallDeadlines } from './deadlines.ts'
import type { DialogIds } from './signalling.ts'
import { CallCounts } from './call-counts.ts'
import { CallsByLeg } from './calls-by-leg.ts'
import { RecentCalls } from './recent-calls.ts'
import { UnstoredCalls } from './unstored-calls.ts'
import type { LiveCallEvent } from '../../schema/contracts/engine.ts'

export interface ActiveCallsDeps {
  /** The name of this process, for calls and their records. */
  readonly instanceName: string
  /** Milliseconds by the steady clock (schema/clock.ts). */
  readonly now: () => number
  /** Milliseconds UTC by the clock of the machine. */
  readonly wallNow: () => number
  readonly deadlines: CallDeadlines
  readonly charging: Pick<Charging, 'alive' | 'running'>
  /**
   * Why this instance takes no calls: it cannot store them, or may not. Absent: it always takes
   * calls.
   */
  readonly whyClosed?: () => Unserved | undefined
  readonly onEvent: (event: CallProgress) => void
  /** How many ended calls stay in memory. */
  readonly recentCalls?: number
  /** Whether the calls of legs that have ended a moment ago are found, too. */
  readonly findsEndedLegs?: boolean
}

const transferEvents = {
  transferring: 'call.transferring',
  transferred: 'call.transferred',
  failed: 'call.transfer_failed',
} as const

/** Progress of a call, for its observers. */
export type CallProgress = { readonly tenantId: number | null } & (
  | { readonly type: LiveCallEvent; readonly call: ActiveCall }
  | { readonly type: 'call.ended'; readonly record: CallRecord }
)

/**
 * The journal learns this often that this process runs: so much of a call is not charged if it ends
 * in a crash.
 */
const BEAT_MS = 1_000
/**
 * The OCS learns every so many beats which calls are live; at most 10 s by the charging contract.
 */
const BEATS_OF_ALL = 5
const DRAIN_POLL_MS = 500

/** The caller has no final response yet, and the machine sends none before the next event. */
const ringing: ReadonlySet<LiveCall['phase']> = new Set(['dialing', 'forwarding', 'journalling'])

export class ActiveCalls {
  readonly #deps: ActiveCallsDeps
  /** Only the call machine writes it. All others use the methods of this class. */
  readonly world: ReturnType<typeof emptyWorld>
  readonly #calls: ReturnType<typeof emptyWorld>['calls']
  #dispatch: (event: MachineEvent) => void = () => undefined
  readonly counts = new CallCounts()
  readonly #recent: RecentCalls
  readonly #byLeg: CallsByLeg
  readonly unstored = new UnstoredCalls()
  #isDraining = false
  #isBeating = false
  #beats = 0
  /** Calls of the last process whose parties are there, since the last beat. */
  #heard: string[] = []
  readonly #since: number
  readonly #onEmpty: (() => void)[] = []

  constructor(deps: ActiveCallsDeps) {
    this.#deps = deps
    this.#since = deps.now()
    this.world = emptyWorld(deps.instanceName)
    this.#calls = this.world.calls
    this.#recent = new RecentCalls(deps.now, deps.recentCalls)
    this.#byLeg = new CallsByLeg(deps.now, deps.findsEndedLegs === true)
  }

  get size(): number {
    return this.#calls.size
  }

  /** No new call is taken any more. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Why a call that begins now cannot be journalled, or belongs to another instance. */
  get unserved(): Unserved | undefined {
    return this.#deps.whyClosed?.()
  }

  /** Connects the call machine, which gets events by `dispatch`. */
  attach(dispatch: (event: MachineEvent) => void): void {
    this.#dispatch = dispatch
  }

  begin(newCall: Omit<NewCall, 'stampOffsetMs'>): LiveCall {
    const call = beginCall(this.world, { ...newCall, stampOffsetMs: this.#stampOffsetMs })
    this.#byLeg.add(call.start.callId, call.start.callUuid)
    this.#scheduleHeartbeat()
    return call
  }

  /** A call that an INVITE begins, and the leg of its caller. */
  beginInvited(newCall: Omit<NewCall, 'stampOffsetMs'>, invite: ReceivedInvite): LiveLeg {
    const { world } = this
    const leg = beginInvitedCall(world, { ...newCall, stampOffsetMs: this.#stampOffsetMs }, invite)
    this.#byLeg.add(leg.callId, leg.callUuid)
    this.#scheduleHeartbeat()
    return leg
  }

  /**
   * Returns a stable call as plain values. `sipOf` returns the saved SIP state of a leg. The
   * descriptions `known` come first (`SavedCall.texts`).
   */
  saved(
    callUuid: string,
    sipOf: (legId: string) => object | undefined,
    known: readonly string[] = [],
  ): saving.SavedCall | undefined {
    const call = this.#calls.get(callUuid)
    return call && saving.saveCall(this.world, call, sipOf, this.#deps.now(), known)
  }

  /** Adds a call of the last run. `resume` connects its legs. */
  restore(saved: saving.SavedCall, { call, shiftMs, aliveAt }: SavedEntry): LiveCall {
    const doubt = { aliveAt, since: this.#deps.now() }
    const restored = saving.restoreCall(this.world, saved, call, shiftMs, doubt)
    for (const callId of restored.callIds) this.#byLeg.add(callId, saved.callUuid)
    return restored
  }

  /** Notes the Call-ID of an INVITE that was sent. */
  sent(legId: string, callId: string): void {
    const callUuid = callUuidOf(legId)
    if (this.#calls.get(callUuid)?.callIds.includes(callId)) this.#byLeg.add(callId, callUuid)
  }

  /**
   * The call that has a leg with this Call-ID; with `findsEndedLegs`, also one that had it a moment
   * ago.
   */
  uuidOf(callId: string): string | undefined {
    return this.#byLeg.uuidOf(callId)
  }

  /**
   * Continues a restored call. False: its leg was connected to a leg of another call, which was not
   * restored.
   */
  resume(saved: saving.SavedCall): boolean {
    const call = this.#calls.get(saved.callUuid)
    if (call) this.counts.move(call, nowhere, call.place)
    this.#scheduleHeartbeat()
    return saving.connectSaved(this.world, saved)
  }

  /** The parties of a restored call are there. */
  goesOn({ start }: LiveCall): void {
    this.#heard.push(start.callUuid)
  }

  /** Removes a restored call that cannot continue. */
  forgetSaved(saved: saving.SavedCall): void {
    const call = this.#calls.get(saved.callUuid)
    saving.forgetSaved(this.world, saved)
    if (call) this.#byLeg.ended(call)
  }

  get #stampOffsetMs(): number {
    return this.#deps.wallNow() - this.#deps.now()
  }

  /** The call is over, and counts nowhere any more; it is known until its record is stored. */
  ended(call: LiveCall): void {
    this.unstored.ended(call)
    this.counts.leave(call, call.place)
  }

  /** How far a transfer of the call has come. */
  transferred(call: LiveCall, { state }: CallTransfer): void {
    this.#emit(transferEvents[state], call)
  }

  /** Returns the leg of an answered call with this Call-ID and these tags. Scans all legs. */
  legIn(callId: string, localTag: string, remoteTag: string): LiveLeg | undefined {
    for (const leg of this.world.legs.values()) {
      if (leg.callId !== callId || leg.localTag !== localTag || leg.remoteTag !== remoteTag)
        continue
      const { caller, callee } = this.world.calls.get(leg.callUuid)?.legs ?? {}
      if (leg.id === caller || leg.id === callee) return leg
    }
    return undefined
  }

  /**
   * Returns the party of this dialog. Of a dialog with a called party only the Call-ID is known
   * before the answer.
   */
  partyIn({
    callId,
    localTag,
    remoteTag,
  }: Omit<DialogIds, 'media'>): { readonly call: LiveCall; readonly side: Side } | undefined {
    const calls = this.#byLeg.uuidsOf(callId).flatMap((uuid) => this.#calls.get(uuid) ?? [])
    for (const call of calls)
      for (const leg of this.#legsOf(call)) {
        if (leg.callId !== callId || leg.remoteTag !== remoteTag) continue
        if (leg.localTag === localTag || leg.localTag === '') return { call, side: leg.side }
      }
    const call = calls.find(({ answeredAt }) => answeredAt === null)
    return call && { call, side: 'callee' }
  }

  /** Those that are not over; their ids are numbered. */
  *#legsOf({ start, legCount }: LiveCall): Generator<LiveLeg> {
    for (let number = 0; number < legCount; number += 1) {
      const leg = this.world.legs.get(`${start.callUuid}.${number}`)
      if (leg) yield leg
    }
  }

  /**
   * Returns the unanswered call of this INVITE. Only the SIP server knows our own tag in such a
   * dialog; the Call-ID and the tag of the caller identify it. Scans all calls.
   */
  unanswered(callId: string, callerTag: string): LiveCall | undefined {
    for (const call of this.#calls.values()) {
      const { start, calling, answeredAt, end } = call
      if (start.callId !== callId || answeredAt !== null || end) continue
      const isRinging = ringing.has(call.phase)
      if (isRinging && calling.kind === 'invite' && call.callerTag === callerTag) return call
    }
    return undefined
  }

  /** A leg that is not over. */
  leg(legId: string | undefined): LiveLeg | undefined {
    return legOf(this.world, legId)
  }

  /** The leg that this one is connected to, in the same call or in another. */
  partnerOf(leg: LiveLeg): LiveLeg | undefined {
    const own = this.world.legs.get(leg.id)
    return own && partnerOf(this, own)
  }

  /** Whether one of the legs takes part in a transfer. */
  isTransferring(...legs: readonly LiveLeg[]): boolean {
    return legs.some(({ callUuid }) => this.call(callUuid)?.transfer?.state === 'transferring')
  }

  /** Whether an unanswered call has a leg with this Call-ID. Scans all calls. */
  isUnanswered(callId: string): boolean {
    for (const { callIds, answeredAt } of this.#calls.values())
      if (answeredAt === null && callIds.includes(callId)) return true
    return false
  }

  /** Calls that this run of the application is asked about, has answered, or makes. */
  ofApplication(run: number): readonly LiveCall[] {
    return [...this.#calls.values()].filter(
      ({ start, destination }) =>
        start.applicationRun === run ||
        (destination?.kind === 'application' && destination.run === run),
    )
  }

  /** Counts unanswered calls that this extension forwards to the outside. Scans all calls. */
  countForwarding(uri: string): number {
    let count = 0
    for (const { forwardedBy, answeredAt } of this.#calls.values())
      if (forwardedBy === uri && answeredAt === null) count += 1
    return count
  }

  /** Whether a call with this Call-ID ended a moment ago. */
  hasEnded(callId: string): boolean {
    return this.#recent.withLeg(callId) !== undefined
  }

  /** Forgets a call whose record is stored. Without `record` it gets none. */
  finish(call: LiveCall, record?: CallRecord): void {
    if (record) {
      const { callIds, notes, stampOffsetMs } = call
      const parties = partiesOf(call)
      // Copies: an array that has grown has room for 17 items.
      const legs = callIds.slice()
      this.#recent.add({ record, legs, notes: notes.slice(), stampOffsetMs, parties })
      this.#deps.onEvent({ type: 'call.ended', tenantId: record.tenantId, record })
    }
    this.counts.leave(call, call.place)
    this.unstored.forget(call)
    forgetCall(this.world, call.start.callUuid)
    this.#byLeg.ended(call)
    if (this.#calls.size === 0) this.#emptied()
  }

  list(): readonly ActiveCall[] {
    return [...this.#calls.values()].map(describe)
  }

  /** The live call itself. */
  call(callUuid: string): LiveCall | undefined {
    return this.#calls.get(callUuid)
  }

  /** Whether this call is known, and was answered. */
  isAnswered(callUuid: string): boolean {
    const { answeredAt = null } = this.#calls.get(callUuid) ?? {}
    return answeredAt !== null
  }

  find(callUuid: string): ActiveCall | undefined {
    const call = this.#calls.get(callUuid)
    return call && describe(call)
  }

  /** The record of a call that ended a moment ago. */
  recent(callUuid: string): CallRecord | undefined {
    return this.#recent.find(callUuid)?.record
  }

  /** Returns the parties of a call that is live, or ended a moment ago. */
  parties(callUuid: string): CallParties | undefined {
    const call = this.#calls.get(callUuid)
    return call ? partiesOf(call) : this.#recent.find(callUuid)?.parties
  }

  /** Returns the parties of the call that has this Call-ID. Scans all calls. */
  withLeg(callId: string): CallParties | undefined {
    for (const call of this.#calls.values())
      if (call.callIds.includes(callId)) return partiesOf(call)
    return this.#recent.withLeg(callId)?.parties
  }

  /** Adds a note to the trace of a call. */
  note(callUuid: string, note: Note): void {
    if (this.#calls.has(callUuid)) this.#dispatch({ type: 'noted', callUuid, note })
    else this.#recent.note(callUuid, note)
  }

  /** Returns the notes and attempts of a call that is live, or ended a moment ago. */
  story(callUuid: string): CallStory | undefined {
    const call = this.#calls.get(callUuid)
    if (call) {
      const { start, callIds: legs, notes, stampOffsetMs } = call
      const attempts = call.attempts.map((attempt) => stamped(attempt, call))
      const startedAt = start.startedAt + stampOffsetMs
      const tenantId = tenantOfCall(call)
      const known = { tenantId, isPaidByPlatform: isPaidByPlatform(call), startedAt }
      return { ...known, stampOffsetMs, legs, notes, attempts, record: undefined }
    }
    const ended = this.#recent.find(callUuid)
    if (!ended) return undefined
    const { tenantId, startedAt, attempts } = ended.record
    const isOfPlatform = ended.record.isPaidByPlatform === true
    return { ...ended, tenantId, isPaidByPlatform: isOfPlatform, startedAt, attempts }
  }

  /** Whether this live call was for this number: an INVITE with its mark is then a loop. */
  isCalling(callUuid: string, calledNumber: string): boolean {
    const { start } = this.#calls.get(callUuid) ?? {}
    return start?.calledNumber === calledNumber || start?.dialledNumber === calledNumber
  }

  /** Both legs get BYE (or CANCEL, or a refusal) with this Q.850 cause. */
  hangUp(callUuid: string, q850: number): 'ending' | 'not_found' | 'already_ending' {
    const call = this.#calls.get(callUuid)
    if (!call) return 'not_found'
    if (call.end) return 'already_ending'
    this.#stop(callUuid, { kind: 'cut', by: 'api', cause: q850, code: null })
    return 'ending'
  }

  countByNode(nodeId: number): number {
    return this.counts.byNode(nodeId)
  }

  countByCarrier(carrierId: number): number {
    return this.counts.byCarrier(carrierId)
  }

  countByAgent(agentId: number): number {
    return this.counts.byAgent(agentId)
  }

  /**
   * Refuses new calls at once, lets live ones continue until `deadlineMs` (by the steady clock),
   * then hangs them up. Resolves when every call is over and its record is stored.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true
    if (this.#calls.size === 0) return
    const emptied = new Promise<void>((resolve) => this.#onEmpty.push(resolve))
    const deadline = this.#deps.deadlines.at(deadlineMs, () =>
      this.#stopAll(cause.shutdown, 'shutdown'),
    )
    this.#pollDrain()
    await emptied
    this.#deps.deadlines.cancel(deadline)
  }

  /** Records that cannot be stored are not waited for. */
  #pollDrain(): void {
    if (this.#calls.size === 0) return
    const isUnstorable = this.unserved === 'storage_unavailable'
    if (isUnstorable && this.unstored.size === this.#calls.size) return this.#emptied()
    // Without it they go on, or are refused.
    for (const legId of silentAtApplication(this.#calls.values(), this.#deps.now()))
      this.#dispatch({ type: 'applicationLost', legId })
    this.#deps.deadlines.at(this.#deps.now() + DRAIN_POLL_MS, () => this.#pollDrain())
  }

  #emptied(): void {
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  /** Ends the legs whose dialogs were lost with the connection to a SIP server. */
  connectionLost(isLost: (callId: string) => boolean): void {
    const end = { kind: 'cut', by: 'system', cause: cause.connectionLost } as const
    for (const { callIds, start } of [...this.#calls.values()])
      if (callIds.some(isLost)) this.#stop(start.callUuid, { ...end, code: 'connection_lost' })
    for (const { id: legId, callId } of [...this.world.legs.values()])
      if (isLost(callId)) this.#dispatch({ type: 'lost', legId })
  }

  /** The call is admitted, with or without a payer. */
  started(call: LiveCall): void {
    this.#emit('call.started', call)
  }

  get unansweredCount(): number {
    let count = 0
    for (const { phase } of this.#calls.values()) if (phase !== 'answered') count += 1
    return count
  }

  /** Ends unanswered calls: their callers get 503 and may try again. */
  stopUnanswered(): void {
    const end = { kind: 'cut', by: 'system', cause: cause.shutdown, code: 'shutdown' } as const
    for (const [callUuid, { phase }] of [...this.#calls])
      if (phase !== 'answered') this.#stop(callUuid, end)
  }

  #stop(callUuid: string, end: End): void {
    this.#dispatch({ type: 'stop', callUuid, end })
  }

  /** The displayed state of the call has changed. */
  displayed(call: LiveCall, before: CallState): void {
    if (before === 'DIALING' && call.display !== 'ACTIVE') this.#emit('call.ringing', call)
    else if (call.display === 'ACTIVE' && before !== 'HELD') this.#emit('call.answered', call)
  }

  #emit(type: LiveCallEvent, call: LiveCall): void {
    this.#deps.onEvent({ type, tenantId: tenantOfCall(call), call: describe(call) })
  }

  #stopAll(q850: number, code: string): void {
    for (const callUuid of [...this.#calls.keys()])
      this.#stop(callUuid, { kind: 'cut', by: 'system', cause: q850, code })
  }

  /** Runs only while there are calls. */
  #scheduleHeartbeat(): void {
    if (this.#isBeating) return
    this.#isBeating = true
    this.#deps.deadlines.at(this.#deps.now() + BEAT_MS, () => {
      this.#isBeating = false
      this.#beat()
    })
  }

  #beat(): void {
    const heard = this.#heard
    this.#heard = []
    if (this.#calls.size === 0) return
    this.#beats += 1
    this.#deps.charging.running(this.#deps.now(), this.#since)
    const alive = this.#beats % BEATS_OF_ALL === 0 ? this.#lasting() : heard
    if (alive.length > 0) this.#reportAlive(alive)
    this.#scheduleHeartbeat()
  }

  /** Ends the calls that may not go on, now rather than at the next heartbeat. */
  review(): void {
    const alive = this.#lasting()
    if (alive.length > 0) this.#reportAlive(alive)
  }

  /** Answered calls, without those whose parties have not been heard since the last process. */
  #lasting(): readonly string[] {
    const lasting: string[] = []
    for (const [callUuid, { answeredAt, end, doubt }] of this.#calls)
      if (answeredAt !== null && !end && !doubt) lasting.push(callUuid)
    return lasting
  }

  #reportAlive(callUuids: readonly string[]): void {
    for (const { callUuid, code } of this.#deps.charging.alive(callUuids, this.#deps.now()))
      this.#stop(callUuid, { kind: 'cut', by: 'system', cause: causeOf(code), code })
  }
}

/** Codes of calls whose money is gone; all others may not be made any more. */
const unpaid: ReadonlySet<string> = new Set(['insufficient_funds', 'ocs_unreachable'])
const causeOf = (code: string): number => (unpaid.has(code) ? cause.noCredit : cause.barred)

/** A live call as the API and its events show it. */
function describe(call: LiveCall): ActiveCall {
  const { callUuid, callerNumber, calledNumber, startedAt } = call.start
  const { setId, node, carrier } = call.place
  return {
    callUuid,
    state: call.display,
    direction: call.direction,
    callerNumber,
    calledNumber,
    startedAt,
    answeredAt: call.answeredAt,
    stampOffsetMs: call.stampOffsetMs,
    tenantId: tenantOfCall(call),
    isPaidByPlatform: isPaidByPlatform(call),
    customerId: call.account?.customerId ?? null,
    peers: { ...call.peers },
    setId,
    node,
    instance: call.instance,
    carrier,
    tags: call.tags,
    transfer: call.transfer,
  }
}

/** The history of a call, without its messages. */
export interface CallStory {
  readonly tenantId: number | null
  readonly isPaidByPlatform: boolean
  readonly startedAt: number
  /** Added to the time of a note or a message it gives milliseconds UTC. */
  readonly stampOffsetMs: number
  readonly legs: readonly string[]
  readonly notes: readonly Note[]
  readonly attempts: readonly Attempt[]
  /** Undefined: the call is live. */
  readonly record: CallRecord | undefined
}
