/**
 * A phone on a raw socket that knows its password and does nothing by itself; shares no code with
 * Tollgate.
 */
import { hash } from 'node:crypto'
import { sdp, SipPeer, type Content, type Leg, type PeerMessage } from './sip-peer.ts'
import type { Listener } from '../../engine/sip-server/index.ts'

export interface Account {
  readonly user: string
  readonly domain: string
  readonly password: string
}

let lastTag = 0

export class DigestPhone {
  readonly peer: SipPeer
  readonly account: Account
  readonly leg: Leg
  #nonce = ''
  #count = 0
  #algorithm: 'MD5' | 'SHA-256' = 'SHA-256'

  private constructor(peer: SipPeer, account: Account) {
    this.peer = peer
    this.account = account
    this.leg = this.#legTo(`sip:${account.domain}`, `<sip:${account.user}@${account.domain}>`)
  }

  static async open(listener: Listener, account: Account): Promise<DigestPhone> {
    return new DigestPhone(await SipPeer.openPatient(listener), account)
  }

  close(): void {
    this.peer.close()
  }

  /** Takes the nonce of a challenge for what follows. */
  learn(challenge: PeerMessage): void {
    const values = [...challenge.all('WWW-Authenticate'), ...challenge.all('Proxy-Authenticate')]
    const strong = values.find((value) => value.includes('algorithm=SHA-256'))
    const chosen = strong ?? values[0] ?? ''
    this.#algorithm = strong === undefined ? 'MD5' : 'SHA-256'
    this.#nonce = /nonce="([^"]+)"/.exec(chosen)?.[1] ?? ''
    this.#count = 0
  }

  /** Credentials by the last nonce, each time with the next count. */
  credentials(method: string, uri = `sip:${this.account.domain}`): string {
    const { user, domain, password } = this.account
    this.#count += 1
    const nc = this.#count.toString(16).padStart(8, '0')
    const algorithm = this.#algorithm
    const name = algorithm === 'MD5' ? 'md5' : 'sha256'
    const digest = (text: string): string => hash(name, text, 'hex')
    const ha1 = digest(`${user}:${domain}:${password}`)
    const ha2 = digest(`${method}:${uri}`)
    const response = digest(`${ha1}:${this.#nonce}:${nc}:c0ffee:auth:${ha2}`)
    return (
      `Digest username="${user}", realm="${domain}", nonce="${this.#nonce}", uri="${uri}", ` +
      `response="${response}", algorithm=${algorithm}, cnonce="c0ffee", qop=auth, nc=${nc}`
    )
  }

  /** One REGISTER; its final answer. Headers may hold another Contact beside our own. */
  async register(headers: readonly string[] = []): Promise<PeerMessage> {
    this.peer.request('REGISTER', this.leg, { headers })
    return this.answerTo(this.leg)
  }

  /** Registers with password: 200, or whatever is said after the challenge. */
  async signOn(headers: readonly string[] = []): Promise<PeerMessage> {
    if (this.#nonce === '') this.learn(await this.register(headers))
    return this.register([...headers, `Authorization: ${this.credentials('REGISTER')}`])
  }

  /**
   * An INVITE with password to a number, of its domain if no other, challenged before; the leg of
   * its call.
   */
  async call(
    number: string,
    at = this.account.domain,
    headers: readonly string[] = [],
  ): Promise<Leg> {
    const { user, domain } = this.account
    const uri = `sip:${number}@${at}`
    const leg = this.#legTo(uri, `<sip:${user}@${domain}>;tag=${(lastTag += 1)}`)
    this.invite(leg)
    const challenge = await this.answerTo(leg)
    this.peer.request('ACK', leg)
    this.learn(challenge)
    this.invite(leg, [`Proxy-Authorization: ${this.credentials('INVITE')}`, ...headers])
    return leg
  }

  invite(leg: Leg, headers: readonly string[] = []): void {
    const content: Content = { headers, body: sdp('offer') }
    this.peer.request('INVITE', leg, content)
  }

  /** The next final answer in a leg. */
  answerTo(leg: Leg): Promise<PeerMessage> {
    return this.peer.next(
      (message) => message.status >= 200 && message.get('Call-ID') === leg.callId,
    )
  }

  #legTo(uri: string, from: string): Leg {
    return { ...this.peer.leg(uri), from, to: uri.includes('@') ? `<${uri}>` : from }
  }
}
