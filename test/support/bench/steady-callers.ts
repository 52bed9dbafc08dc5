/** Callers on one UDP socket whose calls last until they are told to end. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

const sdp =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'
const tickMs = 5

export class SteadyCallers {
  /** Calls that were answered, and those that were hung up in order. */
  answered = 0
  ended = 0
  placed = 0
  /** Refused with 503, and so told to come back. */
  refused = 0
  readonly #socket: Socket
  readonly #port: number
  readonly #targetPort: number
  /** To with its tag, by Call-ID, of calls that go on. */
  readonly #live = new Map<string, string>()
  #hangUpAfterMs = Infinity

  private constructor(socket: Socket, targetPort: number) {
    this.#socket = socket
    this.#port = socket.address().port
    this.#targetPort = targetPort
    socket.on('message', (bytes) => this.#receive(bytes.toString()))
  }

  static async open(targetPort: number): Promise<SteadyCallers> {
    const size = 4 * 1024 * 1024
    const socket = createSocket({ type: 'udp4', recvBufferSize: size, sendBufferSize: size })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new SteadyCallers(socket, targetPort)
  }

  /** Places `count` calls at `rate` a second, and waits until they are answered, or no more come. */
  async place(count: number, rate: number, hangUpAfterMs = Infinity): Promise<void> {
    this.#hangUpAfterMs = hangUpAfterMs
    const startedAt = performance.now()
    for (let done = 0; done < count;) {
      const owed = Math.min(count, Math.floor(((performance.now() - startedAt) * rate) / 1_000))
      for (; done < owed; done++) this.#invite()
      await new Promise((resolve) => setTimeout(resolve, tickMs))
    }
    await this.#quiet(() => this.answered)
    if (hangUpAfterMs !== Infinity) await this.#quiet(() => this.ended)
  }

  /** Hangs every call up, at `rate` a second. */
  async hangUpAll(rate: number): Promise<void> {
    const perTick = Math.max(1, Math.round((rate * tickMs) / 1_000))
    while (this.#live.size > 0) {
      for (const callId of [...this.#live.keys()].slice(0, perTick)) this.#bye(callId)
      await new Promise((resolve) => setTimeout(resolve, tickMs))
    }
    await this.#quiet(() => this.ended)
  }

  close(): void {
    this.#socket.close()
  }

  /** Until a count has not moved for a second. */
  async #quiet(count: () => number): Promise<void> {
    for (let before = -1; before !== count();) {
      before = count()
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  }

  #invite(): void {
    const callId = `call-${this.#port}-${++this.placed}`
    this.#send('INVITE', callId, 1, '<sip:18005551212@127.0.0.1>', sdp)
  }

  #bye(callId: string): void {
    const to = this.#live.get(callId)
    this.#live.delete(callId)
    if (to !== undefined) this.#send('BYE', callId, 2, to)
  }

  #receive(text: string): void {
    if (text.startsWith('SIP/2.0 503')) this.refused += 1
    if (!text.startsWith('SIP/2.0 200')) return
    const header = (name: string) => new RegExp(`^${name}: *(.*?)\\r$`, 'm').exec(text)?.[1] ?? ''
    const [callId, to] = [header('Call-ID'), header('To')]
    if (header('CSeq') !== '1 INVITE') {
      this.ended += 1
      return
    }
    if (!this.#live.has(callId)) {
      this.answered += 1
      this.#live.set(callId, to)
      if (this.#hangUpAfterMs !== Infinity)
        setTimeout(() => this.#bye(callId), this.#hangUpAfterMs).unref()
    }
    this.#send('ACK', callId, 1, to)
  }

  #send(method: string, callId: string, cseq: number, to: string, body = ''): void {
    const type = body === '' ? '' : 'Content-Type: application/sdp\r\n'
    this.#socket.send(
      `${method} sip:18005551212@127.0.0.1:${this.#targetPort} SIP/2.0\r\n` +
        `Via: SIP/2.0/UDP 127.0.0.1:${this.#port};branch=z9hG4bK-${callId}-${method}\r\n` +
        `Max-Forwards: 70\r\nFrom: <sip:15550001111@127.0.0.1>;tag=${callId}\r\nTo: ${to}\r\n` +
        `Call-ID: ${callId}\r\nCSeq: ${cseq} ${method}\r\n` +
        `Contact: <sip:15550001111@127.0.0.1:${this.#port}>\r\n${type}` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
      this.#targetPort,
      '127.0.0.1',
    )
  }
}
