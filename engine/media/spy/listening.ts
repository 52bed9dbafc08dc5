/**
 * Supervisors who listen: each has a mixer, to which the relay of the supervised call sends both
 * parties (`subscribe request`, `subscribe answer`). The call and its legs do not notice it. When
 * the call gets another session, after a transfer or on another relay, the mixer is subscribed
 * there.
 */
import type {
  AudioTarget,
  MediaEndpoint,
  ListeningPort,
} from '../../call/monitoring/listening-legs.ts'
import type { ActiveCalls } from '../../call/active-calls.ts'
import { streamsOf } from '../../call/sdp.ts'
import type { CallMedia, MediaSession } from '../call-media.ts'
import { hostOf } from '../parties.ts'
import type { Mixers } from './mixer-thread.ts'
import type { RelayedSource } from './mixer-worker.ts'
import type { SpySide } from '../../../schema/contracts/calls.ts'
import type { MonitoredCall } from '../../call/dialing/outgoing-invite.ts'

export interface ListeningDeps {
  readonly media: CallMedia
  readonly mixers: Mixers
  readonly calls: Pick<ActiveCalls, 'leg'>
}

interface Listener extends MonitoredCall {
  readonly id: string
  readonly endpoint: MediaEndpoint
  session: MediaSession | undefined
  /** The requests to relays for it, one after the other. */
  work: Promise<void>
  isClosed: boolean
}

export class Listening implements ListeningPort {
  readonly #deps: ListeningDeps
  readonly #listeners = new Map<string, Listener>()
  /**
   * Subscribed sessions: if they are deleted by the tag of a party, the relay keeps the
   * subscriptions.
   */
  readonly #subscribed = new Set<string>()

  constructor(deps: ListeningDeps) {
    this.#deps = deps
    deps.media.observe({
      connected: (session) => {
        for (const callUuid of session.callUuids) this.#moveAll(callUuid)
      },
      closed: (session) => {
        for (const listener of this.#listeners.values())
          if (listener.session?.id === session.id) listener.session = undefined
        if (this.#subscribed.delete(session.id)) void deleteWhole(session)
      },
    })
  }

  /** The relay that has the media of the call; undefined: none has. */
  relayOf(callUuid: string): string | undefined {
    return this.#sessionOf(callUuid)?.relay.name
  }

  /** Returns the address of the mixer. Undefined: the relay or the mixer refuses. */
  async open(
    id: string,
    listened: MonitoredCall,
    lost: () => void,
  ): Promise<MediaEndpoint | undefined> {
    const session = this.#sessionOf(listened.callUuid)
    if (session === undefined) return undefined
    const { mixers } = this.#deps
    const endpoint = await mixers.open(id, hostOf(session.relay.name), lost)
    if (endpoint === undefined) return undefined
    const work = Promise.resolve()
    const listener = { ...listened, id, endpoint, session: undefined, work, isClosed: false }
    this.#listeners.set(id, listener)
    await this.#move(listener)
    if (listener.session !== undefined) return endpoint
    this.close(id)
    return undefined
  }

  play(id: string, target: AudioTarget | undefined): void {
    this.#deps.mixers.play(id, target)
  }

  close(id: string): void {
    this.#deps.mixers.close(id)
    const listener = this.#listeners.get(id)
    if (listener === undefined) return
    this.#listeners.delete(id)
    listener.isClosed = true
    void this.#move(listener)
  }

  #sessionOf(callUuid: string): MediaSession | undefined {
    return this.#deps.media.sessionsOf(callUuid).at(-1)
  }

  #isOpen({ id, callUuids }: MediaSession): boolean {
    const open = callUuids.flatMap((callUuid) => this.#deps.media.sessionsOf(callUuid))
    return open.some((session) => session.id === id)
  }

  #moveAll(callUuid: string): void {
    for (const listener of this.#listeners.values())
      if (listener.callUuid === callUuid) void this.#move(listener)
  }

  #move(listener: Listener): Promise<void> {
    listener.work = listener.work.then(() => this.#moveNow(listener))
    return listener.work
  }

  /**
   * Moves a listener to the present session of its call. Deleted sessions have no subscriptions.
   */
  async #moveNow(listener: Listener): Promise<void> {
    const { id, session: before } = listener
    const session = listener.isClosed ? undefined : this.#sessionOf(listener.callUuid)
    if (session?.id === before?.id) return
    listener.session = undefined
    if (before) await unsubscribe(before, id)
    if (session === undefined) return
    this.#subscribed.add(session.id)
    const sources = await this.#subscribe(listener, session)
    if (!this.#isOpen(session)) {
      this.#subscribed.delete(session.id)
      return void (await deleteWhole(session))
    }
    if (sources === undefined) return
    listener.session = session
    this.#deps.mixers.setSources(id, sources)
  }

  /**
   * Which of the two is this side of the call: after a transfer the other one may be of another
   * call.
   */
  #legOf({ legs }: MediaSession, callUuid: string, side: Exclude<SpySide, 'both'>) {
    const { calls } = this.#deps
    const own = legs.find((legId) => calls.leg(legId)?.callUuid === callUuid)
    const isOwn = own !== undefined && calls.leg(own)?.side === side
    return isOwn ? own : legs.find((legId) => legId !== own)
  }

  /**
   * Subscribes a mixer, and returns the source addresses of the relay: behind NAT its SDP names
   * another address.
   */
  async #subscribe(
    { id, callUuid, side, endpoint }: Listener,
    session: MediaSession,
  ): Promise<readonly RelayedSource[] | undefined> {
    const { relay, id: callId } = session
    const leg = side === 'both' ? undefined : this.#legOf(session, callUuid, side)
    if (side !== 'both' && leg === undefined) return undefined
    const offer = await relay.request({
      command: 'subscribe request',
      'call-id': callId,
      'to-tag': id,
      ...plainRtp,
      ...(leg === undefined ? { flags: ['all'] } : { 'from-tags': [leg] }),
    })
    const sdp = offer.kind === 'ok' ? offer.values['sdp'] : undefined
    if (typeof sdp !== 'string') return undefined
    const answer = await relay.request({
      command: 'subscribe answer',
      'call-id': callId,
      'to-tag': id,
      sdp: answerTo(sdp, endpoint),
      flags: ['allow transcoding'],
    })
    if (answer.kind !== 'ok') {
      await unsubscribe(session, id)
      return undefined
    }
    return streamsOf(sdp).flatMap(({ kind, port, address }) =>
      kind === 'audio'
        ? [{ port: Number.parseInt(port, 10), addresses: [placeOf(address), hostOf(relay.name)] }]
        : [],
    )
  }
}

const plainRtp = {
  'transport-protocol': 'RTP/AVP',
  ICE: 'remove',
  DTLS: 'off',
  'rtcp-mux': ['demux'],
} as const

function unsubscribe({ relay, id: callId }: MediaSession, id: string): Promise<unknown> {
  return relay.request({ command: 'unsubscribe', 'call-id': callId, 'to-tag': id })
}

const deleteWhole = ({ relay, id: callId }: MediaSession): Promise<unknown> =>
  relay.request({ command: 'delete', 'call-id': callId, 'delete-delay': 0 })

/** All audio in PCMU: the relay transcodes. */
function answerTo(offer: string, { address, port }: MediaEndpoint): string {
  const family = address.includes(':') ? 'IP6' : 'IP4'
  const origin = `${family} ${address}`
  const media = streamsOf(offer).flatMap(({ kind, protocol }) =>
    kind === 'audio'
      ? [`m=audio ${port} RTP/AVP 0`, 'a=rtpmap:0 PCMU/8000', 'a=recvonly']
      : [`m=${kind} 0 ${protocol} 0`],
  )
  const session = ['v=0', `o=- 1 1 IN ${origin}`, 's=-', `c=IN ${origin}`, 't=0 0']
  return [...session, ...media, ''].join('\r\n')
}

/** The address in `IN IP4 <address>`. */
const placeOf = (connection: string): string => connection.split(' ', 3)[2] ?? ''
