/**
 * Performs the commands of the call machine and returns events to it. The only place where live
 * calls meet the SIP side, the OCS, routing, the dispatcher and the clock.
 */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { Quality, SavedEntry } from '../../schema/contracts/charging.ts'
import type { CallPorts } from './call-deps.ts'
import { callUuidOf } from './call-machine/leg.ts'
import type { HolderRun, LiveCall, Note } from './call-machine/state.ts'
import { handle } from './call-machine/machine.ts'
import type {
  CallCommand,
  MachineEvent,
  SipServerState,
  MachineInputs,
  Timer,
  Timing,
} from './call-machine/protocol.ts'
import { senderOf } from '../../schema/rules/gateways.ts'
import { dialledCall, callRecord, openCall } from './cdr/cdr.ts'
import { type End, fault } from './cdr/end-reason.ts'
import type { CallHooks } from './hooks/call-hooks.ts'
import { sentNumbers } from './dialing/sent-numbers.ts'
import {
  type DialFacts,
  inviteFor,
  withheld,
  withheldByVersion,
} from './dialing/outgoing-invite.ts'
import type { IncomingInvite } from './inbound/incoming-invite.ts'
import type { LimitedDestination } from './inbound/route.ts'
import { refusedIdentity } from './identity/caller-identities.ts'
import type { IdentityDecision } from './identity/decide.ts'
import type { LegGate, Legs } from './legs.ts'
import type { Headers, InviteToSend, LegCommand, LegEventData } from './signalling.ts'
import type { HeaderFilter } from './sip-headers.ts'
import { LegSignalling } from './user-agent/leg-signalling.ts'
import { type ReceivedRequest } from './user-agent/received-request.ts'
import type { CallSigner, SignedInvite } from './stir/call-signer.ts'
import type { GatewayCandidate, Routing } from '../routing/routing.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import { CallTimers } from './call-timers.ts'
import type { LossNotices } from './loss-notices.ts'
import { SavedCalls, type Restored, type SavedCallsDeps } from './saved-calls.ts'

/** The parts of the engine that hear of live calls, or decide about their course. */
export interface CallWatchers extends Timing {
  /**
   * Reports the health of a carrier's gateway, as a live INVITE has shown it (SPECIFICATION.md
   * §10.4).
   */
  readonly onGatewayOutcome: (gatewayId: number, outcome: 'answered' | 'failed') => void
  /** A carrier has answered a call that leaves too little. Absent: nobody wants to know. */
  readonly onLoss?: LossNotices['answered'] | undefined
  /** Another instance of the installation does not respond to an INVITE. */
  readonly onInstanceSilent?: ((name: string) => void) | undefined
  /**
   * Whether this run of another instance is over, as far as is known. Absent: there is no other
   * instance.
   */
  readonly isHolderLost?: ((holder: HolderRun) => boolean) | undefined
  /** Takes the headers of a BYE from the peer of a leg, or of its answer to ours. */
  readonly onByeHeaders?: (callUuid: string, legId: string, headers: Headers) => void
  /** Returns the media quality of an ended call. Undefined: nothing has measured it. */
  readonly qualityOf?: ((call: LiveCall) => Quality | undefined) | undefined
  /** Follows the end of a call whose record is to be stored. */
  readonly onEnded?: (record: CallRecord, quality: Quality | undefined) => void
  /** Absent: media passes by. */
  readonly mediaGate?: LegGate | undefined
}

export interface CallRunnerDeps
  extends
    CallWatchers,
    Pick<
      CallPorts,
      | ('client' | 'calls' | 'charging' | 'deadlines' | 'gatewayBehind')
      | ('identities' | 'now' | 'log')
    > {
  readonly filter: HeaderFilter
  readonly signer: Pick<CallSigner, 'sign'>
  readonly hooks?: Pick<CallHooks, 'asksAttempts' | 'answered' | 'ended' | 'recorded'> | undefined
  readonly routing: Pick<
    Routing,
    ('admitCarrierCall' | 'admitAgentCall' | 'boughtPrice') | ('noteAttempt' | 'noteTalk')
  >
  readonly dispatcher: Pick<Dispatcher, 'admitCall' | 'reportOutcome'>
  /** Performs commands that need routing: a REFER, a 3xx, an answered source of click-to-call. */
  readonly requests: (request: CallRequest) => void
  readonly credentialsOf: SavedCallsDeps['credentialsOf']
}

type CommandOf<T extends CallCommand['type']> = Extract<CallCommand, { readonly type: T }>

/** Commands that begin or redirect calls. */
export type CallRequest = CommandOf<
  | ('decideForward' | 'decideRedirect' | 'findPhones' | 'forwardOut' | 'askAttempt')
  | ('connectSource' | 'refer')
>

/** An attempt that waits for a media relay is checked again after this time. */
const HELD_POLL_MS = 500

export class CallRunner {
  readonly #deps: CallRunnerDeps
  readonly #signalling: Legs
  readonly #saved: SavedCalls
  readonly #server: SipServerState
  readonly #timers: CallTimers
  readonly #events: MachineEvent[] = []
  /** Calls that the journal knows, and that are not over. */
  readonly #inJournal = new Set<string>()
  /** Legs whose INVITE waits for its signature. */
  readonly #signing = new Set<string>()
  /** Calls whose record is being stored. */
  readonly #storing = new Set<string>()
  #isRunning = false

  constructor(deps: CallRunnerDeps) {
    this.#deps = deps
    const { client } = deps
    // Getters, because each of these asks every connection.
    this.#server = {
      get lagMs() {
        return client.lagMs()
      },
      get reportsTrying() {
        return client.reportsTrying
      },
      get isRemote() {
        return client.isRemote
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
    // An INVITE that was not sent cannot be answered: the relay, or the signing service, is slow.
    if (timer.kind === 'attempt' && this.#isHeld(timer.legId))
      return this.#timers.start(timer, this.#deps.now() + HELD_POLL_MS)
    return this.dispatch({ type: 'timer', timer })
  }

  #isHeld(legId: string): boolean {
    return this.#signing.has(legId) || this.#signalling.isHeld?.(legId) === true
  }

  /** Continues the calls of the last run. To be called before the first packet. */
  restore(entries: readonly SavedEntry[]): Restored {
    return this.#saved.restore(entries)
  }

  /** Another process goes on with all calls next. Returns those with which it cannot. */
  saveAll(): readonly string[] {
    return this.#saved.saveAll()
  }

  /** Watches the INVITE of a call that has begun. */
  receive(legId: string, request: ReceivedRequest, isOtherInstance?: boolean): void {
    this.#signalling.receive(legId, request, isOtherInstance)
  }

  /** Handles an event and its immediate consequences. */
  dispatch(event: MachineEvent): void {
    if (this.#isRunning) return void this.#events.push(event)
    this.#isRunning = true
    try {
      this.#step(event)
      for (let next = this.#events.shift(); next; next = this.#events.shift()) this.#step(next)
    } finally {
      this.#isRunning = false
    }
  }

  /** If one command fails, the others are still performed: one of them stores the record. */
  #step(event: MachineEvent): void {
    const { calls } = this.#deps
    let commands: readonly CallCommand[] = []
    try {
      commands = handle(calls.world, event, this.#inputs())
    } catch (error) {
      this.#failed(event, error)
    }
    if (event.type === 'sent') calls.sent(event.legId, event.callId)
    let stores = 0
    let isAnswered = false
    for (const command of commands)
      if (command.type === 'store') {
        stores += 1
        isAnswered ||= calls.isAnswered(command.callUuid)
      }
    if (isAnswered) this.#end(event, commands, stores)
    else {
      this.#performAll(event, commands)
      if (event.type === 'bye') this.#signalling.answerBye(event.legId)
    }
    this.#saved.noteChange(event)
  }

  #performAll(event: MachineEvent, commands: readonly CallCommand[]): void {
    for (const command of commands)
      try {
        this.#perform(command)
      } catch (error) {
        this.#failed(event, error)
      }
  }

  /**
   * Sends nothing about the end of an answered call before the end is in the journal. After a crash
   * in between the call would continue, and be charged, without its parties. `waiting`: how many
   * ends have to be in the journal.
   */
  #end(event: MachineEvent, commands: readonly CallCommand[], waiting: number): void {
    const postponed: CallCommand[] = []
    let missing = waiting
    const safe = (): void => {
      missing -= 1
      if (missing > 0) return
      this.#performAll(event, postponed)
      if (event.type === 'bye') this.#signalling.answerBye(event.legId)
    }
    for (const command of commands)
      if (command.type === 'store') void this.#store(command.callUuid, command.end, safe)
      else if (isForPeer(command)) postponed.push(command)
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

  /** Asked about what the operator's application answers. */
  readonly #leadsToGateway = (uri: string): boolean =>
    this.#deps.gatewayBehind(uri, senderOf(null)) !== undefined

  #inputs(): MachineInputs {
    const { now, filter, hooks } = this.#deps
    const asksAttempts = hooks?.asksAttempts === true
    const leadsToGateway = this.#leadsToGateway
    const server = this.#server
    return { now: now(), server, filter, timing: this.#deps, asksAttempts, leadsToGateway }
  }

  #perform(command: CallCommand): void {
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
      case 'decideRedirect':
      case 'findPhones':
      case 'forwardOut':
      case 'askAttempt':
      case 'connectSource':
      case 'refer':
        return this.#deps.requests(command)
      case 'checkHolder': {
        const isLost = this.#deps.isHolderLost?.(command.holder) === true
        return isLost ? this.dispatch({ type: 'holderLost', legId: command.legId }) : undefined
      }
      case 'reportHealth':
        return this.#reportHealth(command)
      case 'measure': {
        const { destination, isAnswered, delayMs } = command
        return this.#deps.routing.noteAttempt(destination, isAnswered, delayMs)
      }
      case 'probe':
        return this.#probe(command)
      case 'instanceSilent':
        return this.#deps.onInstanceSilent?.(command.name)
      case 'journal':
      case 'extend':
      case 'store':
        return this.#charge(command)
      case 'takeRoom':
        return this.#takeRoom(command)
      case 'goesOn':
      case 'count':
      case 'calleeLeft':
      case 'display':
      case 'transfer':
        return this.#updateCalls(command)
      default:
        return this.#signalling.perform(command)
    }
  }

  #updateCalls(
    command: CommandOf<'goesOn' | 'count' | 'calleeLeft' | 'display' | 'transfer'>,
  ): void {
    const { calls } = this.#deps
    const call = calls.call(command.callUuid)
    if (call === undefined) return undefined
    switch (command.type) {
      case 'goesOn':
        return calls.goesOn(call)
      case 'count':
        return calls.counts.move(call, command.before, command.place)
      case 'calleeLeft':
        return calls.counts.calleeLeft(call)
      case 'display':
        if (command.before !== 'HELD' && call.display === 'ACTIVE') this.#deps.hooks?.answered(call)
        return calls.displayed(call, command.before)
      case 'transfer':
      default:
        return calls.transferred(call, command.transfer)
    }
  }

  #invite(command: CommandOf<'invite'>): void {
    const { filter } = this.#deps
    const { legId, candidate, sdpOwner, isBranch, near } = command
    const decided = this.#decide(command)
    if (decided?.kind === 'refused')
      return this.dispatch({
        type: 'withheld',
        legId,
        why: decided.why,
        end: refusedIdentity(decided.why),
      })
    const identity = decided?.identity
    const invite = identity ? { ...command.invite, identity } : command.invite
    if (identity) this.dispatch({ type: 'presented', legId, identity })
    const outgoing = inviteFor(candidate, invite, filter, isBranch, this.#factsOf(legId))
    const refusal =
      withheld(candidate, outgoing, invite, this.#deps.gatewayBehind) ??
      this.#withheldByVersion(command)
    if (refusal) return this.dispatch({ type: 'withheld', legId, ...refusal })
    this.#begin(callUuidOf(legId))
    this.#noteRules(command, outgoing.ruledBy)
    const { uri, nextHop, headers, credentials } = outgoing
    this.dispatch({ type: 'numbered', legId, numbers: sentNumbers(uri, headers['From'] ?? '') })
    const { body } = invite
    const facts = { sdpOwner, callee: candidate }
    const sent = { uri, nextHop, headers, body, credentials }
    const send = (each: InviteToSend): void => this.#signalling.invite(legId, each, near, facts)
    if (candidate.kind !== 'gateway') return send(sent)
    return candidate.isSigned === true && candidate.redirected?.identity === undefined
      ? this.#signed(legId, candidate, invite, sent, send)
      : this.#leaveUnsigned(callUuidOf(legId), () => send(sent))
  }

  /** Each INVITE has a signature of its own, also the one that answers a challenge. */
  #signed(
    legId: string,
    { carrierName: carrier }: GatewayCandidate,
    invite: IncomingInvite,
    unsigned: InviteToSend,
    send: (invite: InviteToSend) => void,
  ): void {
    const { calls, now, signer } = this.#deps
    const callUuid = callUuidOf(legId)
    const call = calls.call(callUuid)
    if (call === undefined) return undefined
    const sign = () => signer.sign(call, invite, unsigned)
    const take = ({ headers, attestation, unsigned: why }: SignedInvite): void => {
      const said = { carrier, attestation: attestation ?? null, why: why ?? null }
      const note: Note = { at: now(), what: 'signed', ...said }
      this.dispatch({ type: 'signed', callUuid, attestation, note })
      return send({ ...unsigned, headers, renewed })
    }
    const renewed = (): Headers | Promise<Headers> => {
      const again = sign()
      return again instanceof Promise ? again.then(signatureIn) : again.signature
    }
    const signed = sign()
    if (!(signed instanceof Promise)) return take(signed)
    this.#signing.add(legId)
    return void signed.then((each) => {
      this.#signing.delete(legId)
      if (calls.leg(legId)?.state === 'calling') return take(each)
      // The attempt was given up in the meantime.
      return this.dispatch({ type: 'failed', legId, reason: 'given up' })
    })
  }

  /** This carrier does not hear what we have said to one that was tried before. */
  #leaveUnsigned(callUuid: string, send: () => void): void {
    const proof = this.#deps.calls.call(callUuid)?.proof
    if (proof?.attestation !== undefined)
      this.dispatch({ type: 'signed', callUuid, attestation: undefined })
    return send()
  }

  /** Undefined: no rules say which number is shown. */
  #decide({ legId, candidate, invite }: CommandOf<'invite'>): IdentityDecision | undefined {
    const { identities, calls } = this.#deps
    if (identities === undefined) return undefined
    const { account = null, dialing } = calls.call(callUuidOf(legId)) ?? {}
    const isEmergency = dialing?.isEmergency === true
    return identities.decide(invite, candidate, { account, isEmergency })
  }

  #factsOf(legId: string): DialFacts | undefined {
    const call = this.#deps.calls.call(callUuidOf(legId))
    if (call === undefined) return undefined
    const { callerNumber: caller, calledNumber: called } = call.start
    return { caller, called, customerId: call.account?.customerId ?? null, tags: call.tags }
  }

  #noteRules({ legId, candidate }: CommandOf<'invite'>, rules: readonly number[] = []): void {
    if (candidate.kind !== 'gateway' || rules.length === 0) return
    const { carrierName: carrier } = candidate
    const at = this.#deps.now()
    const note = { at, what: 'ruled', direction: 'out', carrier, rules } as const
    this.dispatch({ type: 'hooked', callUuid: callUuidOf(legId), notes: [note] })
  }

  /** A gate of media decides by itself. */
  #withheldByVersion({ legId, candidate, invite }: CommandOf<'invite'>) {
    if (this.#deps.mediaGate) return undefined
    const isEmergency = this.#deps.calls.call(callUuidOf(legId))?.isEmergency === true
    return isEmergency ? undefined : withheldByVersion(candidate, invite)
  }

  /** Writes the call to the journal at its first INVITE: after a crash it has a record. */
  #begin(callUuid: string): void {
    const call = this.#deps.calls.call(callUuid)
    if (call === undefined || call.answeredAt !== null || this.#inJournal.has(callUuid)) return
    this.#inJournal.add(callUuid)
    this.#deps.charging.begun(dialledCall(call))
  }

  /**
   * The call counts at its destination from the turn of the event loop in which `roomTaken` is
   * dispatched.
   */
  #takeRoom({ callUuid, destination }: CommandOf<'takeRoom'>): void {
    const { isEmergency = false } = this.#deps.calls.call(callUuid)?.dialing ?? {}
    const report = (isTaken: boolean): void =>
      this.dispatch({ type: 'roomTaken', callUuid, isTaken })
    const taken = this.#requestRoom(destination, isEmergency)
    if (typeof taken === 'boolean') report(taken)
    else void taken.then(report)
  }

  /** A promise where other instances of the installation have to be asked. */
  #requestRoom(destination: LimitedDestination, isEmergency: boolean): boolean | Promise<boolean> {
    const { routing, dispatcher } = this.#deps
    switch (destination.kind) {
      case 'node':
        return dispatcher.admitCall(destination.nodeId)
      case 'agent':
        return routing.admitAgentCall(destination.agentId)
      case 'gateway':
      default:
        return routing.admitCarrierCall(destination.carrierId, isEmergency)
    }
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
    const { charging, calls } = this.#deps
    const { callUuid } = command
    const call = calls.call(callUuid)
    if (call === undefined) return
    const notExtended = (code: string): void =>
      this.dispatch({ type: 'notExtended', callUuid, code })
    switch (command.type) {
      case 'journal':
        return this.#journal(call)
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

  /** Before the 200 to the caller: from here on no crash loses the call. */
  #journal(call: LiveCall): void {
    const { charging, routing, now } = this.#deps
    const { callUuid } = call.start
    const answeredAt = now()
    const { current } = call.dialing ?? {}
    const bought =
      current?.kind === 'gateway'
        ? routing.boughtPrice(current.bought, answeredAt + call.stampOffsetMs)
        : undefined
    if (current?.kind === 'gateway' && current.profit !== undefined) {
      const { customerId } = call.account ?? { customerId: null }
      const { calledNumber } = call.start
      this.#deps.onLoss?.({ callUuid, calledNumber, customerId }, current)
    }
    void charging
      .answered(openCall(call, answeredAt, bought), this.#saved.atAnswer(callUuid))
      .then((isStored) => this.dispatch({ type: 'journalled', callUuid, isStored, bought }))
  }

  /** The carrier of an answered call is measured where its route has floors of quality. */
  #noteTalk({ destination }: LiveCall, { answeredAt, endedAt }: CallRecord): void {
    if (answeredAt !== null && destination?.kind === 'gateway')
      this.#deps.routing.noteTalk(destination, endedAt - answeredAt)
  }

  /**
   * Resolves when the record is stored and the call forgotten. `safe` is called once, when no crash
   * can lose the end.
   */
  async #store(callUuid: string, end: End, safe = (): void => undefined): Promise<void> {
    const { calls, charging, now, log } = this.#deps
    const call = calls.call(callUuid)
    if (call === undefined || this.#storing.has(callUuid)) return safe()
    this.#storing.add(callUuid)
    this.#inJournal.delete(callUuid)
    this.#saved.forget(callUuid)
    const record = callRecord(call, end, now())
    this.#noteTalk(call, record)
    // A caller that calls again now must not find the limits taken by a call that waits for the
    // disk.
    calls.ended(call)
    if (!calls.unstored.mayWait(call, record.denialCode)) {
      this.#storing.delete(callUuid)
      calls.finish(call)
      return safe()
    }
    const quality = this.#deps.qualityOf?.(call)
    this.#deps.onEnded?.(record, quality)
    this.#deps.hooks?.ended(record)
    try {
      const cost = await charging.report(record, safe, quality)
      this.#deps.hooks?.recorded(record, cost)
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

const signatureIn = ({ signature }: SignedInvite): Headers => signature

/** Whether the command sends something to the peer of a leg, or follows such a command. */
const isForPeer = (command: CallCommand): command is LegCommand | CommandOf<'forgetLeg'> =>
  'legId' in command && !(command.type in notForPeer)

const notForPeer = {
  invite: true,
  probe: true,
  checkHolder: true,
  decideForward: true,
  refer: true,
}

function callUuidIn(event: MachineEvent): string | undefined {
  if ('callUuid' in event) return event.callUuid
  if ('legId' in event) return callUuidOf(event.legId)
  return undefined
}
