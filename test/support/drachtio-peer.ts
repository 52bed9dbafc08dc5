/**
 * A drachtio-server that does only what a test tells it to, and otherwise what the real one does:
 * it keeps 100 back, takes and gives one response for each request in a dialog, and says NOK in the
 * real one's words. It shares no code with ours.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certificate } from './certificates.ts'
import { freePort } from './free-port.ts'
import { sdp } from './sip-peer.ts'
import { Signal } from './waiting.ts'

/** A message that the application wanted sent. */
interface Command {
  readonly id: string
  /** `authenticate`, `route`, `sip`, … */
  readonly type: string
  /**
   * The subject of the command: a secret, a verb, or the transaction that a response or a CANCEL
   * belongs to.
   */
  readonly subject: string
  readonly dialogId: string
  readonly sip: string
  readonly method: string
  /** 0 for a request. */
  readonly status: number
}

/** A request that the application has sent, as it was echoed. */
export interface Outgoing {
  readonly transactionId: string
  readonly dialogId: string
  readonly method: string
  readonly isInDialog: boolean
  readonly text: string
}

const secret = 'cymru'
let lastNumber = 0

const dialogOf = (callId: string): string => `${callId};from-tag=caller`

const meta = (source: string, text: string): string =>
  `${source}|${text.length}|udp|127.0.0.1|5080|18:21:07.125543`

const headerOf = (text: string, name: string): string =>
  new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)`, 'i').exec(text)?.[1] ?? ''

const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4)

const startLineOf = (text: string): string => text.slice(0, text.indexOf('\r\n'))

/** A request of the caller; `isInDialog`: it knows our tag. */
function request(
  method: string,
  callId: string,
  { cseq = 1, isInDialog = true, branch = callId, headers = [] as readonly string[], body = '' },
): string {
  return [
    `${method} sip:18005551212@198.51.100.10 SIP/2.0`,
    `Via: SIP/2.0/UDP 127.0.0.1:5080;branch=z9hG4bK${branch};rport=5080`,
    'Contact: <sip:caller@127.0.0.1:5080>',
    'Max-Forwards: 70',
    ...headers,
    'From: <sip:15550001111@127.0.0.1:5080>;tag=caller',
    `To: <sip:18005551212@198.51.100.10>${isInDialog ? ';tag=ours' : ''}`,
    `Call-ID: ${callId}`,
    `CSeq: ${cseq} ${method}`,
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

function parse(payload: string): Command {
  const [leader = '', ...lines] = payload.split('\r\n')
  const [id = '', type = '', subject = '', dialogId = ''] = leader.split('|')
  const sip = lines.join('\r\n')
  const [first = '', second = ''] = sip.split(' ')
  const isResponse = first.startsWith('SIP/')
  const [method, status] = isResponse ? ['', Number(second)] : [first, 0]
  return { id, type, subject, dialogId, sip, method, status }
}

export class DrachtioPeer {
  readonly commands: Command[] = []
  readonly outgoing: Outgoing[] = []
  /** How often an application has connected, authenticated and asked for calls. */
  welcomes = 0
  pings = 0
  /** Those that it has taken since it began to listen. */
  connections = 0
  /** Responses as callers got them. */
  readonly responses: string[] = []
  readonly #changed = new Signal()
  readonly #hostPorts: string
  readonly #certificate: Certificate | undefined
  #isHanging = false
  #server: Server | undefined
  #port = 0
  #sockets: Socket[] = []
  /** Requests in dialogs whose first response the application has heard. */
  readonly #answered = new Set<string>()
  readonly #incoming = new Map<string, string>()
  readonly #dialogs = new Set<string>()

  private constructor(hostPorts: string, certificate: Certificate | undefined) {
    this.#hostPorts = hostPorts
    this.#certificate = certificate
  }

  static async open(
    hostPorts = 'udp/198.51.100.10:5060',
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
    const accept = (socket: Socket): void => this.#accept(socket)
    const { certFile, keyFile } = this.#certificate ?? {}
    this.#server =
      certFile === undefined || keyFile === undefined
        ? createServer(accept)
        : createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, accept)
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening')
  }

  /** Goes away with all that it knew, as a process that crashes. */
  async crash(): Promise<void> {
    this.forget()
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
  next(wanted: number | string): Promise<Command> {
    return this.#take(this.commands, ({ status, method }) => status === wanted || method === wanted)
  }

  nextOutgoing(wanted: string): Promise<Outgoing> {
    return this.#take(this.outgoing, ({ method }) => method === wanted)
  }

  async #take<T>(from: T[], isWanted: (item: T) => boolean): Promise<T> {
    await this.until(() => from.some(isWanted))
    const [found] = from.splice(from.findIndex(isWanted), 1)
    if (found === undefined) throw new Error('it is gone')
    return found
  }

  /** A call comes in. Returns its Call-ID. */
  invite(headers: readonly string[] = []): string {
    const callId = `in-${++lastNumber}`
    const content = { isInDialog: false, headers, body: sdp('offer') }
    this.#receive(request('INVITE', callId, content), `txn-${callId}`)
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
    this.#receive(request(method, callId, { isInDialog: false }), transactionId)
    await this.#take(this.commands, ({ subject }) => subject === transactionId)
  }

  /** A request of the peer of `callId`, inside the dialog, or the CANCEL of its INVITE. */
  inDialog(method: string, callId: string, transactionId = `txn-${callId}`): void {
    const isInDialog = method !== 'CANCEL'
    const cseq = method === 'BYE' ? 2 : 1
    const text = request(method, callId, { cseq, isInDialog, branch: `${callId}${method}` })
    if (method === 'CANCEL') this.#incoming.delete(transactionId)
    else if (method !== 'ACK') this.#incoming.set(transactionId, text)
    const dialog = isInDialog ? dialogOf(callId) : ''
    this.deliver(`s2|sip|${meta('network', text)}|${transactionId}|${dialog}|`, text)
  }

  /** The peer of `callId` offers other media. */
  reinvite(callId: string, transactionId: string): void {
    const content = { cseq: 3, branch: transactionId, body: sdp('again') }
    const text = request('INVITE', callId, content)
    this.#incoming.set(transactionId, text)
    const leader = `s2|sip|${meta('network', text)}|${transactionId}|${dialogOf(callId)}|`
    this.deliver(leader, text)
  }

  /** A BYE that the server itself has sent. */
  unsolicitedBye(dialogId: string, reason: string): void {
    this.#dialogs.delete(dialogId)
    const headers = [`Reason: SIP ;cause=200 ;text="${reason}"`]
    const text = request('BYE', dialogId.replace(/;.*/, ''), { cseq: 9, headers })
    this.deliver(`s3|sip|${meta('application', text)}|unsolicited|${dialogId}|`, text)
  }

  /**
   * The answer to a request of the application. Of those to one request in a dialog the application
   * hears the first alone, and be it provisional.
   */
  answer(sent: Outgoing, status: number, body = ''): void {
    const { transactionId, dialogId, text, isInDialog } = sent
    if (isInDialog && this.#answered.has(transactionId)) return
    this.#answered.add(transactionId)
    const to = `To: ${headerOf(text, 'To')}`
    const response = [
      `SIP/2.0 ${status} Any`,
      'Via: SIP/2.0/UDP 198.51.100.10:5060;branch=z9hG4bKout',
      ...text.split('\r\n').filter((line) => /^(From|Call-ID|CSeq):/.test(line)),
      to.includes(';tag=') ? to : `${to};tag=callee`,
      'Contact: <sip:callee@192.0.2.20:5060>',
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n')
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

  #receive(text: string, transactionId: string): void {
    this.#incoming.set(transactionId, text)
    this.deliver(`s1|sip|${meta('network', text)}|${transactionId}||198.51.100.10|5060|`, text)
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
    socket.on('close', () => (this.#sockets = this.#sockets.filter((other) => other !== socket)))
    socket.on('data', (chunk) => {
      buffered = Buffer.concat([buffered, chunk])
      for (;;) {
        const start = buffered.indexOf('#') + 1
        const end = start + Number(buffered.subarray(0, Math.max(0, start - 1)).toString())
        if (start === 0 || buffered.length < end) break
        this.#handle(parse(buffered.subarray(start, end).toString()))
        buffered = buffered.subarray(end)
      }
    })
    if (this.#isHanging) socket.pause()
  }

  #handle(command: Command): void {
    const { id, type, subject, status } = command
    if (type === 'ping') this.pings += 1
    else this.commands.push(command)
    if (type === 'route' && subject === 'invite') this.welcomes += 1
    if (type === 'authenticate') this.#authenticate(id, subject)
    else if (type !== 'sip') this.#write(`s0|response|${id}|OK${type === 'ping' ? '|pong' : ''}`)
    else if (status > 0) this.#respond(command)
    else this.#request(command)
    this.#changed.fire()
  }

  #authenticate(id: string, given: string): void {
    if (given !== secret) return this.#write(`s0|response|${id}|NO|incorrect secret`)
    return this.#write(`s0|response|${id}|OK|${this.#hostPorts}|v0.9.2|${this.#hostPorts}`)
  }

  /** One response for each request but a new INVITE, which may have provisional ones before. */
  #respond({ id, subject: transactionId, sip, status }: Command): void {
    const asked = this.#incoming.get(transactionId)
    if (asked === undefined)
      return this.#write(`s0|response|${id}|NOK|Response not sent due to unknown transaction`)
    const isCall = asked.startsWith('INVITE ') && !/\r\nTo:[^\r]*;tag=/.test(asked)
    if (status >= 200 || !isCall) this.#incoming.delete(transactionId)
    const dialogId = dialogOf(headerOf(asked, 'Call-ID'))
    if (isCall && status === 200) this.#dialogs.add(dialogId)
    const isReliable = headerOf(sip, 'Require').includes('100rel')
    const text = [
      startLineOf(sip),
      `From: ${headerOf(asked, 'From')}`,
      `To: ${headerOf(asked, 'To').replace(/;tag=.*/, '')};tag=ours`,
      `Call-ID: ${headerOf(asked, 'Call-ID')}`,
      `CSeq: ${headerOf(asked, 'CSeq')}`,
      // A caller may require reliability: without the application's word its responses have no
      // Contact.
      ...(status >= 200 || isReliable ? ['Contact: <sip:198.51.100.10:5060>'] : []),
      '',
      bodyOf(sip),
    ].join('\r\n')
    this.responses.push(text)
    const fields = `${meta('application', text)}|${transactionId}|${dialogId}||Msg sent:|`
    return this.#write(`s0|response|${id}|OK|${fields}\r\n${text}`)
  }

  #request({ id, subject, dialogId, sip, method }: Command): void {
    const isInDialog = dialogId !== ''
    if (isInDialog && !this.#dialogs.has(dialogId)) {
      const nok =
        method === 'ACK'
          ? 'ACK for non-success final response is automatically generated by server'
          : 'unable to find dialog for dialog id provided'
      return this.#write(`s0|response|${id}|NOK|Server error: ${nok}`)
    }
    const number = ++lastNumber
    const callId = isInDialog ? dialogId.replace(/;.*/, '') : `out-${number}`
    const text = [
      startLineOf(sip),
      `From: <sip:us@198.51.100.10>;tag=us${number}`,
      `To: ${headerOf(sip, 'To') || '<sip:callee@192.0.2.20>'}`,
      `Call-ID: ${callId}`,
      `CSeq: ${number} ${method}`,
      'Contact: <sip:198.51.100.10:5060>',
      '',
      bodyOf(sip),
    ].join('\r\n')
    const ownId = `out-txn-${number}`
    const fields = `${meta('application', text)}|${ownId}|Msg sent:|`
    this.#write(`s0|response|${id}|OK|${fields}\r\n${text}`)
    const isOfAnother = method === 'ACK' || method === 'CANCEL'
    const begun = method === 'INVITE' && !isInDialog ? `${callId};from-tag=us${number}` : dialogId
    const transactionId = isOfAnother ? subject : ownId
    const sent = { transactionId, dialogId: begun, method, isInDialog, text }
    this.outgoing.push(sent)
    if (method !== 'BYE') return undefined
    this.#dialogs.delete(dialogId)
    return this.answer(sent, 200)
  }
}
