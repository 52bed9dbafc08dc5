/**
 * Performs the commands of the call machine and returns events to it. The only place where live calls
 * meet the SIP side, the OCS, routing, the dispatcher and the clock.
 */
import type { Charging, Quality, SavedEntry } from '../../schema/contracts/charging.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { ActiveCalls } from './active-calls.ts'
import { callUuidOf } from './call-machine/leg.ts'
import type { LiveCall } from './call-machine/state.ts'
import { handle } from './call-machine/machine.ts'
import type {
  Command,
  MachineEvent,
  SipServerState,
  Surroundings,
  Timer,
  Timing,
} from './call-machine/protocol.ts'
import { begunCall, callRecord, openCall } from './cdr/cdr.ts'
import { type End, fault } from './cdr/end-reason.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import { inviteFor } from './dialing/outgoing-invite.ts'
import { type RoomDeps, takeRoom } from './dialing/room.ts'
import { withheld, type WithheldDeps } from './dialing/withheld.ts'
import type { LegGate, Legs } from './legs.ts'
import { type Restored, SavedCalls, type SavedCallsDeps } from './saved-calls.ts'
import type { Headers, LegCommand, LegEventData } from './signalling.ts'
import type { HeaderFilter } from './sip-headers.ts'
import { LegSignalling } from './user-agent/leg-signalling.ts'
import type { ReceivedRequest } from './user-agent/received-request.ts'
import type { UserAgent } from './user-agent/user-agent.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'

export interface CallRunnerDeps extends WithheldDeps, Timing {
  readonly client: UserAgent
  readonly calls: ActiveCalls
  readonly charging: Charging
  readonly deadlines: Deadlines
  readonly filter: HeaderFilter
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
  readonly routing: RoomDeps['routing']
  readonly dispatcher: RoomDeps['dispatcher'] & Pick<Dispatcher, 'reportOutcome'>
  /** What a live INVITE told about a carrier's gateway (SPECIFICATION.md §10.4). */
  readonly onGatewayOutcome: (gatewayId: number, outcome: 'answered' | 'failed') => void
  /** Another node of the installation says nothing to an INVITE. */
  readonly onNodeSilent?: ((name: string) => void) | undefined
  /** What the machine asks of routing, and what a phone asks for: REFER, 3xx, an answered source. */
  readonly requests: CallRequests
  readonly credentialsOf: SavedCallsDeps['credentialsOf']
  /** Of a BYE from the peer of a leg, or of its answer to ours. */
  readonly onByeHeaders?: (callUuid: string, legId: string, headers: Headers) => void
  /** Of the media of a call that has ended; absent, or undefined: nothing can tell. */
  readonly qualityOf?: ((call: LiveCall) => Quality | undefined) | undefined
  /** Absent: media passes by. */
  readonly mediaGate?: LegGate | undefined
}

type CommandOf<T extends Command['type']> = Extract<Command, { readonly type: T }>

/** Commands that begin or redirect calls. */
export type CallRequest = CommandOf<'decideForward' | 'forwardOut' | 'connectSource' | 'refer'>
export type CallRequests = (request: CallRequest) => void

/** How soon an attempt that waits for a media relay is looked at again. */
const HELD_MS = 500

export class CallRunner {
  readonly #deps: CallRunnerDeps
  readonly #signalling: Legs
  readonly #saved: SavedCalls
  readonly #server: SipServerState
  readonly #timers: CallTimers
  readonly #events: MachineEvent[] = []
  /** Calls that the journal knows, and that are not over. */
  readonly #begun = new Set<string>()
  /** Calls whose record is being stored. */
  readonly #storing = new Set<string>()
  #isRunning = false

  constructor(deps: CallRunnerDeps) {
    this.#deps = deps
    const { client } = deps
    // Looked at when it is needed: each of these asks every connection.
    this.#server = {
      get lagMs() {
        return client.lagMs()
      },
      get hearsTrying() {
        return client.hearsTrying
      },
      get isElsewhere() {
        return client.isElsewhere
      },
    }
    this.#timers = new CallTimers(deps.deadlines, (timer) => this.#timeUp(timer))
    const after = (act: () => void, delayMs: number): (() => void) => {
      const deadline = deps.deadlines.at(deps.now() + delayMs, act)
      return () => deps.deadlines.cancel(deadline)
    }
    const onByeHeaders = (legId: string, headers: Headers): void =>
      deps.onByeHeaders?.(callUuidOf(legId), legId, headers)
    const legs = (emit: (event: LegEventData) => void): Legs =>
      new LegSignalling(client, emit, after, onByeHeaders)
    const dispatch = (event: MachineEvent): void => this.dispatch(event)
    const onFault = (legId: string, error: unknown): void => {
      const callUuid = callUuidOf(legId)
      deps.log('error', 'a call failed', { callUuid, error })
      dispatch({ type: 'stop', callUuid, end: fault })
    }
    this.#signalling = deps.mediaGate?.join(legs, dispatch, onFault) ?? legs(dispatch)
    this.#saved = new SavedCalls({ ...deps, signalling: this.#signalling, dispatch })
    deps.calls.attach(dispatch)
  }

  #timeUp(timer: Timer): void {
    // An INVITE that has not left cannot be answered: the relay is slow, not the destination.
    if (timer.kind === 'attempt' && this.#signalling.isHeld?.(timer.legId) === true)
      return this.#timers.start(timer, this.#deps.now() + HELD_MS)
    return this.dispatch({ type: 'timer', timer })
  }

  /** Before the first packet: calls of the last run go on. */
  restore(entries: readonly SavedEntry[]): Restored {
    return this.#saved.restore(entries)
  }

  /** Another process goes on with all calls next. Returns those with which it cannot. */
  saveAll(): readonly string[] {
    return this.#saved.saveAll()
  }

  /** An INVITE has come, for a call that has begun. */
  receive(legId: string, request: ReceivedRequest, isOtherNode?: boolean): void {
    this.#signalling.receive(legId, request, isOtherNode)
  }

  /** Handles an event and its immediate consequences. */
  dispatch(event: MachineEvent): void {
    this.#events.push(event)
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      for (let next = this.#events.shift(); next; next = this.#events.shift()) this.#step(next)
    } finally {
      this.#isRunning = false
    }
  }

  /** A command that fails keeps none of the others from being performed: the record is one of them. */
  #step(event: MachineEvent): void {
    const { calls } = this.#deps
    let commands: readonly Command[] = []
    try {
      commands = handle(calls.world, event, this.#surroundings())
    } catch (error) {
      this.#failed(event, error)
    }
    if (event.type === 'sent') calls.sent(event.legId, event.callId)
    const stores = commands.filter(isStore)
    const isAnswered = stores.some(({ callUuid }) => calls.isAnswered(callUuid))
    if (isAnswered) this.#end(event, commands, stores.length)
    else {
      this.#performAll(event, commands)
      if (event.type === 'bye') this.#signalling.answerBye(event.legId)
    }
    this.#saved.noteChange(event)
  }

  #performAll(event: MachineEvent, commands: readonly Command[]): void {
    for (const command of commands)
      try {
        this.#perform(command)
      } catch (error) {
        this.#failed(event, error)
      }
  }

  /**
   * Nothing of the end of an answered call leaves before the end is in the journal: a crash in between would leave
   * a call that goes on, and costs, without its parties. `waiting` ends have to be there.
   */
  #end(event: MachineEvent, commands: readonly Command[], waiting: number): void {
    const held: Command[] = []
    let missing = waiting
    const safe = (): void => {
      missing -= 1
      if (missing > 0) return
      this.#performAll(event, held)
      if (event.type === 'bye') this.#signalling.answerBye(event.legId)
    }
    for (const command of commands)
      if (command.type === 'store') void this.#store(command.callUuid, command.end, safe)
      else if (isForPeer(command)) held.push(command)
      else this.#performAll(event, [command])
  }

  /** A bug ends one call, not the process. */
  #failed(event: MachineEvent, error: unknown): void {
    const { calls, log } = this.#deps
    const callUuid = callUuidIn(event)
    if (event.type === 'request') {
      const { legId, requestId } = event
      log('error', 'a request in a call failed', { callUuid, method: event.method, error })
      this.#signalling.perform({ type: 'answerRequest', legId, requestId, status: 500 })
      return
    }
    log('error', 'a call failed', { callUuid, event: event.type, error })
    const call = callUuid === undefined ? undefined : calls.call(callUuid)
    if (call === undefined) return
    const { callUuid: failed } = call.start
    // The step that ended the call may have failed before it asked for the record.
    if (call.phase === 'over') void this.#store(failed, call.end ?? fault)
    else if (call.end === undefined)
      this.#events.push({ type: 'stop', callUuid: failed, end: fault })
  }

  #surroundings(): Surroundings {
    const { now, filter } = this.#deps
    return { now: now(), server: this.#server, filter, timing: this.#deps }
  }

  #perform(command: Command): void {
    switch (command.type) {
      case 'invite':
        return this.#invite(command)
      case 'forgetLeg':
        return this.#signalling.forget(command.legId)
      case 'startTimer':
        return this.#timers.start(command.timer, command.at)
      case 'stopTimer':
        return this.#timers.stop(command.timer)
      case 'decideForward':
      case 'forwardOut':
      case 'connectSource':
      case 'refer':
        return this.#deps.requests(command)
      case 'reportHealth':
        return this.#reportHealth(command)
      case 'probe':
        return this.#probe(command)
      case 'nodeSilent':
        return this.#deps.onNodeSilent?.(command.name)
      case 'journal':
      case 'extend':
      case 'store':
        return this.#charge(command)
      case 'takeRoom': {
        const { callUuid, destination } = command
        const { isEmergency = false } = this.#deps.calls.call(callUuid)?.dialing ?? {}
        return takeRoom(destination, isEmergency, this.#deps, (isTaken) =>
          this.dispatch({ type: 'roomTaken', callUuid, isTaken }),
        )
      }
      case 'count':
      case 'calleeLeft':
      case 'display':
      case 'transfer':
        return this.#tellCalls(command)
      default:
        return this.#signalling.perform(command)
    }
  }

  #tellCalls(command: CommandOf<'count' | 'calleeLeft' | 'display' | 'transfer'>): void {
    const { calls } = this.#deps
    const call = calls.call(command.callUuid)
    if (call === undefined) return undefined
    switch (command.type) {
      case 'count':
        return calls.counts.move(call, command.before, command.place)
      case 'calleeLeft':
        return calls.counts.calleeLeft(call)
      case 'display':
        return calls.displayed(call, command.before)
      case 'transfer':
      default:
        return calls.transferred(call, command.transfer)
    }
  }

  #invite(command: CommandOf<'invite'>): void {
    const { filter } = this.#deps
    const { legId, candidate, invite, describes, isBranch, near } = command
    const outgoing = inviteFor(candidate, invite, filter, isBranch)
    const refusal = withheld(candidate, outgoing, invite, this.#deps)
    if (refusal) return this.dispatch({ type: 'withheld', legId, ...refusal })
    this.#begin(callUuidOf(legId))
    const { uri, nextHop, headers, credentials } = outgoing
    const { body } = invite
    const about = { describes, callee: candidate }
    const sent = { uri, nextHop, headers, body, credentials }
    return this.#signalling.invite(legId, sent, near, about)
  }

  /** From its first INVITE on, a crash gives the call a record. */
  #begin(callUuid: string): void {
    const call = this.#deps.calls.call(callUuid)
    if (call === undefined || call.answeredAt !== null || this.#begun.has(callUuid)) return
    this.#begun.add(callUuid)
    this.#deps.charging.begun(begunCall(call))
  }

  #reportHealth({ destination, health }: CommandOf<'reportHealth'>): void {
    if (destination.kind === 'node') this.#deps.dispatcher.reportOutcome(destination.nodeId, health)
    else if (destination.kind === 'gateway')
      this.#deps.onGatewayOutcome(destination.gatewayId, health)
  }

  #probe({ legId, uri }: CommandOf<'probe'>): void {
    this.#deps.client.sendOptions(uri, (answer) => {
      const isThere = 'status' in answer && answer.status < 500
      this.dispatch({ type: 'probed', legId, isThere })
    })
  }

  #charge(command: CommandOf<'journal' | 'extend' | 'store'>): void {
    const { charging, calls, now } = this.#deps
    const { callUuid } = command
    const call = calls.call(callUuid)
    if (call === undefined) return
    const notExtended = (code: string): void =>
      this.dispatch({ type: 'notExtended', callUuid, code })
    switch (command.type) {
      case 'journal':
        // Before the 200 to the caller: from here on no crash loses the call.
        void charging
          .answered(openCall(call, now()), this.#saved.textOf(callUuid))
          .then((isStored) => this.dispatch({ type: 'journalled', callUuid, isStored }))
        return
      case 'extend':
        charging.extend(callUuid, command.grantedSeconds).then(
          (extension) => {
            if (extension.kind === 'denied') return notExtended(extension.code)
            const { grantedSeconds } = extension
            return this.dispatch({ type: 'extended', callUuid, grantedSeconds })
          },
          () => notExtended('ocs_unreachable'),
        )
        return
      case 'store':
      default:
        void this.#store(callUuid, command.end)
    }
  }

  /** Resolves when the record is stored and the call forgotten. `safe` is called once, when no crash can lose the end. */
  async #store(callUuid: string, end: End, safe = (): void => undefined): Promise<void> {
    const { calls, charging, now, log } = this.#deps
    const call = calls.call(callUuid)
    if (call === undefined || this.#storing.has(callUuid)) return safe()
    this.#storing.add(callUuid)
    this.#begun.delete(callUuid)
    const record = callRecord(call, end, now())
    // A caller that calls again now must not find the limits taken by a call that waits for the disk.
    calls.ended(call)
    if (!calls.unstored.mayWait(call, record.denialCode)) {
      this.#storing.delete(callUuid)
      calls.finish(call)
      return safe()
    }
    const quality = this.#deps.qualityOf?.(call)
    try {
      await charging.report(record, safe, quality)
    } catch (error) {
      log('error', 'a call record could not be stored', { record, error })
    }
    this.#storing.delete(callUuid)
    calls.finish(call, quality === undefined ? record : { ...record, quality: await quality })
    log('info', 'call', {
      callUuid: record.callUuid,
      direction: record.direction,
      caller: record.callerNumber,
      called: record.calledNumber,
      disposition: record.disposition,
      sipCode: record.sipCode,
      hangupCause: record.hangupCause,
      hangupBy: record.hangupBy,
      billsec: record.billsec,
      node: record.node,
      instance: record.instance,
      carrier: record.carrier,
      source: record.sourceAddress,
      denialCode: record.denialCode,
      denialText: record.denialText,
      attempts: record.attempts.length,
    })
  }
}

const isStore = (command: Command): command is CommandOf<'store'> => command.type === 'store'

/** What the peer of a leg gets to hear, and what follows that. */
const isForPeer = (command: Command): command is LegCommand | CommandOf<'forgetLeg'> =>
  'legId' in command && !(command.type in notForPeer)

const notForPeer = { invite: true, probe: true, decideForward: true, refer: true }

function callUuidIn(event: MachineEvent): string | undefined {
  if ('callUuid' in event) return event.callUuid
  if ('legId' in event) return callUuidOf(event.legId)
  return undefined
}

/** The timers that the machine of calls has asked for. */
export class CallTimers {
  readonly #deadlines: Deadlines
  readonly #onTimer: (timer: Timer) => void
  readonly #timers: Readonly<Record<Timer['kind'], Map<string, Deadline>>> = {
    attempt: new Map(),
    ring: new Map(),
    grant: new Map(),
    'grant-end': new Map(),
    source: new Map(),
    exchange: new Map(),
    retry: new Map(),
    parting: new Map(),
  }

  constructor(deadlines: Deadlines, onTimer: (timer: Timer) => void) {
    this.#deadlines = deadlines
    this.#onTimer = onTimer
  }

  /** Instead of the same timer, if it runs. `at` by the steady clock. */
  start(timer: Timer, at: number): void {
    const [timers, id] = [this.#timers[timer.kind], idOf(timer)]
    this.#deadlines.cancel(timers.get(id))
    const deadline = this.#deadlines.at(at, () => {
      timers.delete(id)
      this.#onTimer(timer)
    })
    timers.set(id, deadline)
  }

  stop(timer: Timer): void {
    const [timers, id] = [this.#timers[timer.kind], idOf(timer)]
    this.#deadlines.cancel(timers.get(id))
    timers.delete(id)
  }
}

function idOf(timer: Timer): string {
  switch (timer.kind) {
    case 'exchange':
      return timer.exchangeId
    case 'retry':
      return `${timer.legId} ${timer.retryId}`
    case 'attempt':
    case 'parting':
      return timer.legId
    case 'ring':
    case 'source':
    case 'grant':
    case 'grant-end':
    default:
      return timer.callUuid
  }
}
