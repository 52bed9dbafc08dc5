/**
 * The media gate between the machine and the peers of a history, with two relays that check what
 * they are asked. In some histories nothing goes wrong with them: then the media of all that talk
 * to each other has to flow.
 */
import type { GateEvent, InviteFacts, Legs } from '../../../engine/call/legs.ts'
import type { LegCommand, LegEventData } from '../../../engine/call/signalling.ts'
import type { ReceivedRequest } from '../../../engine/call/user-agent/received-request.ts'
import { MediaGate } from '../../../engine/media/gate/media-gate.ts'
import { MediaSessions } from '../../../engine/media/gate/sessions.ts'
import { Parties } from '../../../engine/media/parties.ts'
import type { NgAnswer, NgRequest, Relay } from '../../../engine/media/relay/relays.ts'
import type { MediaPolicy } from '../../../schema/contracts/field-values.ts'
import type { MachineEvent } from '../../../engine/call/call-machine/protocol.ts'
import type { Call, Leg, World } from '../../../engine/call/call-machine/state.ts'
import { MediaRelay, relaysOf } from '../../support/media-relay.ts'
import type { Agenda } from './agenda.ts'
import { Chance } from './chance.ts'
import { describedIn } from './descriptions.ts'

export interface MediaScene {
  readonly world: World
  readonly agenda: Agenda
  complain(what: string): void
  /** Passes an event from the gate to the machine. */
  take(event: GateEvent): void
  /** Passes an INVITE from the gate to the peers. */
  invite(legId: string, body: string | undefined): void
  perform(command: LegCommand): void
}

/** How long a request without an answer is repeated. */
const timeoutMs = 400
const none = (): undefined => undefined

export class SimulatedMedia {
  readonly legs: Legs
  readonly #scene: MediaScene
  readonly #chance: Chance
  readonly #isTroubled: boolean
  readonly #relays: readonly MediaRelay[]
  readonly #sessions: MediaSessions
  readonly #over = new Set<string>()
  readonly #told = new Map<string, string>()
  /** The description that a leg had before it was offered another, by the transaction. */
  readonly #before = new Map<string, string>()
  /**
   * Calls that began at a phone of ours, and those with a party that has refused what it was to be
   * told.
   */
  readonly #sources = new Set<string>()
  readonly #refusing = new Set<string>()
  #emit: (event: LegEventData) => void = none

  constructor(seed: number, scene: MediaScene) {
    this.#scene = scene
    this.#chance = new Chance(seed)
    const { agenda } = scene
    this.#isTroubled = this.#chance.is(0.5)
    const after = (act: () => void, ms: number): (() => void) => {
      const entry = agenda.at(agenda.now + ms, act)
      return () => agenda.cancel(entry)
    }
    this.#relays = [1, 2].map((n) => new MediaRelay(`relay-${n}`, `10.99.0.${n}`, after))
    const calls = {
      call: (callUuid: string) => scene.world.calls.get(callUuid),
      leg: (legId: string | undefined) => scene.world.legs.get(legId ?? ''),
    }
    const ask = this.#ask.bind(this)
    this.#sessions = new MediaSessions({ calls, prefix: 'p', run: 'r', after, ask })
    const policy: MediaPolicy = this.#isTroubled
      ? this.#chance.pick(['anchor', 'prefer'])
      : 'anchor'
    const rules = {
      routing: { mediaOf: none },
      dispatcher: { setRecord: none },
      registrar: { extensionAt: none },
    }
    const never = (): boolean => false
    const parties = new Parties({ rules, calls, policy, isRecorded: never, mustBeRecorded: never })
    const now = (): number => agenda.now
    const relays = relaysOf(...this.#relays)
    const deps = { relays, sessions: this.#sessions, parties, calls, now, after }
    const onFault = (_legId: string, error: unknown): void => {
      throw error
    }
    this.legs = new MediaGate(
      deps,
      (emit) => this.#behind(emit),
      (event) => scene.take(event),
      onFault,
    )
    if (this.#isTroubled) this.#breakLater()
  }

  /** Passes an event of a peer on. */
  happened(event: LegEventData): void {
    const leg = this.#scene.world.legs.get(event.legId)
    if (leg?.isUac === true && leg.side === 'caller') this.#sources.add(leg.callUuid)
    if (
      event.type === 'requestFailed' ||
      (event.type === 'response' && event.response.status >= 300)
    ) {
      this.#refused(event.legId, event.transactionId)
      if (leg) this.#refusing.add(leg.callUuid)
    }
    this.#emit(event)
  }

  /**
   * The description that it had before stands; after a transfer, that may be of a party that is
   * gone.
   */
  #refused(legId: string, transactionId: string): void {
    const { calls, legs } = this.#scene.world
    const isMoved = calls.get(legs.get(legId)?.callUuid ?? '')?.transfer !== undefined
    const before = this.#before.get(transactionId)
    if (before !== undefined) this.#told.set(legId, isMoved ? '' : before)
  }

  receive(legId: string, body: string): void {
    const request = { protocol: 'udp', sourceAddress: '10.1.1.1', headers: {}, body }
    this.legs.receive(legId, request as unknown as ReceivedRequest)
  }

  #behind(emit: (event: LegEventData) => void): Legs {
    this.#emit = emit
    return {
      receive: none,
      invite: (legId, { body }, _near, about: InviteFacts) => {
        this.#note(legId, body, about.sdpOwner)
        this.#scene.invite(legId, body)
      },
      perform: (command) => {
        const { type, legId } = command
        const isOwed = type === 'answerRequest' || type === 'acknowledgeReinvite'
        if (this.#over.has(legId) && !isOwed) this.#scene.complain(`${type} for ${legId} after all`)
        const sdp = 'sdp' in command ? command.sdp : 'body' in command ? command.body : undefined
        if (type === 'request') this.#before.set(command.transactionId, this.#told.get(legId) ?? '')
        this.#note(legId, sdp, 'sdpOwner' in command ? command.sdpOwner : undefined)
        this.#scene.perform(command)
      },
      forget: (legId) => void this.#over.add(legId),
      save: () => ({}),
      restore: () => true,
      answerBye: none,
    }
  }

  #note(legId: string, sdp: string | undefined, sdpOwner: string | undefined): void {
    if (sdp?.startsWith('v=0') !== true) return
    this.#told.set(legId, sdp)
    const isRelayed = sdp.includes('c=IN IP4 10.99.0.')
    const hasSaidNothing = this.#scene.world.legs.get(legId)?.media === ''
    if (sdpOwner !== undefined && !isRelayed && !this.#isTroubled && !hasSaidNothing)
      this.#scene.complain(`${legId} is told of ${sdpOwner} without a relay`)
  }

  // The relays.

  #ask(relay: Relay, request: NgRequest, done: (answer: NgAnswer) => void): void {
    const chance = this.#chance
    const one = this.#relays.find(({ name }) => name === relay.name)
    const later = (ms: number, answer: NgAnswer): void =>
      void this.#scene.agenda.at(this.#scene.agenda.now + ms, () => done(answer))
    if (one === undefined || !one.isAnswering) return later(timeoutMs, { kind: 'timeout' })
    one.mode = 'at once'
    if (this.#isTroubled && chance.is(0.02))
      one.mode = chance.pick(['with an error', 'with garbage'])
    const answer = one.answerTo(request)
    // It has died while it was asked.
    if (this.#isTroubled && chance.is(0.01)) {
      this.#break(one)
      return later(timeoutMs, { kind: 'timeout' })
    }
    return chance.is(0.3) ? done(answer) : later(chance.pick([1, 1, 20, 300]), answer)
  }

  #breakLater(): void {
    const { agenda } = this.#scene
    for (const relay of this.#relays)
      if (this.#chance.is(0.7))
        agenda.at(this.#chance.between(0, 120_000), () => this.#break(relay))
  }

  /** It is killed and started again, or out of reach for a time; that shows a moment later. */
  #break(relay: MediaRelay): void {
    const { agenda } = this.#scene
    const isKilled = this.#chance.is(0.6)
    relay.isAnswering = false
    agenda.at(agenda.now + this.#chance.between(0, 800), () => {
      relay.isAlive = relay.isAnswering
    })
    agenda.at(agenda.now + this.#chance.between(1_000, 40_000), () => {
      if (isKilled) relay.sessions.clear()
      relay.isAnswering = true
      relay.isAlive = true
    })
  }

  // The rules that have to hold.

  /** Whether media flows between all that are connected and at rest. */
  checkFlow(): void {
    const { world } = this.#scene
    if (this.#isTroubled || this.#isBusy) return
    for (const { legs, state } of world.exchanges.values()) {
      const [one, other] = legs.map((legId) => world.legs.get(legId))
      if (state !== 'stable' || !one || !other || ![one, other].every(isAtRest)) continue
      const calls = [one, other].map(({ callUuid }) => world.calls.get(callUuid))
      if (calls.some((call) => call === undefined || isMoving(call))) continue
      // Between others the call goes on as it was; a phone of click-to-call has moved already.
      const isUntold = ({ callUuid }: Leg): boolean =>
        this.#sources.has(callUuid) && this.#refusing.has(callUuid)
      if ([one, other].some(isUntold)) continue
      this.#checkToward(one, other)
      this.#checkToward(other, one)
    }
  }

  /** Something waits for a relay. */
  get #isBusy(): boolean {
    return [...this.#scene.world.legs.keys()].some((legId) => this.legs.isHeld?.(legId) === true)
  }

  /** The media of `leg` has to reach the other one, as that one has described itself last. */
  #checkToward(leg: Leg, other: Leg): void {
    const told = this.#told.get(leg.id) ?? ''
    const named = describedIn(told)
    if (named === undefined || other.media === '' || leg.media === '') return
    if (named !== other.id)
      return this.#scene.complain(`${leg.id} talks to ${other.id}, but was told of ${named}`)
    // Call control has not told it of the last change: nothing to do with relays.
    if (placeIn(leg.lastSdpSent) !== placeIn(other.media)) return
    if (this.#relays.some((relay) => relay.leadsTo(told, leg.id, other.id, other.media))) return
    this.#scene.complain(`${leg.id} sends to ${told}, which does not lead to ${other.id}`)
  }

  /** Nothing of any call is left. */
  finish(): void {
    const { complain } = this.#scene
    for (const { name, sessions, complaints } of this.#relays) {
      for (const what of complaints) if (!this.#isTroubled) complain(`${name}: ${what}`)
      if (sessions.size > 0) complain(`left at ${name}: ${[...sessions.keys()].join(', ')}`)
    }
    if (this.#sessions.size > 0) complain(`${this.#sessions.size} sessions are left`)
  }
}

const placeIn = (sdp: string): string => /^m=\S+ \d+/m.exec(sdp)?.[0] ?? ''

const isAtRest = ({ state, pending, owedAnswer, awaitedAck, retries }: Leg): boolean =>
  state === 'confirmed' &&
  owedAnswer === undefined &&
  awaitedAck === undefined &&
  Object.keys(pending).length + Object.keys(retries).length === 0

const isMoving = ({ transfer, end, phase }: Call): boolean =>
  transfer?.state === 'transferring' || end !== undefined || phase !== 'answered'

/** The events that peers, and nothing else, cause. */
export const isOfLeg = (event: LegEventData | MachineEvent): event is LegEventData =>
  ofLegs.has(event.type)

const ofLegs = new Set([
  'sent',
  'provisional',
  'answered',
  'offered',
  'unusable',
  'rejected',
  'failed',
  'accepted',
  'gone',
  'acknowledged',
  'acknowledgeFailed',
  'ack',
  'bye',
  'cancelled',
  'lost',
  'request',
  'response',
  'requestFailed',
])
