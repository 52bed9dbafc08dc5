/**
 * A drachtio-server that does only what a test tells it to, and otherwise what the real one does: it
 * keeps 100 back, reports `tcp` for WebSocket, refuses with a plain 503 what no application asked for,
 * takes and gives one response for each request in a dialog, and says NOK in the real one's words. It shares no code with the embedded server.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certificate } from './certificates.ts'
import { type Command, dialogOf, headerOf, meta, parse, request, sdp } from './drachtio-messages.ts'
import { freePort } from './free-port.ts'
import { Signal } from './waiting.ts'

/** A request that the application has sent. */
export interface Outgoing {
  readonly transactionId: string
  readonly dialogId: string
  readonly method: string
  readonly isInDialog: boolean
  readonly callId: string
  /** As it was echoed. */
  readonly text: string
}

export interface Answered {
  readonly body?: string
  readonly headers?: readonly string[]
}

const secret = 'cymru'
/** A real server's ring for one message of an application. Bytes. */
const maxFrame = 12_228
let lastNumber = 0

export class DrachtioPeer {
  readonly commands: Command[] = []
  readonly outgoing: Outgoing[] = []
  /** How often an application has connected, authenticated and asked for calls. */
  welcomes = 0
  #isHanging = false
  pings = 0
  /** Those that it has taken since it began to listen. */
  connections = 0
  /** What callers got because no application wanted their request. */
  readonly refused: string[] = []
  /** Responses that it could not send: its transaction ends with the first one. */
  readonly surplus: string[] = []
  /** Responses as callers got them. */
  readonly responses: string[] = []
  /** Payload sizes that one read of a real server can put together again. */
  tooLong = 0
  readonly #changed = new Signal()
  readonly #hostPorts: string
  #server: Server | undefined
  #port = 0
  #sockets: Socket[] = []
  /** Methods that an application has asked for, on the connection that it has now. */
  readonly #routes = new Set<string>()
  /** Requests in dialogs whose first response the application has heard. */
  readonly #answered = new Set<string>()
  readonly #incoming = new Map<string, string>()
  readonly #dialogs = new Set<string>()

  readonly #certificate: Certificate | undefined

  private constructor(hostPorts: string, certificate: Certificate | undefined) {
    this.#hostPorts = hostPorts
    this.#certificate = certificate
  }

  static async open(
    hostPorts = 'udp/198.51.100.10:5060,tcp/198.51.100.10:5060,ws/198.51.100.10:8080',
    certificate?: Certificate,
  ): Promise<DrachtioPeer> {
    const peer = new DrachtioPeer(hostPorts, certificate)
    await peer.listen()
    return peer
  }

  get address() {
    return { host: '127.0.0.1', port: this.#port, secret }
  }

  /** Listens on the port that it had before, if it had one. */
  async listen(): Promise<void> {
    this.#port ||= await freePort()
    this.connections = 0
    this.#server = this.#create()
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening')
  }

  #create(): Server {
    const accept = (socket: Socket): void => this.#accept(socket)
    if (this.#certificate === undefined) return createServer(accept)
    const { certFile, keyFile } = this.#certificate
    return createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, accept)
  }

  /** Goes away with all that it knew, as a process that crashes. */
  async crash(): Promise<void> {
    this.forget()
    this.#routes.clear()
    for (const socket of this.#sockets.splice(0)) socket.destroy()
    const server = this.#server
    this.#server = undefined
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()))
  }

  /** Reads and says nothing, as a process that hangs: the machine goes on to take connections. */
  hang(): void {
    this.#isHanging = true
    for (const socket of this.#sockets) socket.pause()
  }

  /** Goes on with what has arrived meanwhile. */
  resume(): void {
    this.#isHanging = false
    for (const socket of this.#sockets) socket.resume()
  }

  /** Knows no dialog and no transaction any more, but is still there. */
  forget(): void {
    this.#incoming.clear()
    this.#dialogs.clear()
  }

  until(condition: () => boolean): Promise<void> {
    return this.#changed.until(condition)
  }

  /** The next response with this status, or request with this method, of the application. */
  async next(wanted: number | string): Promise<Command> {
    const find = () =>
      this.commands.findIndex(({ status, method }) => status === wanted || method === wanted)
    await this.until(() => find() !== -1)
    const [found] = this.commands.splice(find(), 1)
    if (found === undefined) throw new Error(`no ${wanted}`)
    return found
  }

  async nextOutgoing(method: string): Promise<Outgoing> {
    const find = () => this.outgoing.findIndex((request) => request.method === method)
    await this.until(() => find() !== -1)
    const [found] = this.outgoing.splice(find(), 1)
    if (found === undefined) throw new Error(`no ${method}`)
    return found
  }

  /** A call comes in. Returns its Call-ID. */
  invite(
    options: {
      readonly protocol?: string
      readonly via?: string
      readonly callId?: string
      readonly headers?: readonly string[]
    } = {},
  ) {
    const { protocol = 'udp', via = 'UDP', callId = `in-${++lastNumber}`, headers = [] } = options
    const transactionId = `txn-${callId}`
    const text = request(
      'INVITE',
      callId,
      1,
      [
        `Via: SIP/2.0/${via} 127.0.0.1:5080;branch=z9hG4bK${callId};rport=5080`,
        'Contact: <sip:caller@127.0.0.1:5080>',
        'Max-Forwards: 70',
        ...headers,
      ],
      sdp,
    )
    this.#incoming.set(transactionId, text)
    const meta = `network|${text.length}|${protocol}|127.0.0.1|5080|18:21:07.125543`
    const leader = `s1|sip|${meta}|${transactionId}||198.51.100.10|5060|`
    if (this.#routes.has('invite')) this.deliver(leader, text)
    // Without Retry-After.
    else this.refused.push(`SIP/2.0 503 Service Unavailable\r\nCall-ID: ${callId}\r\n\r\n`)
    return callId
  }

  /** Waits until everything that was delivered so far has been handled: an OPTIONS is answered. */
  seen(): Promise<void> {
    return this.ask('OPTIONS')
  }

  /** A request outside any call, and its response. */
  async ask(method: string): Promise<void> {
    const callId = `seen-${++lastNumber}`
    const transactionId = `txn-${callId}`
    const text = request(method, callId, 1, [
      `Via: SIP/2.0/UDP 127.0.0.1:5080;branch=z9hG4bK${callId}`,
    ]).replace(';tag=ours', '')
    this.#incoming.set(transactionId, text)
    this.deliver(`s5|sip|${meta('network', text)}|${transactionId}||198.51.100.10|5060|`, text)
    const find = () => this.commands.findIndex(({ subject }) => subject === transactionId)
    await this.until(() => find() !== -1)
    this.commands.splice(find(), 1)
  }

  /** A request of the peer of `callId`, inside the dialog, or the CANCEL of its INVITE. */
  inDialog(method: string, callId: string, transactionId = `txn-${callId}`): void {
    const text = request(method, callId, method === 'BYE' ? 2 : 1, [
      `Via: SIP/2.0/UDP 127.0.0.1:5080;branch=z9hG4bK${callId}${method}`,
    ])
    if (method === 'CANCEL') this.#incoming.delete(transactionId)
    else if (method !== 'ACK') this.#incoming.set(transactionId, text)
    const dialog = method === 'CANCEL' ? '' : dialogOf(callId)
    this.deliver(`s2|sip|${meta('network', text)}|${transactionId}|${dialog}|`, text)
  }

  /** The peer of `callId` offers other media. */
  reinvite(callId: string, transactionId: string): void {
    const via = `Via: SIP/2.0/UDP 127.0.0.1:5080;branch=z9hG4bK${transactionId}`
    const text = request('INVITE', callId, 3, [via, 'Contact: <sip:caller@127.0.0.1:5080>'], sdp)
    const inDialog = text.replace(/(\r\nTo: [^\r]*)/, '$1;tag=ours')
    this.#incoming.set(transactionId, inDialog)
    const leader = `s2|sip|${meta('network', inDialog)}|${transactionId}|${dialogOf(callId)}|`
    this.deliver(leader, inDialog)
  }

  /** A BYE that the server itself has sent. */
  unsolicitedBye(dialogId: string, reason: string): void {
    this.#dialogs.delete(dialogId)
    const callId = dialogId.replace(/;.*/, '')
    const text = request('BYE', callId, 9, [`Reason: SIP ;cause=200 ;text="${reason}"`])
    this.deliver(`s3|sip|${meta('application', text)}|unsolicited|${dialogId}|`, text)
  }

  /**
   * The answer to a request of the application. Of those to one request in a dialog the application
   * hears the first alone, and be it provisional.
   */
  answer(sent: Outgoing, status: number, more: Answered = {}): void {
    const { transactionId, dialogId, text, isInDialog } = sent
    if (isInDialog) {
      if (this.#answered.has(transactionId)) return
      this.#answered.add(transactionId)
    }
    const copied = text.split('\r\n').filter((line) => /^(From|Call-ID|CSeq):/.test(line))
    const to = `To: ${headerOf(text, 'To')}`
    const body = more.body ?? ''
    const lines = [
      `SIP/2.0 ${status} Any`,
      'Via: SIP/2.0/UDP 198.51.100.10:5060;branch=z9hG4bKout',
      ...copied,
      to.includes(';tag=') ? to : `${to};tag=callee`,
      'Contact: <sip:callee@192.0.2.20:5060>',
      ...(more.headers ?? []),
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
    ]
    const response = `${lines.join('\r\n')}\r\n\r\n${body}`
    if (status >= 200 && status < 300 && dialogId !== '') this.#dialogs.add(dialogId)
    this.deliver(`s4|sip|${meta('network', response)}|${transactionId}|${dialogId}|`, response)
  }

  deliver(leader: string, text: string): void {
    this.#write(`${leader}\r\n${text}`)
  }

  /** Bytes that are no frame. */
  babble(bytes: string): void {
    for (const socket of this.#sockets) socket.write(bytes)
  }

  #write(payload: string): void {
    for (const socket of this.#sockets) socket.write(`${Buffer.byteLength(payload)}#${payload}`)
  }

  #accept(socket: Socket): void {
    this.#sockets.push(socket)
    this.connections += 1
    this.#changed.fire()
    let buffered = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#routes.clear())
    socket.on('close', () => (this.#sockets = this.#sockets.filter((other) => other !== socket)))
    socket.on('data', (chunk) => {
      buffered = Buffer.concat([buffered, chunk])
      for (;;) {
        const hash = buffered.indexOf('#')
        const length = Number(buffered.subarray(0, Math.max(0, hash)).toString())
        if (hash === -1 || buffered.length < hash + 1 + length) break
        if (length > maxFrame) this.tooLong += 1
        else this.#handle(parse(buffered.subarray(hash + 1, hash + 1 + length).toString()))
        buffered = buffered.subarray(hash + 1 + length)
      }
    })
    if (this.#isHanging) socket.pause()
  }

  #handle(command: Command): void {
    const { id, type, subject } = command
    if (type === 'ping') return this.#ping(id)
    this.commands.push(command)
    if (type === 'authenticate') this.#authenticate(id, subject)
    else if (type === 'route') this.#route(id, subject)
    else if (type !== 'sip') this.#write(`s0|response|${id}|OK`)
    else if (command.status > 0) this.#respond(command)
    else this.#request(command)
    this.#changed.fire()
  }

  #ping(id: string): void {
    this.pings += 1
    this.#write(`s0|response|${id}|OK|pong`)
    this.#changed.fire()
  }

  #authenticate(id: string, given: string): void {
    if (given !== secret) return this.#write(`s0|response|${id}|NO|incorrect secret`)
    return this.#write(`s0|response|${id}|OK|${this.#hostPorts}|v0.9.2|${this.#hostPorts}`)
  }

  #route(id: string, verb: string): void {
    this.#routes.add(verb)
    if (verb === 'invite') this.welcomes += 1
    this.#write(`s0|response|${id}|OK`)
  }

  /** One response for each request but a new INVITE, which may have provisional ones before. */
  #respond({ id, subject: transactionId, sip, status }: Command): void {
    const request = this.#incoming.get(transactionId)
    if (request === undefined) {
      this.surplus.push(sip.slice(0, sip.indexOf('\r\n')))
      return this.#write(`s0|response|${id}|NOK|Response not sent due to unknown transaction`)
    }
    const callId = headerOf(request, 'Call-ID')
    const isCall = request.startsWith('INVITE ') && !/\r\nTo:[^\r]*;tag=/.test(request)
    if (status >= 200 || !isCall) this.#incoming.delete(transactionId)
    const dialogId = dialogOf(callId)
    if (isCall && status === 200) this.#dialogs.add(dialogId)
    const isReliable = headerOf(sip, 'Require').includes('100rel')
    const text = [
      sip.slice(0, sip.indexOf('\r\n')),
      `From: ${headerOf(request, 'From')}`,
      `To: ${headerOf(request, 'To').replace(/;tag=.*/, '')};tag=ours`,
      `Call-ID: ${callId}`,
      `CSeq: ${headerOf(request, 'CSeq')}`,
      // A caller may require reliability: without the application's word its responses have no Contact.
      ...(status >= 200 || isReliable ? ['Contact: <sip:198.51.100.10:5060>'] : []),
      '',
      sip.slice(sip.indexOf('\r\n\r\n') + 4),
    ].join('\r\n')
    this.responses.push(text)
    const fields = `${meta('application', text)}|${transactionId}|${dialogId}||Msg sent:|`
    return this.#write(`s0|response|${id}|OK|${fields}\r\n${text}`)
  }

  #request({ id, subject, dialogId, sip, method }: Command): void {
    if (dialogId !== '' && !this.#dialogs.has(dialogId)) {
      const nok =
        method === 'ACK'
          ? 'ACK for non-success final response is automatically generated by server'
          : 'unable to find dialog for dialog id provided'
      return this.#write(`s0|response|${id}|NOK|Server error: ${nok}`)
    }
    const number = ++lastNumber
    const isInDialog = dialogId !== ''
    const callId = dialogId === '' ? `out-${number}` : dialogId.replace(/;.*/, '')
    const transactionId = `out-txn-${number}`
    const text = [
      sip.slice(0, sip.indexOf('\r\n')),
      `From: <sip:us@198.51.100.10>;tag=us${number}`,
      `To: ${headerOf(sip, 'To') || '<sip:callee@192.0.2.20>'}`,
      `Call-ID: ${callId}`,
      `CSeq: ${number} ${method}`,
      'Contact: <sip:198.51.100.10:5060>',
      '',
      sip.slice(sip.indexOf('\r\n\r\n') + 4),
    ].join('\r\n')
    this.#write(
      `s0|response|${id}|OK|${meta('application', text)}|${transactionId}|Msg sent:|\r\n${text}`,
    )
    if (method === 'ACK' || method === 'CANCEL') {
      this.outgoing.push({ transactionId: subject, dialogId, method, isInDialog, callId, text })
      return undefined
    }
    const formed =
      method === 'INVITE' && dialogId === '' ? `${callId};from-tag=us${number}` : dialogId
    const sent = { transactionId, dialogId: formed, method, isInDialog, callId, text }
    if (method === 'BYE') {
      this.#dialogs.delete(dialogId)
      this.answer(sent, 200)
    }
    this.outgoing.push(sent)
    return undefined
  }
}
