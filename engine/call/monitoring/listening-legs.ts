/**
 * The called leg of a supervisor who listens has no dialog: this file answers its INVITE with the
 * audio of the mixer. All other legs belong to the user agent.
 */
import type { ListenerCandidate, MonitoredCall } from '../dialing/outgoing-invite.ts'
import type { Legs } from '../legs.ts'
import type { LegCommand, LegCommandOf, LegEventData, SipResponse } from '../signalling.ts'
import { type Stream, streamsOf } from '../sdp.ts'

/** The mixed audio of a call for one supervisor; `engine/media` implements it. */
export interface ListeningPort {
  /** The relay that has the media of the call. Undefined: no relay has it. */
  relayOf(callUuid: string): string | undefined
  /**
   * Returns the address of the mixer. Undefined: listening is not possible now. `lost`: the mixer
   * has failed.
   */
  open(id: string, listened: MonitoredCall, lost: () => void): Promise<MediaEndpoint | undefined>
  play(id: string, target: AudioTarget | undefined): void
  close(id: string): void
}

interface Listener {
  /** Undefined: it is being opened. */
  endpoint: MediaEndpoint | undefined
}

export class ListeningLegs implements Legs {
  readonly #legs: Legs
  readonly #listening: ListeningPort
  readonly #emit: (event: LegEventData) => void
  readonly #listeners = new Map<string, Listener>()

  constructor(legs: Legs, listening: ListeningPort, emit: (event: LegEventData) => void) {
    this.#legs = legs
    this.#listening = listening
    this.#emit = emit
  }

  readonly receive: Legs['receive'] = (legId, request, isOtherInstance) =>
    this.#legs.receive(legId, request, isOtherInstance)
  readonly save: Legs['save'] = (legId) =>
    this.#listeners.has(legId) ? { listens: true } : this.#legs.save(legId)
  readonly answerBye: Legs['answerBye'] = (legId) => this.#legs.answerBye(legId)

  /**
   * The mixer has ended with the last process: so does the call of the supervisor, once all calls
   * are restored.
   */
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
        // Such a leg has neither received an INVITE, nor made an offer, nor sent a request.
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
    // The first supervisor starts the mixer's thread, which takes seconds on a loaded machine: 100
    // stops the timer of silence.
    queueMicrotask(() => {
      const response = responseOf(100, 'Trying', undefined, '')
      if (this.#listeners.get(legId) === listener)
        this.#emit({ type: 'provisional', legId, response })
    })
    const endpoint = await this.#listening.open(legId, listened, () => this.#lose(legId))
    // The call has ended in the meantime.
    if (this.#listeners.get(legId) !== listener) return this.#listening.close(legId)
    const answer = endpoint && answerListener(offer, endpoint)
    if (endpoint === undefined || answer === undefined) {
      this.#close(legId)
      return endpoint === undefined
        ? this.#reject(legId, 503, 'Media Relay Unavailable')
        : this.#reject(legId, 488, 'Not Acceptable Here')
    }
    listener.endpoint = endpoint
    this.#listening.play(legId, answer.target)
    const { address, port } = endpoint
    const host = address.includes(':') ? `[${address}]` : address
    const response = responseOf(200, 'OK', answer.sdp, `${host}:${port}`)
    const dialog = { callId: legId, localTag: '', remoteTag: '', media: answer.sdp }
    return this.#emit({ type: 'answered', legId, response, dialog })
  }

  /**
   * Answers hold, resume and refresh of the supervisor's phone. Other requests get 200 and have no
   * effect.
   */
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
    this.#listening.play(legId, answer.target)
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

// Session descriptions for supervisors: G.711 (RFC 3264). Media from the supervisor's phone is
// accepted and dropped: a phone behind NAT has to send before media reaches it, and a phone that
// may not send shows a call on hold.

export interface MediaEndpoint {
  readonly address: string
  readonly port: number
}

/** The address and codec of the audio for a supervisor. */
export interface AudioTarget {
  readonly to: MediaEndpoint
  /** PCMU or PCMA (RFC 3551). */
  readonly payloadType: 0 | 8
}

/** RFC 3264 §6.1, by the direction of the offer. */
const answers: Readonly<Record<string, string>> = {
  sendrecv: 'sendrecv',
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
}

const names = { 0: 'PCMU', 8: 'PCMA' } as const

/** Undefined: the offer has no audio that can be sent. */
export function answerListener(
  offer: string,
  from: MediaEndpoint,
): { readonly sdp: string; readonly target: AudioTarget | undefined } | undefined {
  const streams = streamsOf(offer)
  const audio = streams.find((stream) => payloadTypeOf(stream) !== undefined)
  const payloadType = audio && payloadTypeOf(audio)
  if (audio === undefined || payloadType === undefined) return undefined
  const target = targetOf(audio, payloadType)
  const media = streams.flatMap((stream) =>
    stream === audio
      ? audioStream(from.port, [payloadType], answers[stream.direction] ?? 'sendrecv')
      : [`m=${stream.kind} 0 ${stream.protocol} ${stream.formats.join(' ')}`],
  )
  return { sdp: written(from, media), target }
}

/** The offer in the 200 to a re-INVITE without offer. */
const offerToListener = (from: MediaEndpoint): string =>
  written(from, audioStream(from.port, [0, 8], 'sendrecv'))

/** Reads the answer of a supervisor's phone. */
function targetInAnswer(answer: string): AudioTarget | undefined {
  const [audio] = streamsOf(answer)
  const payloadType = audio && payloadTypeOf(audio)
  return audio && payloadType !== undefined ? targetOf(audio, payloadType) : undefined
}

function payloadTypeOf({ kind, port, formats }: Stream): 0 | 8 | undefined {
  if (kind !== 'audio' || port.startsWith('0')) return undefined
  const format = formats.find((format) => format === '0' || format === '8')
  return format === undefined ? undefined : format === '0' ? 0 : 8
}

function targetOf(
  { address, port, direction }: Stream,
  payloadType: 0 | 8,
): AudioTarget | undefined {
  const [, , host = ''] = address.split(' ')
  const isReceiving = direction === 'sendrecv' || direction === 'recvonly'
  if (!isReceiving || host === '' || host === '0.0.0.0' || host === '::') return undefined
  return { to: { address: host, port: Number.parseInt(port, 10) }, payloadType }
}

const audioStream = (
  port: number,
  payloadTypes: readonly (0 | 8)[],
  direction: string,
): readonly string[] => [
  `m=audio ${port} RTP/AVP ${payloadTypes.join(' ')}`,
  ...payloadTypes.map((payloadType) => `a=rtpmap:${payloadType} ${names[payloadType]}/8000`),
  'a=ptime:20',
  `a=${direction}`,
]

function written({ address }: MediaEndpoint, media: readonly string[]): string {
  const origin = `IN ${address.includes(':') ? 'IP6' : 'IP4'} ${address}`
  const session = ['v=0', `o=- 1 1 ${origin}`, 's=-', `c=${origin}`, 't=0 0']
  return [...session, ...media, ''].join('\r\n')
}
