/** Callers on one UDP socket that note when each of their calls was answered. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

/** Calls talk for a random time up to this. */
const longestTalkMs = 3_000
const tickMs = 10

export class UdpCallers {
  /** Call-ID → when its 200 came, on the monotonic clock in ms. */
  readonly answered = new Map<string, number>()
  placed = 0
  readonly #socket: Socket
  readonly #targetPort: number
  readonly #caller: string
  readonly #random: () => number
  readonly #hangUps = new Set<NodeJS.Timeout>()
  #ticking: NodeJS.Timeout | undefined

  private constructor(socket: Socket, targetPort: number, caller: string, random: () => number) {
    this.#socket = socket
    this.#targetPort = targetPort
    this.#caller = caller
    this.#random = random
    socket.on('message', (bytes) => this.#receive(bytes.toString()))
  }

  static async open(targetPort: number, caller: string, random: () => number): Promise<UdpCallers> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new UdpCallers(socket, targetPort, caller, random)
  }

  /** Places `rate` calls a second until `stop`. */
  start(rate: number): void {
    let owed = 0
    this.#ticking = setInterval(() => {
      for (owed += (rate * tickMs) / 1_000; owed >= 1; owed -= 1) this.#place()
    }, tickMs)
  }

  /** Says nothing any more; what was noted stays. */
  stop(): void {
    clearInterval(this.#ticking)
    for (const timer of this.#hangUps) clearTimeout(timer)
    this.#hangUps.clear()
  }

  forget(): void {
    this.answered.clear()
  }

  close(): void {
    this.stop()
    this.#socket.close()
  }

  #place(): void {
    this.placed += 1
    const callId = `crash-${this.#socket.address().port}-${this.placed}`
    this.#send('INVITE', callId, 1, `<sip:18005551212@127.0.0.1>`)
  }

  #receive(text: string): void {
    const header = (name: string) => new RegExp(`^${name}: *(.*?)\\r$`, 'm').exec(text)?.[1] ?? ''
    if (!text.startsWith('SIP/2.0 200') || header('CSeq') !== '1 INVITE') return
    const callId = header('Call-ID')
    if (this.answered.has(callId) || this.#ticking === undefined) return
    this.answered.set(callId, performance.now())
    const to = header('To')
    this.#send('ACK', callId, 1, to)
    const timer = setTimeout(() => {
      this.#hangUps.delete(timer)
      this.#send('BYE', callId, 2, to)
    }, this.#random() * longestTalkMs)
    this.#hangUps.add(timer)
  }

  #send(method: string, callId: string, cseq: number, to: string): void {
    const { port } = this.#socket.address()
    const body = method === 'INVITE' ? sdp : ''
    const text = [
      `${method} sip:18005551212@127.0.0.1:${this.#targetPort} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bK-${callId}-${cseq}${method}`,
      'Max-Forwards: 70',
      `From: <sip:${this.#caller}@127.0.0.1>;tag=${callId}`,
      `To: ${to}`,
      `Call-ID: ${callId}`,
      `CSeq: ${cseq} ${method}`,
      `Contact: <sip:${this.#caller}@127.0.0.1:${port}>`,
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
      '',
      body,
    ]
    this.#socket.send(text.join('\r\n'), this.#targetPort, '127.0.0.1')
  }
}

const sdp =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'
