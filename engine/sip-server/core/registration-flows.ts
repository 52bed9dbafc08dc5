/**
 * Phones that registered over a connection are called over it (wire/README.md §5.2, RFC 5626 §5.3):
 * a 2xx to REGISTER or SUBSCRIBE binds the sender's Contact to the connection for the granted time.
 */
import type { AppMessage } from '../application.ts'
import { isReliable, type Flow } from '../flow.ts'
import type { Protocol, SipMessage } from '../../../schema/sip/message.ts'
import { type NameAddr, parseNameAddr, parseUri, sameUri } from '../../../schema/sip/fields.ts'
import type { Deadline, Deadlines, TimerTarget } from '../transaction/deadlines.ts'

/** A connection that phones have registered over. */
interface Connection {
  flow: Flow
  /** End of the registration that lasts longest. */
  expiresAt: number
  readonly contacts: Set<string>
}

/** RFC 3261 §10.2.1.1. */
const DEFAULT_SECONDS = 3_600
/** Expired ones are removed at most so much later; deadlines are made for few different delays. */
const SWEEP_MS = 30_000

export class RegistrationFlows implements TimerTarget<'sweep'> {
  readonly #deadlines: Deadlines
  readonly #isConnected: (flow: Flow) => boolean
  /** The keys are user and host of the Contact. */
  readonly #registrations = new Map<string, { connection: Connection; expiresAt: number }>()
  readonly #connections = new Map<number, Connection>()
  /** Ids of connections by the peer's address. */
  readonly #byPeer = new Map<string, number>()
  #sweep: Deadline<'sweep'> | undefined

  constructor(deadlines: Deadlines, isConnected: (flow: Flow) => boolean = () => true) {
    this.#deadlines = deadlines
    this.#isConnected = isConnected
  }

  /**
   * Takes note of an application's 2xx to `request`, which came by `flow`. False: nothing can be
   * sent there any more, because the phone has closed its connection while it waited.
   */
  accepted(request: SipMessage, response: AppMessage, flow: Flow, now: number): boolean {
    if (request.method !== 'REGISTER' && request.method !== 'SUBSCRIBE') return true
    if (!isReliable(flow.listener.protocol)) return true
    for (const contact of contactsOf(request)) {
      const key = keyOf(contact.uri)
      if (key === undefined) continue
      this.#remove(key)
      const seconds = grantedSeconds(request, contact, response, key)
      if (seconds === 0) continue
      if (!this.#isConnected(flow)) return false
      this.#add(key, flow, now + seconds * 1_000, now)
    }
    return true
  }

  /** The connection behind which `uri` is registered; undefined: none that fits its transport. */
  find(uri: string): Flow | undefined {
    if (this.#registrations.size === 0) return undefined
    const flow = this.#registrations.get(keyOf(uri) ?? '')?.connection.flow
    const transport = parseUri(uri)?.params.get('transport')?.toLowerCase()
    return flow && fits(flow.listener.protocol, transport) ? flow : undefined
  }

  /**
   * The very connection from that address, if a phone has registered over it: two phones behind
   * two NATs may show the same Contact.
   */
  from(protocol: Protocol, address: string, port: number): Flow | undefined {
    return this.#connections.get(this.#byPeer.get(peerKey(protocol, address, port)) ?? 0)?.flow
  }

  /** True: phones have registered over it, and over no newer one from the same address and port. */
  connectionClosed(connectionId: number): boolean {
    const wasReached = this.#forget(this.#connections.get(connectionId))
    if (this.#connections.size > 0) return wasReached
    this.#sweep?.cancel()
    this.#sweep = undefined
    return wasReached
  }

  get size(): number {
    return this.#registrations.size
  }

  onTimer(_timer: 'sweep', now: number): void {
    for (const [key, { expiresAt }] of this.#registrations) if (expiresAt <= now) this.#remove(key)
    for (const connection of this.#connections.values())
      if (connection.expiresAt <= now) this.#forget(connection)
    const isEmpty = this.#connections.size === 0
    this.#sweep = isEmpty ? undefined : this.#deadlines.start(this, 'sweep', SWEEP_MS, now)
  }

  #add(key: string, flow: Flow, expiresAt: number, now: number): void {
    const { listener, address, port, connectionId } = flow
    const known = this.#connections.get(connectionId)
    const connection = known ?? { flow, expiresAt, contacts: new Set() }
    connection.flow = flow
    connection.expiresAt = Math.max(expiresAt, connection.expiresAt)
    connection.contacts.add(key)
    this.#connections.set(connectionId, connection)
    this.#byPeer.set(peerKey(listener.protocol, address, port), connectionId)
    this.#registrations.set(key, { connection, expiresAt })
    this.#sweep ??= this.#deadlines.start(this, 'sweep', SWEEP_MS, now)
  }

  #remove(key: string): void {
    this.#registrations.get(key)?.connection.contacts.delete(key)
    this.#registrations.delete(key)
  }

  /** False: its address and port were not those of this connection any more. */
  #forget(connection: Connection | undefined): boolean {
    if (connection === undefined) return false
    const { listener, address, port, connectionId } = connection.flow
    this.#connections.delete(connectionId)
    const peer = peerKey(listener.protocol, address, port)
    const wasNewest = this.#byPeer.get(peer) === connectionId
    if (wasNewest) this.#byPeer.delete(peer)
    for (const key of connection.contacts) this.#registrations.delete(key)
    return wasNewest
  }
}

/** RFC 7118 §10: `ws` is the one name for both; a `sips` URI says `tcp` for TLS. */
const fits = (protocol: Protocol, transport: string | undefined): boolean =>
  transport === undefined ||
  transport === protocol ||
  (transport === 'ws' && protocol === 'wss') ||
  (transport === 'tcp' && protocol === 'tls')

const peerKey = (protocol: Protocol, address: string, port: number): string =>
  `${protocol} ${address} ${port}`

/** A REGISTER may bind several (RFC 3261 §10.2.1). */
function contactsOf(request: SipMessage): readonly NameAddr[] {
  return request.list('Contact').flatMap((value) => parseNameAddr(value) ?? [])
}

/** The time that the answer grants a Contact of that key; 0 when it lists other Contacts alone. */
function grantedSeconds(
  request: SipMessage,
  { uri, params }: NameAddr,
  response: AppMessage,
  key: string,
): number {
  const listed = response.list('Contact').map((value) => parseNameAddr(value))
  // RFC 3261 §10.2.4: the answer lists other bindings, too, perhaps of the same user and host.
  const own =
    listed.find((contact) => contact !== undefined && sameUri(contact.uri, uri)) ??
    listed.find((contact) => contact !== undefined && keyOf(contact.uri) === key)
  if (request.method === 'REGISTER' && listed.length > 0 && own === undefined) return 0
  const asked = params.get('expires') ?? request.get('Expires')
  return secondsIn(own?.params.get('expires') ?? response.get('Expires') ?? asked)
}

const secondsIn = (text: string | undefined): number =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : DEFAULT_SECONDS

function keyOf(uri: string): string | undefined {
  const parsed = parseUri(uri)
  return parsed && `${parsed.user}@${parsed.host.toLowerCase()}`
}
