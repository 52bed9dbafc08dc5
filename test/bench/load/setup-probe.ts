/**
 * Single calls beside a load, timed by the clock of this process in nanoseconds: SIPp's clock moves
 * in steps of 4 ms. Each call is hung up as soon as it is answered.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { deferred } from '../../support/deferred.ts'

/** A call without an answer for so long counts with this time, so that it cannot hide. */
const LONGEST_MS = 4_000

/** Milliseconds from the INVITE of a call. */
export interface Setup {
  readonly ringingMs: number
  readonly answeredMs: number
}

interface Waiting {
  readonly begin: number
  ringingMs: number
  readonly answered: (text: string) => void
}

export class SetupProbe {
  readonly #socket: Socket
  readonly #caller: string
  readonly #waiting = new Map<string, Waiting>()
  #placed = 0

  private constructor(socket: Socket, caller: string) {
    this.#socket = socket
    this.#caller = caller
    socket.on('message', (bytes) => {
      const text = bytes.toString()
      if (!/^CSeq: *1 INVITE\r$/im.test(text)) return
      const call = this.#waiting.get(headers(text, 'Call-ID')[0] ?? '')
      if (text.startsWith('SIP/2.0 200')) call?.answered(text)
      else if (call && text.startsWith('SIP/2.0 180'))
        call.ringingMs = performance.now() - call.begin
    })
  }

  static async open(caller: string): Promise<SetupProbe> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new SetupProbe(socket, caller)
  }

  close(): void {
    this.#socket.close()
  }

  /** Places a call to this port of 127.0.0.1. */
  async place(targetPort: number): Promise<Setup> {
    this.#placed += 1
    const callId = `probe-${this.#socket.address().port}-${this.#placed}`
    const service = `sip:18005551212@127.0.0.1:${targetPort}`
    const begin = performance.now()
    const { promise, resolve: answered } = deferred<string>()
    const call: Waiting = { begin, ringingMs: LONGEST_MS, answered }
    this.#waiting.set(callId, call)
    this.#send(targetPort, 'INVITE', callId, { uri: service, to: `<${service}>`, routes: [] })
    const ok = await Promise.race([promise, pause(LONGEST_MS)])
    const answeredMs = performance.now() - begin
    this.#waiting.delete(callId)
    if (ok === undefined) return { ringingMs: call.ringingMs, answeredMs: LONGEST_MS }
    const dialog = {
      uri: /<(.*?)>/.exec(headers(ok, 'Contact')[0] ?? '')?.[1] ?? service,
      to: headers(ok, 'To')[0] ?? '',
      routes: headers(ok, 'Record-Route').toReversed(),
    }
    this.#send(targetPort, 'ACK', callId, dialog)
    this.#send(targetPort, 'BYE', callId, dialog)
    return { ringingMs: Math.min(call.ringingMs, answeredMs), answeredMs }
  }

  #send(targetPort: number, method: keyof typeof numbers, callId: string, dialog: Dialog): void {
    const { port } = this.#socket.address()
    const body = method === 'INVITE' ? sdp : ''
    const text = [
      `${method} ${dialog.uri} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bK-${callId}-${method}`,
      'Max-Forwards: 70',
      ...dialog.routes.map((route) => `Route: ${route}`),
      `From: <sip:${this.#caller}@127.0.0.1:${port}>;tag=${callId}`,
      `To: ${dialog.to}`,
      `Call-ID: ${callId}`,
      `CSeq: ${numbers[method]} ${method}`,
      `Contact: <sip:${this.#caller}@127.0.0.1:${port}>`,
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
      '',
      body,
    ]
    this.#socket.send(text.join('\r\n'), targetPort, '127.0.0.1')
  }
}

interface Dialog {
  /** The Request-URI. */
  readonly uri: string
  readonly to: string
  readonly routes: readonly string[]
}

const numbers = { INVITE: 1, ACK: 1, BYE: 2 } as const

const headers = (text: string, name: string): string[] =>
  [...text.matchAll(new RegExp(`^${name}: *(.*?)\\r$`, 'gim'))].map(([, value = '']) => value)

const sdp =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n'
