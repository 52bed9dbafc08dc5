/** SIP.js under Node: the SIP half of a browser phone, with a fixed session description. */
import {
  type Invitation,
  Inviter,
  Registerer,
  RegistererState,
  type Session,
  type SessionDescriptionHandler,
  SessionState,
  UserAgent,
} from 'sip.js'
import { WebSocket } from 'ws'
import { patienceMs, Signal } from './waiting.ts'

export interface WebPhoneOptions {
  readonly user: string
  readonly password: string
  readonly domain: string
  /** `ws://…` or `wss://…`. */
  readonly server: string
  /** PEM of the authority of Tollgate's certificate. */
  readonly ca: Buffer
}

const description =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n' +
  'm=audio 40000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=sendrecv\r\n'

/** No media: it offers the same to every peer and accepts every peer. */
class FixedDescription implements SessionDescriptionHandler {
  readonly heard: string[]

  constructor(heard: string[]) {
    this.heard = heard
  }

  getDescription() {
    return Promise.resolve({ body: description, contentType: 'application/sdp' })
  }

  hasDescription(contentType: string): boolean {
    return contentType === 'application/sdp'
  }

  setDescription(sdp: string): Promise<void> {
    this.heard.push(sdp)
    return Promise.resolve()
  }

  sendDtmf(): boolean {
    return false
  }

  close(): void {
    // There is nothing to release.
  }
}

export class WebPhone {
  readonly userAgent: UserAgent
  /** Session descriptions of the other side. */
  readonly heard: string[] = []
  /** Calls that came in, not yet taken. */
  readonly #invitations: Invitation[] = []
  readonly #changed = new Signal()
  readonly #registerer: Registerer
  readonly #domain: string

  constructor({ user, password, domain, server, ca }: WebPhoneOptions) {
    // SIP.js takes the browser's; this one trusts the test's authority.
    class Browser extends WebSocket {
      constructor(url: string, protocol: string) {
        super(url, protocol, { ca })
      }
    }
    Object.assign(globalThis, { WebSocket: Browser })
    const uri = UserAgent.makeURI(`sip:${user}@${domain}`)
    if (uri === undefined) throw new Error('not a SIP URI')
    this.#domain = domain
    this.userAgent = new UserAgent({
      uri,
      transportOptions: { server, connectionTimeout: patienceMs / 1_000 },
      authorizationUsername: user,
      authorizationPassword: password,
      sessionDescriptionHandlerFactory: () => new FixedDescription(this.heard),
      logBuiltinEnabled: false,
      delegate: {
        onInvite: (invitation) => {
          this.#invitations.push(invitation)
          this.#changed.fire()
        },
      },
    })
    this.#registerer = new Registerer(this.userAgent, { expires: 600 })
    this.#registerer.stateChange.addListener(() => this.#changed.fire())
  }

  async connect(): Promise<void> {
    await this.userAgent.start()
  }

  async register(): Promise<void> {
    const failed = new Promise<never>((_resolve, reject) => {
      void this.#registerer.register({
        requestDelegate: {
          onReject: ({ message }) =>
            reject(new Error(`${message.statusCode} ${message.reasonPhrase}`)),
        },
      })
    })
    await Promise.race([
      failed,
      this.#until(() => this.#registerer.state === RegistererState.Registered, 'not registered'),
    ])
  }

  /** Calls a number of its own domain; resolves when it is answered. */
  async call(number: string): Promise<Session> {
    const target = UserAgent.makeURI(`sip:${number}@${this.#domain}`)
    if (target === undefined) throw new Error('not a SIP URI')
    const session = new Inviter(this.userAgent, target)
    await session.invite()
    await this.reaches(session, SessionState.Established)
    return session
  }

  /** The next call that comes in, unanswered. */
  async invitation(): Promise<Invitation> {
    await this.#until(() => this.#invitations.length > 0, 'no call arrived')
    const invitation = this.#invitations.shift()
    if (invitation === undefined) throw new Error('no call arrived')
    return invitation
  }

  /** Takes the next call that comes in; resolves when its ACK is there. */
  async answer(): Promise<Session> {
    const invitation = await this.invitation()
    await invitation.accept()
    await this.reaches(invitation, SessionState.Established)
    return invitation
  }

  async reaches(session: Session, state: SessionState): Promise<void> {
    session.stateChange.addListener(() => this.#changed.fire())
    await this.#until(
      () => session.state === state || session.state === SessionState.Terminated,
      `the call is not ${state}`,
    )
    if (session.state !== state) throw new Error(`the call ended; it should be ${state}`)
  }

  /** As when the page is closed: nothing is said. */
  async vanish(): Promise<void> {
    await this.userAgent.transport.disconnect()
  }

  async stop(): Promise<void> {
    await this.userAgent.stop()
  }

  async #until(condition: () => boolean, complaint: string): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`web phone: ${complaint}`)), patienceMs)
    })
    await Promise.race([this.#changed.until(condition), late]).finally(() => clearTimeout(timer))
  }
}
