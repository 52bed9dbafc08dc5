/** Many phones on one UDP socket, as light as they can be: they answer challenges and refresh. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { hash } from 'node:crypto'

interface Phone {
  readonly user: string
  readonly ha1: string
  cseq: number
  nonce: string
  nc: number
  sentAt: number
}

export class RegisteringPhones {
  readonly #socket: Socket
  readonly #sipPort: number
  readonly #domain: string
  readonly #expires: number
  readonly #phones: readonly Phone[]
  readonly #byUser = new Map<string, Phone>()
  #onDone: ((user: string) => void) | undefined
  /** From each REGISTER to its response, since they were taken. */
  #timesMs: number[] = []
  sent = 0
  accepted = 0
  failed = 0

  private constructor(
    socket: Socket,
    sipPort: number,
    domain: string,
    users: readonly string[],
    expires: number,
  ) {
    this.#socket = socket
    this.#sipPort = sipPort
    this.#domain = domain
    this.#expires = expires
    this.#phones = users.map((user) => ({
      user,
      ha1: hash('md5', `${user}:${domain}:secret-${user}`, 'hex'),
      cseq: 0,
      nonce: '',
      nc: 0,
      sentAt: 0,
    }))
    for (const phone of this.#phones) this.#byUser.set(phone.user, phone)
    socket.on('message', (bytes) => this.#receive(bytes.toString('latin1')))
  }

  static async open(
    sipPort: number,
    domain: string,
    users: readonly string[],
    expires: number,
  ): Promise<RegisteringPhones> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new RegisteringPhones(socket, sipPort, domain, users, expires)
  }

  /** All phones, `window` at a time; resolves when each has its 200 or its refusal. */
  registerAll(window: number): Promise<void> {
    let next = 0
    let waiting = this.#phones.length
    return new Promise((resolve) => {
      const start = (): void => {
        const phone = this.#phones[next++]
        if (phone) this.#register(phone)
      }
      this.#onDone = () => {
        if (--waiting === 0) resolve()
        start()
      }
      for (let count = 0; count < window; count++) start()
    })
  }

  /** Refreshes them in turn, `perSecond` each second, for so long. */
  async refresh(perSecond: number, seconds: number): Promise<void> {
    this.#onDone = undefined
    const startedAt = performance.now()
    for (let done = 0; done < perSecond * seconds;) {
      const due = ((performance.now() - startedAt) * perSecond) / 1_000
      while (done < due) {
        const phone = this.#phones[done++ % this.#phones.length]
        if (phone) this.#register(phone)
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** In ascending order, and none again. */
  takeTimesMs(): readonly number[] {
    const times = this.#timesMs.toSorted((a, b) => a - b)
    this.#timesMs = []
    return times
  }

  close(): void {
    this.#socket.close()
  }

  #register(phone: Phone): void {
    const { port } = this.#socket.address()
    phone.cseq += 1
    const text = [
      `REGISTER sip:${this.#domain} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bK${phone.user}-${phone.cseq};rport`,
      'Max-Forwards: 70',
      `From: <sip:${phone.user}@${this.#domain}>;tag=${phone.user}`,
      `To: <sip:${phone.user}@${this.#domain}>`,
      `Call-ID: ${phone.user}-registration`,
      `CSeq: ${phone.cseq} REGISTER`,
      `Contact: <sip:${phone.user}@127.0.0.1:${port}>`,
      `Expires: ${this.#expires}`,
      'User-Agent: Bench Phone 1',
      ...(phone.nonce === '' ? [] : [`Authorization: ${this.#credentials(phone)}`]),
      'Content-Length: 0',
      '',
      '',
    ].join('\r\n')
    this.sent += 1
    phone.sentAt = performance.now()
    this.#socket.send(text, this.#sipPort, '127.0.0.1')
  }

  #credentials(phone: Phone): string {
    phone.nc += 1
    const nc = phone.nc.toString(16).padStart(8, '0')
    const ha2 = hash('md5', `REGISTER:sip:${this.#domain}`, 'hex')
    const answer = hash('md5', `${phone.ha1}:${phone.nonce}:${nc}:c:auth:${ha2}`, 'hex')
    return (
      `Digest username="${phone.user}", realm="${this.#domain}", nonce="${phone.nonce}", ` +
      `uri="sip:${this.#domain}", response="${answer}", algorithm=MD5, cnonce="c", qop=auth, nc=${nc}`
    )
  }

  #receive(text: string): void {
    const phone = this.#byUser.get(/\r\nCall-ID: (\d+)-/.exec(text)?.[1] ?? '')
    if (phone === undefined) return
    this.#timesMs.push(performance.now() - phone.sentAt)
    const nonce = /nonce="([^"]+)", algorithm=MD5/.exec(text)?.[1]
    if (text.startsWith('SIP/2.0 401') && nonce !== undefined) {
      phone.nonce = nonce
      phone.nc = 0
      return this.#register(phone)
    }
    if (text.startsWith('SIP/2.0 200')) this.accepted += 1
    else this.failed += 1
    this.#onDone?.(phone.user)
  }
}
