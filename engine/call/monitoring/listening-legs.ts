/**
 * The called leg of a supervisor who listens is no dialog: it ends here, where what the supervisor hears is made.
 * All other legs are the user agent's.
 */
import type { SpySide } from '../../../schema/rules/media.ts'
import type { ListenerCandidate } from '../dialing/outgoing-invite.ts'
import type { Legs } from '../legs.ts'
import type { LegCommand, LegCommandOf, LegEventData, SipResponse } from '../signalling.ts'
import {
  answerListener,
  targetInAnswer,
  offerToListener,
  type Endpoint,
  type AudioTarget,
} from './listener-description.ts'

/** What both parties of a call say, for one supervisor; `engine/media` implements it. */
export interface Listening {
  /** The relay that has the media of the call; undefined: none has. */
  relayOf(callUuid: string): string | undefined
  /** Where it comes from; undefined: it is not possible now. `lost`: it has ended by itself. */
  open(
    id: string,
    listened: { readonly callUuid: string; readonly side: SpySide },
    lost: () => void,
  ): Promise<Endpoint | undefined>
  play(id: string, hearing: AudioTarget | undefined): void
  close(id: string): void
}

interface Listener {
  /** Undefined: it is being opened. */
  endpoint: Endpoint | undefined
}

export class ListeningLegs implements Legs {
  readonly #legs: Legs
  readonly #listening: Listening
  readonly #emit: (event: LegEventData) => void
  readonly #listeners = new Map<string, Listener>()

  constructor(legs: Legs, listening: Listening, emit: (event: LegEventData) => void) {
    this.#legs = legs
    this.#listening = listening
    this.#emit = emit
  }

  readonly receive: Legs['receive'] = (legId, request, isOtherNode) =>
    this.#legs.receive(legId, request, isOtherNode)
  readonly save: Legs['save'] = (legId) =>
    this.#listeners.has(legId) ? { listens: true } : this.#legs.save(legId)
  readonly answerBye: Legs['answerBye'] = (legId) => this.#legs.answerBye(legId)

  /** What a supervisor heard has ended with the process: so does its call, once all calls are there. */
  readonly restore: Legs['restore'] = (legId, saved, credentials) => {
    if (saved.listens === undefined) return this.#legs.restore(legId, saved, credentials)
    this.#listeners.set(legId, { endpoint: undefined })
    queueMicrotask(() => this.#lose(legId))
    return true
  }

  readonly invite: Legs['invite'] = (legId, invite, near, about) => {
    const { callee } = about
    if (callee.kind !== 'listener') return this.#legs.invite(legId, invite, near, about)
    return void this.#open(legId, callee, invite.body ?? '')
  }

  perform(command: LegCommand): void {
    const listener = this.#listeners.get(command.legId)
    if (listener === undefined) return this.#legs.perform(command)
    const { legId } = command
    switch (command.type) {
      case 'cancel':
        this.#close(legId)
        return this.#reject(legId, 487, 'Request Terminated')
      case 'bye':
      case 'release':
        return this.#close(legId)
      case 'request':
        return this.#answer(command, listener)
      case 'acknowledgeReinvite':
        return this.#listening.play(legId, targetInAnswer(command.body ?? ''))
      case 'accept':
      case 'respond':
      case 'acknowledge':
      case 'abandonOffer':
      case 'answerRequest':
      default:
        // It has neither received an INVITE, nor offered anything, nor sent a request.
        return undefined
    }
  }

  forget(legId: string): void {
    this.#close(legId)
    this.#legs.forget(legId)
  }

  async #open(legId: string, { listened }: ListenerCandidate, offer: string): Promise<void> {
    const listener: Listener = { endpoint: undefined }
    this.#listeners.set(legId, listener)
    // The first supervisor starts the mixer's thread, which takes seconds on a loaded machine: that is no silence.
    queueMicrotask(() => {
      const response = responseOf(100, 'Trying', undefined, '')
      if (this.#listeners.get(legId) === listener)
        this.#emit({ type: 'provisional', legId, response })
    })
    const endpoint = await this.#listening.open(legId, listened, () => this.#lose(legId))
    // It was given up meanwhile.
    if (this.#listeners.get(legId) !== listener) return this.#listening.close(legId)
    const answer = endpoint && answerListener(offer, endpoint)
    if (endpoint === undefined || answer === undefined) {
      this.#close(legId)
      return endpoint === undefined
        ? this.#reject(legId, 503, 'Media Relay Unavailable')
        : this.#reject(legId, 488, 'Not Acceptable Here')
    }
    listener.endpoint = endpoint
    this.#listening.play(legId, answer.hearing)
    const { address, port } = endpoint
    const host = address.includes(':') ? `[${address}]` : address
    const response = responseOf(200, 'OK', answer.sdp, `${host}:${port}`)
    const dialog = { callId: legId, localTag: '', remoteTag: '', media: answer.sdp }
    return this.#emit({ type: 'answered', legId, response, dialog })
  }

  /** The supervisor's phone holds, resumes, or refreshes; what else it sends is taken, and leads to nothing. */
  #answer(
    { legId, transactionId, method, body, noAck }: LegCommandOf<'request'>,
    { endpoint }: Listener,
  ): void {
    const respond = (status: number, reason: string, sdp?: string, owesAck = false): void => {
      const response = responseOf(status, reason, sdp, '')
      this.#emit({ type: 'response', legId, transactionId, response, owesAck })
    }
    const isReinvite = method === 'INVITE'
    if (endpoint === undefined || (!isReinvite && method !== 'UPDATE')) return respond(200, 'OK')
    if (!body) return respond(200, 'OK', isReinvite ? offerToListener(endpoint) : undefined, noAck)
    const answer = answerListener(body, endpoint)
    if (answer === undefined) return respond(488, 'Not Acceptable Here')
    this.#listening.play(legId, answer.hearing)
    return respond(200, 'OK', answer.sdp)
  }

  #reject(legId: string, status: number, reason: string): void {
    const response = responseOf(status, reason, undefined, '')
    this.#emit({ type: 'rejected', legId, response })
  }

  #lose(legId: string): void {
    if (this.#listeners.delete(legId)) this.#emit({ type: 'bye', legId, headers: {}, isOurs: true })
  }

  #close(legId: string): void {
    if (this.#listeners.delete(legId)) this.#listening.close(legId)
  }
}

const responseOf = (
  status: number,
  reason: string,
  body: string | undefined,
  peer: string,
): SipResponse => ({ status, reason, headers: {}, body, peer })
