/**
 * A SIP endpoint on a raw socket, or on a virtual network, that does only what a test tells it to.
 * It shares no code with the server: its own few lines read and write SIP.
 */
import type { Listener } from '../../engine/sip-server/index.ts'
import {
  machineNetwork,
  type PeerNetwork,
  type PeerOptions,
  type PeerSocket,
} from './peer-socket.ts'

/** A received message. Header names are looked up in any case. */
export class PeerMessage {
  readonly text: string
  readonly startLine: string
  readonly body: string
  readonly #headers: readonly (readonly [string, string])[]

  constructor(text: string) {
    this.text = text
    const end = text.indexOf('\r\n\r\n')
    const [startLine = '', ...lines] = text.slice(0, end).split('\r\n')
    this.startLine = startLine
    this.body = text.slice(end + 4)
    this.#headers = lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
    })
  }

  /** 0 for a request. */
  get status(): number {
    return this.startLine.startsWith('SIP/') ? Number(this.startLine.split(' ')[1]) : 0
  }

  /** Empty for a response. */
  get method(): string {
    return this.status === 0 ? (this.startLine.split(' ')[0] ?? '') : ''
  }

  get uri(): string {
    return this.startLine.split(' ')[1] ?? ''
  }

  /** The first value; empty when there is none. */
  get(name: string): string {
    return this.all(name)[0] ?? ''
  }

  all(name: string): readonly string[] {
    const wanted = name.toLowerCase()
    return this.#headers.filter(([header]) => header === wanted).map(([, value]) => value)
  }
}

/** One side of a dialog, kept up to date by `SipPeer`. */
export interface Leg {
  readonly callId: string
  readonly from: string
  to: string
  /** Where requests go: the Request-URI. */
  uri: string
  cseq: number
  branch: string
  routes: readonly string[]
}

export interface Content {
  readonly headers?: readonly string[]
  readonly body?: string
  /** Default: a session description. */
  readonly contentType?: string
}

type Answer = Content & { readonly tag?: string }

type Wanted = string | number | ((message: PeerMessage) => boolean)

interface Waiter {
  readonly fits: (message: PeerMessage) => boolean
  take: (message: PeerMessage) => void
}

let lastNumber = 0
/** Unique within the test process. */
const unique = (prefix: string): string => `${prefix}${++lastNumber}`

export class SipPeer {
  readonly protocol: Listener['protocol']
  readonly inbox: PeerMessage[] = []
  /** Where it says that it is; undefined: where it is. */
  contact: string | undefined
  readonly #socket: PeerSocket
  readonly #network: PeerNetwork
  /** The way back of each received request. */
  readonly #answers = new WeakMap<PeerMessage, (text: string) => void>()
  /**
   * The requests that have come, with their answers; undefined: whatever comes again is told to the
   * test.
   */
  #answered: Map<string, string> | undefined
  /** ACKs of this peer, by the answers that they acknowledge. */
  readonly #acks = new Map<string, string>()
  #waiting: Waiter[] = []
  /** The answers to requests of a method, without the test. */
  readonly #always = new Map<string, readonly [status: number, content: Answer]>()

  private constructor(protocol: Listener['protocol'], socket: PeerSocket, network: PeerNetwork) {
    this.protocol = protocol
    this.#socket = socket
    this.#network = network
  }

  /** A peer of this listener, with the same transport and address family. */
  static async open(
    listener: Listener,
    options: PeerOptions = {},
    network = machineNetwork,
  ): Promise<SipPeer> {
    const receive = (text: string, answer: (text: string) => void) => peer.#receive(text, answer)
    const socket = await network.open(listener, receive, options)
    const peer: SipPeer = new SipPeer(listener.protocol, socket, network)
    return peer
  }

  /**
   * A peer for a server whose clock runs: what comes again because time has passed is no news. It
   * gets the last answer again (RFC 3261 §17.2), and the test does not hear of it.
   */
  static async openPatient(
    listener: Listener,
    options: PeerOptions = {},
    network = machineNetwork,
  ): Promise<SipPeer> {
    const peer = await SipPeer.open(listener, options, network)
    peer.#answered = new Map()
    return peer
  }

  get port(): number {
    return this.#socket.port
  }

  /** Ends all connections; the port stays open. */
  hangUp(): void {
    this.#socket.hangUp()
  }

  close(): void {
    this.#socket.close()
  }

  /** `sip:` URI under which the server reaches this peer. */
  get uri(): string {
    return `sip:peer@${this.#hostPort()}${this.protocol === 'udp' ? '' : `;transport=${this.protocol}`}`
  }

  /** Takes the first message that fits out of the inbox, or waits for it. */
  next(wanted: Wanted): Promise<PeerMessage> {
    const fits = matcher(wanted)
    const at = this.inbox.findIndex(fits)
    const [message] = at === -1 ? [] : this.inbox.splice(at, 1)
    if (message) return Promise.resolve(message)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { fits, take: resolve }
      const giveUp = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter)
        reject(new Error(`no ${String(wanted)}; there are: ${this.#summary()}`))
      }
      const cancel = this.#network.whenSilent(giveUp)
      waiter.take = (found) => {
        cancel()
        resolve(found)
      }
      this.#waiting.push(waiter)
    })
  }

  send(text: string): void {
    this.#socket.send(text)
  }

  /** A leg that begins with a request to `uri`. */
  leg(uri: string): Leg {
    return {
      callId: unique('call-'),
      from: `<${this.uri}>;tag=${unique('tag-')}`,
      to: `<${uri}>`,
      uri,
      cseq: 0,
      branch: '',
      routes: [],
    }
  }

  /** The leg of the called side, after this peer has answered `invite` with `tag`. */
  calledLeg(invite: PeerMessage, tag: string): Leg {
    return {
      callId: invite.get('Call-ID'),
      from: `${invite.get('To')};tag=${tag}`,
      to: invite.get('From'),
      uri: /<([^>]+)>/.exec(invite.get('Contact'))?.[1] ?? '',
      cseq: 0,
      branch: '',
      routes: [],
    }
  }

  /**
   * Sends a request in the leg. CANCEL and ACK keep the number; CANCEL keeps the branch as well.
   */
  request(method: string, leg: Leg, content: Content = {}): string {
    if (method !== 'ACK' && method !== 'CANCEL') leg.cseq++
    if (method !== 'CANCEL') leg.branch = unique('z9hG4bK')
    const body = content.body ?? ''
    const text = [
      `${method} ${leg.uri} SIP/2.0`,
      `Via: SIP/2.0/${this.protocol.toUpperCase()} ${this.#hostPort()};rport;branch=${leg.branch}`,
      'Max-Forwards: 70',
      ...leg.routes.map((route) => `Route: ${route}`),
      `From: ${leg.from}`,
      `To: ${leg.to}`,
      `Call-ID: ${leg.callId}`,
      `CSeq: ${leg.cseq} ${method}`,
      `Contact: <${this.contact ?? this.uri}>`,
      ...(content.headers ?? []),
      ...(body === '' ? [] : [`Content-Type: ${content.contentType ?? 'application/sdp'}`]),
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n')
    if (method === 'ACK') this.#acks.set(`${leg.callId} ${leg.cseq} ${leg.to}`, text)
    this.#socket.send(text)
    return text
  }

  /** The leg now knows what the answer to its INVITE told. */
  learn(leg: Leg, answer: PeerMessage): void {
    leg.to = answer.get('To')
    leg.uri = /<([^>]+)>/.exec(answer.get('Contact'))?.[1] ?? leg.uri
  }

  /**
   * Requests of this method are answered so, however late they come; the test does not hear of
   * them.
   */
  always(method: string, status: number, content: Answer = {}): void {
    this.#always.set(method, [status, content])
    for (const message of this.inbox.splice(0))
      if (message.method === method) this.reply(message, status, content)
      else this.inbox.push(message)
  }

  /** Answers a request; `tag` is added to a To without one. */
  reply(request: PeerMessage, status: number, content: Answer = {}): void {
    const to = request.get('To')
    const tag = content.tag !== undefined && !to.includes(';tag=') ? `;tag=${content.tag}` : ''
    const body = content.body ?? ''
    const text = [
      `SIP/2.0 ${status} Test`,
      ...request.all('Via').map((via) => `Via: ${via}`),
      `From: ${request.get('From')}`,
      `To: ${to}${tag}`,
      `Call-ID: ${request.get('Call-ID')}`,
      `CSeq: ${request.get('CSeq')}`,
      `Contact: <${this.contact ?? this.uri}>`,
      ...(content.headers ?? []),
      ...(body === '' ? [] : [`Content-Type: ${content.contentType ?? 'application/sdp'}`]),
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n')
    this.#answered?.set(request.text, text)
    this.#answers.get(request)?.(text)
  }

  #receive(text: string, answer: (text: string) => void): void {
    const again = this.#answered?.get(text)
    if (again !== undefined) {
      if (again === '') this.#acknowledgeAgain(new PeerMessage(text))
      else answer(again)
      return
    }
    this.#answered?.set(text, '')
    const message = new PeerMessage(text)
    if (this.#answered !== undefined && this.#acknowledgeAgain(message)) return
    this.#answers.set(message, answer)
    const always = this.#always.get(message.method)
    if (always === undefined) this.#tell(message)
    else this.reply(message, ...always)
  }

  #tell(message: PeerMessage): void {
    const at = this.#waiting.findIndex(({ fits }) => fits(message))
    const [waiter] = at === -1 ? [] : this.#waiting.splice(at, 1)
    if (waiter) waiter.take(message)
    else this.inbox.push(message)
  }

  /** Each 2xx to an INVITE gets its ACK (RFC 3261 §13.2.2.4). */
  #acknowledgeAgain(message: PeerMessage): boolean {
    const [number, method] = message.get('CSeq').split(' ')
    if (message.status < 200 || message.status > 299 || method !== 'INVITE') return false
    const ack = this.#acks.get(`${message.get('Call-ID')} ${number} ${message.get('To')}`)
    if (ack !== undefined) this.#socket.send(ack)
    return ack !== undefined
  }

  #hostPort(): string {
    const { host, port } = this.#socket
    return `${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  #summary(): string {
    return this.inbox.map(({ startLine }) => startLine).join(', ') || 'none'
  }
}

/** A number is a status, a string a method, or `status method` as in `200 BYE`. */
function matcher(wanted: Wanted): (message: PeerMessage) => boolean {
  if (typeof wanted === 'function') return wanted
  if (typeof wanted === 'number') return (message) => message.status === wanted
  const [status, method = ''] = wanted.split(' ')
  if (method === '') return (message) => message.method === wanted
  return (message) => message.status === Number(status) && message.get('CSeq').endsWith(method)
}

/** A session description that names itself, so that a test can tell offers from answers. */
export const sdp = (name: string, port = 4_000): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    `s=${name}`,
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} RTP/AVP 0`,
    'a=sendrecv',
    '',
  ].join('\r\n')
