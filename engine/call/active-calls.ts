/** The live calls: listed, counted, hung up and drained from here. Empty when nothing is going on. */
import type { CallRecord } from '../../schema/call-record.ts'
import type { Charging, SavedEntry } from '../../schema/contracts/charging.ts'
import type { ActiveCall, CallState, CallTransfer, Unserved } from '../../schema/contracts/calls.ts'
import type { LiveCallEvent } from '../../schema/contracts/engine.ts'
import { CallCounts } from './call-counts.ts'
import { partiesOf, type CallParties } from './call-parties.ts'
import { describe } from './described-call.ts'
import type { Deadlines } from './deadlines.ts'
import { stamped } from './cdr/cdr.ts'
import { cause, type End } from './cdr/end-reason.ts'
import { legOf, partnerOf } from './call-machine/parties.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import { RecentCalls } from './cdr/recent-calls.ts'
import { UnstoredCalls } from './cdr/unstored-calls.ts'
import { forgetCall } from './call-machine/call.ts'
import {
  beginCall,
  beginInvitedCall,
  type NewCall,
  type ReceivedInvite,
} from './call-machine/new-call.ts'
import type { LiveCall, LiveLeg } from './call-machine/live.ts'
import { emptyWorld, nowhere, type Note, type Side } from './call-machine/state.ts'
import * as saving from './call-machine/saved-call.ts'
import type { DialogIds } from './signalling.ts'
import type { CallStory } from './trace/story.ts'

export interface ActiveCallsDeps {
  /** Of this process: calls and their records name it. */
  readonly nodeName: string
  /** Milliseconds by the steady clock (schema/clock.ts). */
  readonly now: () => number
  /** Milliseconds UTC by the clock of the machine. */
  readonly wallNow: () => number
  readonly deadlines: Deadlines
  readonly charging: Pick<Charging, 'alive'>
  /** Why calls are not taken for lack of a place to store them, or of the right to; absent: they are. */
  readonly whyClosed?: () => Unserved | undefined
  readonly onEvent: (event: CallEvent) => void
  /** How many calls that ended are remembered. */
  readonly recentCalls?: number
}

const transferEvents = {
  transferring: 'call.transferring',
  transferred: 'call.transferred',
  failed: 'call.transfer_failed',
} as const

/** Progress of a call, for its observers. */
export type CallEvent = { readonly tenantId: number | null } & (
  | { readonly type: LiveCallEvent; readonly call: ActiveCall }
  | { readonly type: 'call.ended'; readonly record: CallRecord }
)

/** The OCS is told which calls live this often; at most 10 s by the charging contract. */
const HEARTBEAT_MS = 5_000
const DRAIN_LOOK_MS = 500

/** The caller has no final response yet, and gets none from the machine before the next event. */
const ringing: ReadonlySet<LiveCall['phase']> = new Set(['dialing', 'forwarding', 'journalling'])

export class ActiveCalls {
  readonly #deps: ActiveCallsDeps
  /** Written by the machine of calls: all others use what this class shows of it. */
  readonly world: ReturnType<typeof emptyWorld>
  readonly #calls: ReturnType<typeof emptyWorld>['calls']
  #dispatch: (event: MachineEvent) => void = () => undefined
  readonly counts = new CallCounts()
  readonly #recent: RecentCalls
  readonly unstored = new UnstoredCalls()
  #isDraining = false
  #isBeating = false
  readonly #onEmpty: (() => void)[] = []

  constructor(deps: ActiveCallsDeps) {
    this.#deps = deps
    this.world = emptyWorld(deps.nodeName)
    this.#calls = this.world.calls
    this.#recent = new RecentCalls(deps.now, deps.recentCalls)
  }

  get size(): number {
    return this.#calls.size
  }

  /** No new call is taken any more. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Why a call that begins now cannot be journalled, or is another node's, as far as is known. */
  get unserved(): Unserved | undefined {
    return this.#deps.whyClosed?.()
  }

  /** How events reach the machine of calls. */
  attach(dispatch: (event: MachineEvent) => void): void {
    this.#dispatch = dispatch
  }

  begin(begun: Omit<NewCall, 'stampOffsetMs'>): LiveCall {
    const call = beginCall(this.world, { ...begun, stampOffsetMs: this.#stampOffsetMs })
    this.#scheduleHeartbeat()
    return call
  }

  /** A call that an INVITE begins, and the leg of its caller. */
  beginInvited(begun: Omit<NewCall, 'stampOffsetMs'>, invite: ReceivedInvite): LiveLeg {
    const { world } = this
    const leg = beginInvitedCall(world, { ...begun, stampOffsetMs: this.#stampOffsetMs }, invite)
    this.#scheduleHeartbeat()
    return leg
  }

  /** What is kept of a call that is stable; `sipOf` is what the SIP side has saved of a leg. */
  saved(
    callUuid: string,
    sipOf: (legId: string) => object | undefined,
  ): saving.SavedCall | undefined {
    const call = this.#calls.get(callUuid)
    return call && saving.saveCall(this.world, call, sipOf, this.#deps.now())
  }

  /** A call of the last run is there again. Its legs are connected by `resume`. */
  restore(saved: saving.SavedCall, { call, shiftMs }: SavedEntry): LiveCall {
    return saving.restoreCall(this.world, saved, call, shiftMs)
  }

  /** It goes on. False: the leg of another call that it was connected to is not there. */
  resume(saved: saving.SavedCall): boolean {
    const call = this.#calls.get(saved.callUuid)
    if (call) this.counts.move(call, nowhere, call.place)
    this.#scheduleHeartbeat()
    return saving.connectSaved(this.world, saved)
  }

  /** It does not go on. */
  forgetSaved(saved: saving.SavedCall): void {
    saving.forgetSaved(this.world, saved)
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
    this.#tell(transferEvents[state], call)
  }

  /** The leg of the dialog with this Call-ID, our tag and the peer's, in a call that is answered. Looks at every leg. */
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
   * Whose dialog that is. Before the answer only the Call-ID is known here of the dialog with a called party. Looks at
   * every leg.
   */
  partyIn({
    callId,
    localTag,
    remoteTag,
  }: Omit<DialogIds, 'media'>): { readonly call: LiveCall; readonly side: Side } | undefined {
    for (const leg of this.world.legs.values()) {
      const isThat = leg.callId === callId && leg.remoteTag === remoteTag
      const call = isThat ? this.#calls.get(leg.callUuid) : undefined
      if (call && (leg.localTag === localTag || leg.localTag === ''))
        return { call, side: leg.side }
    }
    for (const call of this.#calls.values())
      if (call.answeredAt === null && call.callIds.includes(callId)) return { call, side: 'callee' }
    return undefined
  }

  /**
   * The call that has this INVITE and no answer yet. Our own tag in such a dialog is known to the server
   * only, and adds nothing: the caller has made both of these. Looks at every call.
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

  /** One transfer at a time. */
  isTransferring(...legs: readonly LiveLeg[]): boolean {
    return legs.some(({ callUuid }) => this.call(callUuid)?.transfer?.state === 'transferring')
  }

  /** Whether a call with such a leg waits for its answer. Looks at every call. */
  isUnanswered(callId: string): boolean {
    for (const { callIds, answeredAt } of this.#calls.values())
      if (answeredAt === null && callIds.includes(callId)) return true
    return false
  }

  /** Counts unanswered calls that this extension forwards to the outside. Looks at every call. */
  countForwarding(uri: string): number {
    let count = 0
    for (const { forwardedBy, answeredAt } of this.#calls.values())
      if (forwardedBy === uri && answeredAt === null) count += 1
    return count
  }

  /** Whether a call with such a leg ended a moment ago. */
  hasEnded(callId: string): boolean {
    return this.#recent.hasLeg(callId)
  }

  /** The call is over, and its record stored; undefined: it was none. */
  finish(call: LiveCall, record?: CallRecord): void {
    if (record) {
      const { callIds: legs, notes, stampOffsetMs } = call
      this.#recent.add({ record, legs, notes, stampOffsetMs, parties: partiesOf(call) })
      this.#deps.onEvent({ type: 'call.ended', tenantId: record.tenantId, record })
    }
    this.counts.leave(call, call.place)
    this.unstored.forget(call)
    forgetCall(this.world, call.start.callUuid)
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

  /** Of a call that lives, or that ended a moment ago. */
  parties(callUuid: string): CallParties | undefined {
    const call = this.#calls.get(callUuid)
    return call ? partiesOf(call) : this.#recent.find(callUuid)?.parties
  }

  /** The same of the call that has this Call-ID. Looks at every call. */
  withLeg(callId: string): CallParties | undefined {
    for (const call of this.#calls.values())
      if (call.callIds.includes(callId)) return partiesOf(call)
    return this.#recent.withLeg(callId)?.parties
  }

  /** For the trace of such a call. */
  note(callUuid: string, note: Note): void {
    if (this.#calls.has(callUuid)) this.#dispatch({ type: 'noted', callUuid, note })
    else this.#recent.note(callUuid, note)
  }

  /** What is remembered of a call that lives, or that ended a moment ago. */
  story(callUuid: string): CallStory | undefined {
    const call = this.#calls.get(callUuid)
    if (call) {
      const { start, callIds: legs, notes, account, stampOffsetMs } = call
      const attempts = call.attempts.map((attempt) => stamped(attempt, call))
      const startedAt = start.startedAt + stampOffsetMs
      const tenantId = account?.tenantId ?? null
      return { tenantId, startedAt, stampOffsetMs, legs, notes, attempts, record: undefined }
    }
    const ended = this.#recent.find(callUuid)
    if (!ended) return undefined
    const { tenantId, startedAt, attempts } = ended.record
    return { ...ended, tenantId, startedAt, attempts }
  }

  /** Whether this live call was for this number: an INVITE that bears its mark is then a loop. */
  isCalling(callUuid: string, calledNumber: string): boolean {
    return this.#calls.get(callUuid)?.start.calledNumber === calledNumber
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
   * Refuses new calls at once, lets live ones continue until `deadlineMs` (by the steady clock), then
   * hangs them up. Resolves when every call is over and its record is stored.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true
    if (this.#calls.size === 0) return
    const emptied = new Promise<void>((resolve) => this.#onEmpty.push(resolve))
    const deadline = this.#deps.deadlines.at(deadlineMs, () =>
      this.#stopAll(cause.shutdown, 'shutdown'),
    )
    this.#lookWhileDraining()
    await emptied
    this.#deps.deadlines.cancel(deadline)
  }

  /** Records that cannot be stored are not waited for. */
  #lookWhileDraining(): void {
    if (this.#calls.size === 0) return
    const isUnstorable = this.unserved === 'storage_unavailable'
    if (isUnstorable && this.unstored.size === this.#calls.size) return this.#emptied()
    this.#deps.deadlines.at(this.#deps.now() + DRAIN_LOOK_MS, () => this.#lookWhileDraining())
  }

  #emptied(): void {
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  /** A SIP server is gone and with it every dialog: these legs are lost. */
  connectionLost(isLost: (callId: string) => boolean): void {
    const end = { kind: 'cut', by: 'system', cause: cause.connectionLost } as const
    for (const { callIds, start } of [...this.#calls.values()])
      if (callIds.some(isLost)) this.#stop(start.callUuid, { ...end, code: 'connection_lost' })
    for (const { id: legId, callId } of [...this.world.legs.values()])
      if (isLost(callId)) this.#dispatch({ type: 'lost', legId })
  }

  /** The call is admitted, with or without a payer. */
  started(call: LiveCall): void {
    this.#tell('call.started', call)
  }

  #stop(callUuid: string, end: End): void {
    this.#dispatch({ type: 'stop', callUuid, end })
  }

  /** What is shown of the call has changed. */
  displayed(call: LiveCall, before: CallState): void {
    if (before === 'DIALING' && call.display !== 'ACTIVE') this.#tell('call.ringing', call)
    else if (call.display === 'ACTIVE' && before !== 'HELD') this.#tell('call.answered', call)
  }

  #tell(type: LiveCallEvent, call: LiveCall): void {
    const tenantId = call.account?.tenantId ?? null
    this.#deps.onEvent({ type, tenantId, call: describe(call) })
  }

  #stopAll(q850: number, code: string): void {
    for (const callUuid of [...this.#calls.keys()])
      this.#stop(callUuid, { kind: 'cut', by: 'system', cause: q850, code })
  }

  /** Runs only while there are calls. */
  #scheduleHeartbeat(): void {
    if (this.#isBeating) return
    this.#isBeating = true
    this.#deps.deadlines.at(this.#deps.now() + HEARTBEAT_MS, () => {
      this.#isBeating = false
      this.#beat()
    })
  }

  #beat(): void {
    if (this.#calls.size === 0) return
    const alive: string[] = []
    for (const [callUuid, call] of this.#calls)
      if (call.answeredAt !== null && !call.end) alive.push(callUuid)
    if (alive.length > 0) this.#reportAlive(alive)
    this.#scheduleHeartbeat()
  }

  #reportAlive(callUuids: readonly string[]): void {
    for (const { callUuid, code } of this.#deps.charging.alive(callUuids, this.#deps.now()))
      this.#stop(callUuid, { kind: 'cut', by: 'system', cause: cause.barred, code })
  }
}
