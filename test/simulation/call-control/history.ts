/**
 * One simulated history: the machine of calls with random peers and conditions, in virtual time.
 * After every step its world is written as JSON and read back. What must hold is checked as it
 * happens, and at the end.
 */
import { isDeepStrictEqual } from 'node:util'
import { handle } from '../../../engine/call/call-machine/machine.ts'
import { forgetCall } from '../../../engine/call/call-machine/call.ts'
import {
  connectSaved,
  forgetSaved,
  restoreCall,
  saveCall,
  type SavedCall,
} from '../../../engine/call/call-machine/saved-call.ts'
import { changeOf, withChange } from '../../../engine/call/call-machine/saved-change.ts'
import type {
  CallCommand,
  MachineEvent,
  MachineInputs,
  Timer,
} from '../../../engine/call/call-machine/protocol.ts'
import { emptyWorld, type Call, type World } from '../../../engine/call/call-machine/state.ts'
import { callRecord, openCall } from '../../../engine/call/cdr/cdr.ts'
import { HeaderFilter } from '../../../engine/call/sip-headers.ts'
import type { LegCommand, LegEventData } from '../../../engine/call/signalling.ts'
import { Agenda } from './agenda.ts'
import { billComplaint } from './bill.ts'
import { CalleePeer } from './callee-peer.ts'
import { CallerPeer } from './caller-peer.ts'
import { Chance } from './chance.ts'
import type { Scene } from './call-beginnings.ts'
import { Control } from './control.ts'
import type { HistoryOptions, HistoryResult } from './history-options.ts'
import type { Line } from './line.ts'
import { isOfLeg, SimulatedMedia } from './media.ts'
import type { Peer } from './peer.ts'
import { readBack, written } from './world-copy.ts'

const asJson = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value

/** New things happen for so long. */
const livelyMs = 180_000
const sweepMs = 40_000
const maxSweeps = 15

const filter = new HeaderFilter({ passX: new Set(), ownHost: () => 'sbc.example' })
const timing = {
  nodeTimeoutMs: 1_500,
  nodeProgressTimeoutMs: 6_000,
  ringTimeoutMs: 60_000,
  retryAfterSeconds: 5,
}

type Invite = Extract<CallCommand, { readonly type: 'invite' }>

/** Everything in it follows from the seed. Throws at the first thing that must not be. */
export function simulateHistory(seed: number, options: HistoryOptions = {}): HistoryResult {
  const history = new History(seed, options)
  try {
    return history.run()
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
    throw new Error(`call history ${seed}: ${what}`, { cause: error })
  }
}

class History implements Line, Scene {
  readonly chance: Chance
  readonly agenda = new Agenda()
  readonly isRemote: boolean
  world: World = emptyWorld('sbc-1')
  isQuiet = false
  /** Calls that went on as they were saved. */
  restarted = 0
  readonly #options: HistoryOptions
  readonly #inputs: Omit<MachineInputs, 'now' | 'server'>
  readonly #control: Control
  readonly #events: MachineEvent[] = []
  #isRunning = false
  readonly #timers = new Map<string, ReturnType<Agenda['at']>>()
  readonly #peers = new Map<string, Peer>()
  /** The relays that most histories have. */
  readonly #media: SimulatedMedia | undefined
  readonly #invites = new Map<string, Invite>()
  readonly #forgottenLegs = new Set<string>()
  /** Calls that began, until their record is stored. */
  readonly #openCalls = new Set<string>()
  readonly #stored = new Set<string>()
  /** Calls that were stored in the present step, which may still tell of its transfer. */
  readonly #storedNow: string[] = []
  readonly #journalled = new Set<string>()
  /** Calls as they were saved at their answer: the value, and as the journal has it. */
  readonly #atAnswer = new Map<string, readonly [saved: SavedCall, written: SavedCall]>()
  readonly granted = new Map<string, number | null>()
  readonly #ends: string[] = []
  #steps = 0
  #calls = 0
  #digest = 0

  constructor(seed: number, options: HistoryOptions) {
    this.chance = new Chance(seed)
    this.#options = options
    const { chance } = this
    this.isRemote = chance.is(0.3)
    this.#inputs = { filter, timing }
    this.#control = new Control(this)
    this.#media = seed % 3 === 0 ? undefined : new SimulatedMedia(seed, this)
  }

  get now(): number {
    return this.agenda.now
  }

  run(): HistoryResult {
    this.#control.begin(this.#options.takesRinging)
    for (const at of [30_000, 60_000, 90_000, 120_000, 150_000])
      this.agenda.at(at, () => this.#restart())
    this.agenda.runUntil(livelyMs)
    this.#findStuck()
    this.#media?.checkFlow()
    this.isQuiet = true
    for (let sweep = 0; sweep < maxSweeps && this.world.calls.size > 0; sweep++) {
      this.#control.stopAll()
      this.agenda.runUntil(this.now + sweepMs)
    }
    this.agenda.runUntil(Infinity)
    this.#finish()
    const [steps, calls, ends] = [this.#steps, this.#calls, this.#ends]
    const { restarted } = this
    return { steps, calls, restarted, ends, digest: this.#digest.toString(16) }
  }

  complain(what: string): void {
    throw new Error(what)
  }

  hasOwnOrigin(legId: string): boolean {
    return this.world.legs.get(legId)?.hasOwnOrigin === true
  }

  began(callUuid: string): void {
    this.#calls += 1
    this.#openCalls.add(callUuid)
    this.#copy()
    this.#say(`${callUuid} begins`)
  }

  invited(peer: CallerPeer): void {
    this.#peers.set(peer.legId, peer)
    this.#media?.receive(peer.legId, peer.offer ?? '')
    peer.begin()
  }

  finish(callUuid: string): void {
    this.#openCalls.delete(callUuid)
    forgetCall(this.world, callUuid)
    this.#copy()
  }

  lose(): void {
    for (const peer of this.#peers.values()) peer.lose()
  }

  emit(event: LegEventData | MachineEvent): void {
    if (this.#media && isOfLeg(event)) this.#media.happened(event)
    else this.take(event)
  }

  take(event: MachineEvent): void {
    this.#events.push(event)
    if (this.#isRunning) return
    this.#isRunning = true
    for (let next = this.#events.shift(); next; next = this.#events.shift()) this.#step(next)
    this.#isRunning = false
  }

  #step(event: MachineEvent): void {
    this.#steps += 1
    this.#say('> ', event)
    const { now } = this
    const { isRemote } = this
    const lagMs = isRemote && this.now % 7 === 0 ? 200 : 0
    const server = { lagMs, reportsTrying: !isRemote, isRemote }
    for (const callUuid of this.#storedNow.splice(0)) this.#stored.add(callUuid)
    const commands = handle(this.world, event, { ...this.#inputs, now, server })
    this.#copy()
    for (const command of commands) {
      this.#say('  < ', command)
      this.#note(command)
      this.#perform(command)
    }
  }

  #noteAnswer(callUuid: string): void {
    const call = this.world.calls.get(callUuid)
    const saved = call && this.#save(call)
    if (saved) this.#atAnswer.set(callUuid, [saved, asJson(saved)])
  }

  #save(call: Call, known: readonly string[] = []): SavedCall | undefined {
    const sipOf = (legId: string): object | undefined =>
      this.#media ? this.#media.legs.save(legId) : {}
    return saveCall(this.world, call, sipOf, this.now, known)
  }

  /** As it is read after a crash: what was saved at the answer, and what has changed since. */
  #savedAgain(call: Call): SavedCall | undefined {
    const [before, known] = this.#atAnswer.get(call.start.callUuid) ?? []
    const saved = this.#save(call, before?.texts)
    if (saved === undefined) return undefined
    const whole = asJson(saved)
    const change = before && changeOf(before, saved)
    if (known === undefined || change === undefined) return whole
    const changed = withChange(known, asJson(change))
    if (!isDeepStrictEqual(asJson(changed), whole)) this.complain('a change is not the whole one')
    return changed
  }

  /** As after a crash: answered calls go on as they were saved, their timers are set anew. */
  #restart(): void {
    const { world } = this
    const isAsking = ({ start: { callUuid } }: Call): boolean =>
      this.#timers.has(JSON.stringify({ kind: 'grant-end', callUuid }))
    const restored = [...world.calls.values()].flatMap((call) => {
      // A question to the OCS would be answered here meanwhile, but not after a crash.
      if (call.phase !== 'answered' || isAsking(call)) return []
      const saved = this.#savedAgain(call)
      if (saved === undefined) return []
      const opened = openCall(call, call.answeredAt ?? this.now)
      const { transferIds } = call
      return [{ saved, opened, transferIds }]
    })
    for (const { saved } of restored) forgetSaved(world, saved)
    for (const { saved, opened } of restored)
      restoreCall(world, saved, opened, 0, { aliveAt: this.now, since: this.now })
    for (const { saved } of restored)
      for (const { id, sip } of saved.legs) this.#media?.legs.restore(id, sip, undefined)
    this.#media?.checkFlow()
    for (const { saved } of restored)
      if (!connectSaved(world, saved)) this.complain('a partner is missing')
    for (const id of restored.flatMap(({ transferIds }) => transferIds)) world.transfers.delete(id)
    this.restarted += restored.length
    this.#copy()
    for (const type of ['resumed', 'ask'] as const)
      for (const { saved } of restored) this.emit({ type, callUuid: saved.callUuid })
  }

  #copy(): void {
    if (this.#options.isCopied !== false) this.world = readBack(written(this.world))
  }

  #say(prefix: string, value?: MachineEvent | CallCommand): void {
    const { onLine } = this.#options
    if (onLine) onLine(`${this.now} ${prefix}${value ? JSON.stringify(value).slice(0, 600) : ''}`)
  }

  /** The digest tells whether two histories went the same way. */
  #note(command: CallCommand): void {
    const place = 'legId' in command ? command.legId : 'callUuid' in command ? command.callUuid : ''
    const status = 'status' in command ? String(command.status) : ''
    for (const char of `${command.type} ${place} ${status} ${this.now};`)
      this.#digest = (Math.imul(this.#digest, 31) + (char.codePointAt(0) ?? 0)) | 0
  }

  #perform(command: CallCommand): void {
    this.#checkOrder(command)
    switch (command.type) {
      case 'startTimer':
        return this.#startTimer(command.timer, command.at)
      case 'stopTimer':
        return this.#stopTimer(command.timer)
      case 'invite':
        return this.#invite(command)
      case 'forgetLeg':
        if (this.#forgottenLegs.has(command.legId)) this.complain(`${command.legId} ends twice`)
        this.#forgottenLegs.add(command.legId)
        return this.#media?.legs.forget(command.legId)
      case 'journal':
        if (this.#journalled.has(command.callUuid)) this.complain('a second journal entry')
        this.#journalled.add(command.callUuid)
        this.#noteAnswer(command.callUuid)
        return this.#control.perform(command)
      case 'store':
        return this.#store(command)
      case 'calleeLeft':
      case 'connectSource':
      case 'count':
      case 'decideForward':
      case 'decideRedirect':
      case 'display':
      case 'extend':
      case 'forwardOut':
      case 'probe':
      case 'refer':
      case 'measure':
      case 'reportHealth':
      case 'takeRoom':
      case 'transfer':
        return this.#control.perform(command)
      case 'instanceSilent':
      case 'goesOn':
      case 'checkHolder':
      case 'findPhones':
      case 'askAttempt':
        return
      default:
        if (this.#media) this.#media.legs.perform(command)
        else this.perform(command)
    }
  }

  perform(command: LegCommand): void {
    const peer = this.#peers.get(command.legId)
    if (peer === undefined) return this.complain(`${command.type} for an unknown leg`)
    if (command.type !== 'ask') return peer.perform(command)
    const question = { method: 'UPDATE', headers: {}, body: undefined, noAck: false } as const
    return peer.perform({ ...command, ...question, type: 'request', sdpOwner: undefined })
  }

  /**
   * Nothing for a call after its record, nothing for a leg after its end but what its peer is owed.
   */
  #checkOrder(command: CallCommand): void {
    const { type } = command
    if ('callUuid' in command && this.#stored.has(command.callUuid))
      this.complain(`${type} for ${command.callUuid} after its record`)
    if (type === 'startTimer' && 'callUuid' in command.timer)
      if (this.#stored.has(command.timer.callUuid)) this.complain('a timer for a call that is over')
    if (type === 'answerRequest' || type === 'acknowledgeReinvite' || type === 'decideForward')
      return
    if ('legId' in command && this.#forgottenLegs.has(command.legId))
      this.complain(`${type} for ${command.legId} after its end`)
    if (type === 'startTimer' && 'legId' in command.timer)
      if (this.#forgottenLegs.has(command.timer.legId))
        this.complain('a timer for a leg that is over')
  }

  #invite(command: Invite): void {
    const { legId, invite, sdpOwner, candidate, near } = command
    if (this.#invites.has(legId)) this.complain(`a second INVITE on ${legId}`)
    this.#invites.set(legId, command)
    if (!this.chance.is(0.03)) {
      const { body } = invite
      if (!this.#media) return this.invite(legId, body)
      const sent = { uri: '', nextHop: undefined, headers: {}, body, credentials: undefined }
      return this.#media.legs.invite(legId, sent, near, { sdpOwner, callee: candidate })
    }
    const why = 'sips needs TLS'
    const refused = { status: this.chance.pick([480, 403]), reason: 'no', code: 'insecure' }
    return this.emit({ type: 'withheld', legId, why, end: { kind: 'refused', ...refused } })
  }

  invite(legId: string, body: string | undefined): void {
    const command = this.#invites.get(legId)
    if (command === undefined) return this.complain(`an INVITE on ${legId}`)
    const peer = new CalleePeer(legId, this, { ...command, invite: { ...command.invite, body } })
    this.#peers.set(legId, peer)
    return peer.begin()
  }

  #startTimer(timer: Timer, at: number): void {
    const key = JSON.stringify(timer)
    this.agenda.cancel(this.#timers.get(key))
    const entry = this.agenda.at(at, () => {
      this.#timers.delete(key)
      if (timer.kind === 'attempt' && this.#media?.legs.isHeld?.(timer.legId) === true)
        return this.#startTimer(timer, this.now + 500)
      return this.emit({ type: 'timer', timer })
    })
    this.#timers.set(key, entry)
  }

  #stopTimer(timer: Timer): void {
    const key = JSON.stringify(timer)
    this.agenda.cancel(this.#timers.get(key))
    this.#timers.delete(key)
  }

  #store({ callUuid, end }: Extract<CallCommand, { readonly type: 'store' }>): void {
    const call = this.world.calls.get(callUuid)
    if (call === undefined) return this.complain(`a record of ${callUuid}, which is unknown`)
    if (!this.#openCalls.delete(callUuid)) this.complain(`a second record of ${callUuid}`)
    this.#storedNow.push(callUuid)
    this.#checkBill(call, end)
    this.#ends.push(`${end.kind}${call.answeredAt === null ? '' : ', answered'}`)
    this.agenda.at(this.now + this.chance.pick([0, 0, 1, 50, 3_000]), () => {
      forgetCall(this.world, callUuid)
      this.#copy()
      this.#checkTimers(callUuid)
    })
  }

  /** After a call is forgotten, only the timers of its legs go on. */
  #checkTimers(callUuid: string): void {
    for (const key of this.#timers.keys()) {
      const timer: Timer = JSON.parse(key)
      const isOfCall =
        ('callUuid' in timer && timer.callUuid === callUuid) ||
        (timer.kind === 'attempt' && timer.legId.startsWith(`${callUuid}.`))
      if (isOfCall) this.complain(`${key} runs after the call`)
    }
  }

  /** Billed is what was used, and no more than what was granted. */
  #checkBill(call: Call, end: Extract<CallCommand, { readonly type: 'store' }>['end']): void {
    const { callUuid } = call.start
    const record = callRecord(call, end, this.now)
    const granted = this.granted.get(callUuid) ?? null
    const since = this.#control.answeredAt(callUuid)
    if (since !== call.answeredAt)
      this.complain(`answered at ${since}, but by its record at ${call.answeredAt}`)
    const { calling } = call
    const caller = calling.kind === 'invite' ? this.#peers.get(calling.legId) : undefined
    if (since === null && caller instanceof CallerPeer && caller.isAccepted)
      this.complain('the caller has got 200, but the call counts as unanswered')
    if (since !== null && !this.#journalled.has(callUuid))
      this.complain('answered without a journal entry')
    // Until its parties are heard by the next process, a call counts as ended when it was saved.
    const until = call.doubt?.aliveAt ?? this.now
    const complaint = billComplaint(record, since === null ? null : until - since, granted)
    if (complaint) this.complain(complaint)
  }

  /** Calls that nothing can move any more, although they have not ended. */
  #findStuck(): void {
    const { world } = this
    for (const { start, phase, end } of world.calls.values()) {
      const isAlive = [...world.legs.values()].some(({ callUuid }) => callUuid === start.callUuid)
      if (end === undefined && phase === 'answered' && !isAlive)
        this.complain(`${start.callUuid} goes on without legs`)
    }
  }

  #finish(): void {
    const { calls, legs, exchanges, transfers } = this.world
    for (const [what, left] of Object.entries({ calls, legs, exchanges, transfers }))
      if (left.size > 0) this.complain(`left in ${what}: ${[...left.keys()].join(', ')}`)
    if (this.#openCalls.size > 0) this.complain(`no record: ${[...this.#openCalls].join(', ')}`)
    if (this.#timers.size > 0) this.complain(`timers: ${[...this.#timers.keys()].join(', ')}`)
    this.#media?.finish()
    for (const [legId, peer] of this.#peers) {
      if (!this.#forgottenLegs.has(legId)) this.complain(`${legId} never ends`)
      for (const leftover of peer.leftovers) this.complain(`${legId}: ${leftover}`)
    }
  }
}
