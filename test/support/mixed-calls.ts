/**
 * Calls of every kind at once, with session descriptions: callers on one UDP socket, and nodes on others. What a node
 * does with a call is told by the number that was called.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { PeerMessage, sdp } from './sip-peer.ts'

/** The digit by which nodes know what to do. */
const kinds = {
  /** Answered, and hung up by the caller. */
  answered: 1,
  /** The first node refuses, the next one answers. */
  failover: 2,
  /** The caller gives up while it rings. */
  cancelled: 3,
  /** All nodes refuse. */
  refused: 4,
  /** Put on hold, and taken up again. */
  held: 5,
  /** The caller transfers the callee, and hangs up. */
  transferred: 6,
  /** The offer is in the 200, and its answer in the ACK. */
  lateOffer: 7,
  /** Hung up by the callee: what a transfer leads to. */
  target: 8,
} as const

export type CallKind = keyof typeof kinds

/** Some of each. */
const mixOfCalls: readonly CallKind[] = [
  'answered',
  'failover',
  'cancelled',
  'transferred',
  'held',
  'answered',
  'refused',
  'failover',
  'lateOffer',
  'transferred',
]

const PATIENCE_MS = 15_000
const TALK_MS = 50
const SOCKET_BYTES = 4 * 1024 * 1024

interface Placement {
  readonly count: number
  readonly rate: number
  readonly mix?: readonly CallKind[]
  readonly atOnce?: number
}

export class MixedCalls {
  /** Calls that went as their kind wants. */
  done = 0
  /** Why others did not; the first hundred. */
  readonly failures: string[] = []
  readonly #callers: Endpoint
  readonly #nodes: readonly Endpoint[]
  readonly #caller: string
  /** By the number of the target: resolves when the transfer to it is over. */
  readonly #transfers = new Map<string, Promise<void>>()
  #targetPort = 0
  #count = 0

  private constructor(callers: Endpoint, nodes: readonly Endpoint[], caller: string) {
    this.#callers = callers
    this.#nodes = nodes
    this.#caller = caller
    for (const [index, node] of nodes.entries())
      node.onCall = (dialog, invite) => {
        this.#answer(dialog, invite, index === 0).catch(() => undefined)
      }
  }

  /** `caller`: a number that may call. */
  static async open(caller: string): Promise<MixedCalls> {
    const [callers, ...nodes] = await Promise.all([1, 2, 3].map(() => Endpoint.open()))
    if (callers === undefined) throw new Error('no callers')
    return new MixedCalls(callers, nodes, caller)
  }

  /** For the seed: two nodes, of which the first has priority. */
  get nodePorts(): readonly number[] {
    return this.#nodes.map(({ port }) => port)
  }

  /**
   * Places `count` calls of this mix at `rate` a second, and waits for their ends. With `atOnce`, so many at a time at
   * most: a machine that other work slows down gets them later, and has no reason to refuse them.
   */
  async place(
    targetPort: number,
    { count, rate, mix = mixOfCalls, atOnce = count }: Placement,
  ): Promise<void> {
    this.#targetPort = targetPort
    const startedAt = performance.now()
    const calls: Promise<void>[] = []
    let ended = 0
    while (calls.length < count) {
      const owed = Math.min(count, Math.ceil(((performance.now() - startedAt) * rate) / 1_000))
      while (calls.length < Math.min(owed, ended + atOnce)) {
        const call = this.#place(mix[calls.length % mix.length] ?? 'answered')
        calls.push(call.then(() => void (ended += 1)))
      }
      await pause(5)
    }
    await Promise.all(calls)
  }

  close(): void {
    for (const endpoint of [this.#callers, ...this.#nodes]) endpoint.close()
  }

  async #place(kind: CallKind): Promise<void> {
    const dialog = this.#callers.dialog(this.#caller, this.#uri(kind), this.#targetPort)
    try {
      await this.#call(kind, dialog)
      this.done += 1
    } catch (error) {
      if (this.failures.length < 100) this.failures.push(`${kind}: ${String(error)}`)
    } finally {
      dialog.forget()
    }
  }

  async #call(kind: CallKind, dialog: Dialog): Promise<void> {
    const isLate = kind === 'lateOffer'
    dialog.request('INVITE', { body: isLate ? '' : sdp('caller') })
    if (kind === 'cancelled') {
      await dialog.next((message) => message.status === 180)
      dialog.request('CANCEL')
    }
    const final = await dialog.final('INVITE')
    const isAnswered = final.status === 200
    if (isAnswered) dialog.learn(final)
    dialog.request('ACK', { body: isLate && isAnswered ? sdp('caller') : '' })
    if (isAnswered !== (kind !== 'cancelled' && kind !== 'refused'))
      throw new Error(final.startLine)
    if (!isAnswered) return
    if (kind === 'held')
      for (const direction of ['sendonly', 'sendrecv']) {
        dialog.request('INVITE', { body: sdp('caller').replace('sendrecv', direction) })
        const changed = await dialog.final('INVITE')
        dialog.request('ACK')
        if (changed.status !== 200) throw new Error(`${direction}: ${changed.startLine}`)
      }
    if (kind === 'transferred') {
      const target = this.#uri('target')
      const transfer = transferTo(target, dialog)
      const over = transfer.catch(() => undefined)
      this.#transfers.set(numberOf(target), over)
      void over.then(() => this.#transfers.delete(numberOf(target)))
      await transfer
    }
    await pause(TALK_MS)
    dialog.request('BYE')
    await dialog.final('BYE')
  }

  /** What a node does. */
  async #answer(dialog: Dialog, invite: PeerMessage, isFirst: boolean): Promise<void> {
    const digit = Number(/^sip:1800555(\d)/.exec(invite.uri)?.[1])
    const isRefused = digit === kinds.refused || (digit === kinds.failover && isFirst)
    if (isRefused) return dialog.reply(invite, digit === kinds.refused ? 486 : 503)
    dialog.reply(invite, 180)
    if (digit === kinds.cancelled) {
      await dialog.next(({ method }) => method === 'CANCEL')
      return dialog.reply(invite, 487)
    }
    dialog.reply(invite, 200, sdp('node'))
    await dialog.next(({ method }) => method === 'ACK')
    if (digit !== kinds.target) return
    // A target that hangs up before is a transfer that fails.
    await this.#transfers.get(numberOf(invite.uri))
    await pause(TALK_MS)
    dialog.request('BYE')
    await dialog.final('BYE')
  }

  #uri(kind: CallKind): string {
    const number = `1800555${kinds[kind]}${String(this.#count++ % 1_000).padStart(3, '0')}`
    return `sip:${number}@127.0.0.1:${this.#targetPort}`
  }
}

const numberOf = (uri: string): string => /^sip:(\d+)/.exec(uri)?.[1] ?? ''

async function transferTo(target: string, dialog: Dialog): Promise<void> {
  dialog.request('REFER', { headers: [`Refer-To: <${target}>`] })
  const accepted = await dialog.final('REFER')
  if (accepted.status !== 202) throw new Error(accepted.startLine)
  const told = await dialog.next(({ body }) => /SIP\/2\.0 [2-6]\d\d/.test(body))
  if (!told.body.includes(' 200 ')) throw new Error(told.body)
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

class Endpoint {
  readonly port: number
  onCall: (dialog: Dialog, invite: PeerMessage) => void = () => undefined
  readonly #socket: Socket
  readonly #dialogs = new Map<string, Dialog>()
  #count = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    this.port = socket.address().port
    socket.on('message', (bytes, { port }) =>
      this.#receive(new PeerMessage(bytes.toString()), port),
    )
  }

  static async open(): Promise<Endpoint> {
    const size = { recvBufferSize: SOCKET_BYTES, sendBufferSize: SOCKET_BYTES }
    const socket = createSocket({ type: 'udp4', ...size })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new Endpoint(socket)
  }

  dialog(user: string, uri: string, targetPort: number): Dialog {
    const callId = `mixed-${this.port}-${++this.#count}`
    const from = `<sip:${user}@127.0.0.1:${this.port}>;tag=${callId}`
    return this.#add({ callId, from, to: `<${uri}>`, uri, targetPort })
  }

  close(): void {
    this.#socket.close()
  }

  #add(facts: DialogFacts): Dialog {
    const dialog = new Dialog(
      facts,
      this.port,
      (text) => this.#socket.send(text, facts.targetPort, '127.0.0.1'),
      () => this.#dialogs.delete(facts.callId),
    )
    this.#dialogs.set(facts.callId, dialog)
    return dialog
  }

  #receive(message: PeerMessage, port: number): void {
    const callId = message.get('Call-ID')
    const known = this.#dialogs.get(callId)
    if (known !== undefined) return known.receive(message)
    if (message.status > 0 || message.method === 'ACK') return
    const dialog = this.#add({
      callId,
      from: `${message.get('To')};tag=${callId}`,
      to: message.get('From'),
      uri: /<([^>]+)>/.exec(message.get('Contact'))?.[1] ?? '',
      targetPort: port,
    })
    if (message.method === 'INVITE') return this.onCall(dialog, message)
    dialog.reply(message, 200)
    return dialog.forget()
  }
}

interface DialogFacts {
  readonly callId: string
  readonly from: string
  readonly to: string
  readonly uri: string
  readonly targetPort: number
}

/** One side of a dialog; answers by itself what comes in it. */
class Dialog {
  readonly #facts: DialogFacts
  readonly #port: number
  readonly #send: (text: string) => void
  readonly forget: () => void
  readonly #messages: PeerMessage[] = []
  readonly #answered = new Map<string, string>()
  #wanted:
    { fits: (message: PeerMessage) => boolean; take: (message: PeerMessage) => void } | undefined
  #to: string
  #uri: string
  #cseq = 0
  #branch = ''

  constructor(facts: DialogFacts, port: number, send: (text: string) => void, forget: () => void) {
    this.#facts = facts
    this.#port = port
    this.#send = send
    this.forget = forget
    this.#to = facts.to
    this.#uri = facts.uri
  }

  receive(message: PeerMessage): void {
    const again = this.#answered.get(transactionOf(message))
    if (again !== undefined) return this.#send(again)
    const { method } = message
    if (method === 'INVITE') this.reply(message, 200, sdp('changed'))
    else if (method !== '' && method !== 'ACK') this.reply(message, 200)
    // The callee is over: what comes late is answered for a while.
    if (method === 'BYE') setTimeout(this.forget, PATIENCE_MS).unref()
    if (this.#wanted?.fits(message) === true) this.#wanted.take(message)
    else this.#messages.push(message)
  }

  next(fits: (message: PeerMessage) => boolean): Promise<PeerMessage> {
    const at = this.#messages.findIndex(fits)
    const [found] = at === -1 ? [] : this.#messages.splice(at, 1)
    if (found !== undefined) return Promise.resolve(found)
    return new Promise((resolve, reject) => {
      const lines = () => this.#messages.map(({ startLine }) => startLine).join(', ')
      const timer = setTimeout(
        () => reject(new Error(`waited for ${fits.toString()}; there are ${lines()}`)),
        PATIENCE_MS,
      )
      const take = (message: PeerMessage): void => {
        clearTimeout(timer)
        this.#wanted = undefined
        resolve(message)
      }
      this.#wanted = { fits, take }
    })
  }

  final(method: string): Promise<PeerMessage> {
    const cseq = `${this.#cseq} ${method}`
    return this.next((message) => message.status >= 200 && message.get('CSeq') === cseq)
  }

  learn(answer: PeerMessage): void {
    this.#to = answer.get('To')
    this.#uri = /<([^>]+)>/.exec(answer.get('Contact'))?.[1] ?? this.#uri
  }

  request(method: string, { body = '', headers = [] as readonly string[] } = {}): void {
    const isNew = method !== 'ACK' && method !== 'CANCEL'
    if (isNew) this.#cseq += 1
    // An ACK of a refusal belongs to its INVITE; that of a 2xx does no harm with its branch.
    if (isNew) this.#branch = `z9hG4bK${this.#facts.callId}-${this.#cseq}`
    const type = body === '' ? [] : ['Content-Type: application/sdp']
    const isAck = method === 'ACK' && this.#to.includes(';tag=')
    this.#send(
      [
        `${method} ${this.#uri} SIP/2.0`,
        `Via: SIP/2.0/UDP 127.0.0.1:${this.#port};branch=${this.#branch}${isAck ? 'ack' : ''}`,
        'Max-Forwards: 70',
        `From: ${this.#facts.from}`,
        `To: ${this.#to}`,
        `Call-ID: ${this.#facts.callId}`,
        `CSeq: ${this.#cseq} ${method}`,
        `Contact: <sip:mixed@127.0.0.1:${this.#port}>`,
        ...headers,
        ...type,
        `Content-Length: ${body.length}`,
        '',
        body,
      ].join('\r\n'),
    )
  }

  reply(request: PeerMessage, status: number, body = ''): void {
    const to = request.get('To')
    const text = [
      `SIP/2.0 ${status} Mixed`,
      ...request.all('Via').map((via) => `Via: ${via}`),
      `From: ${request.get('From')}`,
      `To: ${to}${to.includes(';tag=') ? '' : `;tag=${this.#facts.callId}`}`,
      `Call-ID: ${this.#facts.callId}`,
      `CSeq: ${request.get('CSeq')}`,
      `Contact: <sip:mixed@127.0.0.1:${this.#port}>`,
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n')
    this.#answered.set(transactionOf(request), text)
    this.#send(text)
  }
}

/** Of a request; repeated ones have the same. */
const transactionOf = (message: PeerMessage): string =>
  message.method === '' ? '' : `${message.get('Via')} ${message.method}`
