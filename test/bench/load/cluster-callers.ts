/** The process of `cluster-load.ts`: its callers repeat requests as RFC 3261 has it, because nodes come and go. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { seededRandom } from '../../support/seeded-random.ts'
import {
  CALLEE_PORT,
  type LoadCommand,
  type LoadCounts,
  type LoadOptions,
  type SeenCall,
} from './cluster-load.ts'
import { TopUps } from './cluster-top-ups.ts'

const TICK_MS = 10
const COUNTS_MS = 1_000
/** Timer A and Timer E of RFC 3261 begin so, and double up to T2. */
const T1_MS = 500
const T2_MS = 4_000
/** Longer than any money lasts. */
const ENDLESS_MS = 3_600_000
/** A caller waits so long for the answer. */
const INVITE_MS = 12_000
/** A node may be paused for 30 s. */
const BYE_MS = 64_000
/** Then its late answers are not heard any more. */
const FORGET_MS = 60_000

interface Call {
  readonly callId: string
  readonly node: LoadOptions['nodes'][number]
  readonly caller: string
  readonly called: string
  readonly placedAt: number
  readonly placedSteadyMs: number
  state: 'calling' | 'given up' | 'talking' | 'hanging up' | 'over'
  hasResponse: boolean
  isAnswered: boolean
  to: string
  timer: NodeJS.Timeout | undefined
}

const header = (text: string, name: string): string =>
  new RegExp(`^${name}: *(.*?)\\r$`, 'im').exec(text)?.[1] ?? ''

const sdp = (address: string): string =>
  `v=0\r\no=- 1 1 IN IP4 ${address}\r\ns=-\r\nc=IN IP4 ${address}\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n`

async function openSocket(address: string, port: number): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 8 * 1024 * 1024 })
  socket.bind(port, address)
  await once(socket, 'listening')
  // A node that is away has no port: its ICMP is not of interest.
  socket.on('error', () => undefined)
  return socket
}

class Callers {
  readonly #socket: Socket
  readonly #port: number
  readonly #options: LoadOptions
  readonly #random: () => number
  readonly #log: (seen: SeenCall) => void
  readonly #calls = new Map<string, Call>()
  readonly #refused: Record<string, number> = {}
  readonly #counts = { placed: 0, answered: 0, live: 0, unanswered: 0, lostByes: 0, hungUp: 0 }
  #ticking: NodeJS.Timeout | undefined

  constructor(socket: Socket, options: LoadOptions, log: (seen: SeenCall) => void) {
    this.#socket = socket
    this.#port = socket.address().port
    this.#options = options
    this.#random = seededRandom(options.seed)
    this.#log = log
    socket.on('message', (bytes, from) => this.#receive(bytes.toString('latin1'), from))
  }

  get counts(): Omit<LoadCounts, 'topUps'> {
    return { ...this.#counts, refused: this.#refused }
  }

  rate(callsPerSecond: number, names: readonly string[] | undefined): void {
    clearInterval(this.#ticking)
    const { nodes } = this.#options
    const chosen = names === undefined ? nodes : nodes.filter(({ name }) => names.includes(name))
    if (callsPerSecond === 0 || chosen.length === 0) return
    let dueMs = performance.now()
    this.#ticking = setInterval(() => {
      for (; dueMs <= performance.now(); dueMs += 1_000 / callsPerSecond) this.#place(chosen)
    }, TICK_MS)
  }

  #one<T>(all: readonly T[]): T {
    const found = all[Math.floor(this.#random() * all.length)]
    if (found === undefined) throw new Error('there is none')
    return found
  }

  #place(nodes: LoadOptions['nodes']): void {
    this.#counts.placed += 1
    this.#counts.live += 1
    const called = `1800555${String(Math.floor(this.#random() * 10_000)).padStart(4, '0')}`
    const call: Call = {
      callId: `load-${this.#options.seed}-${this.#counts.placed}`,
      called,
      node: this.#one(nodes),
      caller: this.#one(this.#options.callers),
      placedAt: Date.now(),
      placedSteadyMs: performance.now(),
      state: 'calling',
      hasResponse: false,
      isAnswered: false,
      to: `<sip:${called}@tollgate>`,
      timer: undefined,
    }
    this.#calls.set(call.callId, call)
    this.#repeat(call, 'INVITE', INVITE_MS, () => this.#giveUp(call))
  }

  /** Sends a request again and again until its state is another one; an INVITE until it has a response. */
  #repeat(call: Call, method: 'INVITE' | 'BYE', withinMs: number, givenUp: () => void): void {
    const { state } = call
    const send = (waitMs: number, leftMs: number): void => {
      if (call.state !== state) return
      if (leftMs <= 0) return givenUp()
      if (method === 'BYE' || !call.hasResponse)
        this.#send(call, method, method === 'BYE' ? 2 : 1, call.to)
      const nextMs = Math.min(waitMs, leftMs)
      call.timer = setTimeout(() => send(Math.min(2 * waitMs, T2_MS), leftMs - nextMs), nextMs)
    }
    send(T1_MS, withinMs)
  }

  #giveUp(call: Call): void {
    call.state = 'given up'
    this.#counts.unanswered += 1
    this.#counts.live -= 1
    this.#note(call, 'unanswered')
    this.#send(call, 'CANCEL', 1, call.to)
    this.#forget(call)
  }

  #note(call: Call, what: SeenCall['what'], status = 0): void {
    const { callId, node, caller, placedAt, placedSteadyMs } = call
    const tookMs = performance.now() - placedSteadyMs
    this.#log({ what, callId, node: node.name, caller, status, placedAt, tookMs })
  }

  #forget(call: Call): void {
    setTimeout(() => {
      if (call.state === 'over' || call.state === 'given up') this.#calls.delete(call.callId)
    }, FORGET_MS)
  }

  #receive(text: string, from: { readonly address: string; readonly port: number }): void {
    const call = this.#calls.get(header(text, 'Call-ID'))
    if (!text.startsWith('SIP/2.0 ')) return this.#receiveRequest(text, from, call)
    if (call === undefined) return
    const status = Number(text.slice(8, 11))
    const [, method] = header(text, 'CSeq').split(' ')
    if (method === 'BYE' && status >= 200) return this.#over(call)
    if (method !== 'INVITE') return
    call.hasResponse = true
    if (status < 200) return
    const to = header(text, 'To')
    if (status >= 300) this.#refuse(call, status, to)
    else this.#answer(call, to)
  }

  #refuse(call: Call, status: number, to: string): void {
    this.#send(call, 'ACK', 1, to, 'INVITE')
    if (call.state !== 'calling') return
    clearTimeout(call.timer)
    call.state = 'over'
    this.#counts.live -= 1
    this.#refused[status] = (this.#refused[status] ?? 0) + 1
    this.#note(call, 'refused', status)
    this.#forget(call)
  }

  #answer(call: Call, to: string): void {
    this.#send(call, 'ACK', 1, to)
    const { state } = call
    if (call.isAnswered) return
    clearTimeout(call.timer)
    call.isAnswered = true
    call.to = to
    this.#counts.answered += 1
    this.#note(call, 'answered')
    call.state = 'talking'
    // One that was given up or refused has got a late answer, or another one to a repeated INVITE: it is hung up.
    if (state !== 'calling') this.#counts.live += 1
    const talkMs = state === 'calling' ? this.#talkMsOf(call) : 0
    call.timer = setTimeout(() => this.#hangUp(call), talkMs)
  }

  #talkMsOf({ caller }: Call): number {
    const { longestTalkMs, talkative = [] } = this.#options
    return talkative.includes(caller) ? ENDLESS_MS : this.#random() * longestTalkMs
  }

  #hangUp(call: Call): void {
    if (call.state !== 'talking') return
    call.state = 'hanging up'
    this.#repeat(call, 'BYE', BYE_MS, () => {
      this.#counts.lostByes += 1
      this.#over(call)
    })
  }

  #over(call: Call): void {
    if (call.state === 'over') return
    clearTimeout(call.timer)
    call.state = 'over'
    this.#counts.live -= 1
    this.#forget(call)
  }

  /** A node hangs up, or asks something. */
  #receiveRequest(
    text: string,
    { address, port }: { readonly address: string; readonly port: number },
    call: Call | undefined,
  ): void {
    if (text.startsWith('ACK ')) return
    this.#socket.send(responseTo(text, '200 OK'), port, address)
    if (!text.startsWith('BYE ') || call === undefined) return
    if (call.state === 'talking') this.#counts.hungUp += 1
    this.#over(call)
  }

  #send(call: Call, method: string, cseq: number, to: string, branchOf: string = method): void {
    const { callId, node, caller, called } = call
    const { address } = this.#options
    const body = method === 'INVITE' ? sdp(address) : ''
    // CANCEL has the branch of what it cancels (RFC 3261 §9.1), the ACK of a refusal as well (§17.1.1.3).
    const branch = method === 'CANCEL' ? 'INVITE' : branchOf
    const text = [
      `${method} sip:${called}@${node.host}:${node.port} SIP/2.0`,
      `Via: SIP/2.0/UDP ${address}:${this.#port};branch=z9hG4bK-${callId}-${branch}`,
      'Max-Forwards: 70',
      `From: <sip:${caller}@${address}>;tag=${callId}`,
      `To: ${to}`,
      `Call-ID: ${callId}`,
      `CSeq: ${cseq} ${method}`,
      `Contact: <sip:${caller}@${address}:${this.#port}>`,
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${body.length}`,
      '',
      body,
    ]
    this.#socket.send(text.join('\r\n'), node.port, node.host)
  }
}

/** What a response repeats; all Vias, because there is only one hop. */
const repeated = /^(?:Via|v|From|f|Call-ID|i|CSeq|Record-Route): *.*\r\n/gim

function responseTo(request: string, status: string, body = '', contact = ''): string {
  const to = header(request, '(?:To|t)')
  // The same for a request that comes again.
  const toTag = to.includes(';tag=') ? '' : `;tag=${header(request, '(?:Call-ID|i)').slice(0, 24)}`
  const head = `SIP/2.0 ${status}\r\n${(request.match(repeated) ?? []).join('')}To: ${to}${toTag}\r\n`
  const type = body === '' ? '' : 'Content-Type: application/sdp\r\n'
  return `${head}${contact}${type}Content-Length: ${body.length}\r\n\r\n${body}`
}

/** Each call rings for a moment, and is answered. */
function answerCalls(socket: Socket, { address, longestRingingMs, seed }: LoadOptions): void {
  const random = seededRandom(seed + 1)
  const ringing = new Map<string, NodeJS.Timeout>()
  const contact = `Contact: <sip:callee@${address}:${CALLEE_PORT}>\r\n`
  socket.on('message', (bytes, from) => {
    const text = bytes.toString('latin1')
    const reply = (status: string, body = ''): void =>
      socket.send(responseTo(text, status, body, contact), from.port, from.address)
    const [method] = text.split(' ', 1)
    const callId = header(text, '(?:Call-ID|i)')
    if (method === 'ACK' || method === 'SIP/2.0') return
    if (method === 'INVITE' && !header(text, '(?:To|t)').includes(';tag=')) {
      reply('180 Ringing')
      if (ringing.has(callId)) return
      const answer = (): void => {
        ringing.delete(callId)
        reply('200 OK', sdp(address))
      }
      ringing.set(callId, setTimeout(answer, random() * longestRingingMs))
      return
    }
    reply('200 OK', method === 'INVITE' ? sdp(address) : '')
    if (method !== 'CANCEL' || !ringing.has(callId)) return
    clearTimeout(ringing.get(callId))
    ringing.delete(callId)
    const invite = text.replace(/^CSeq: *(\d+) CANCEL/im, 'CSeq: $1 INVITE')
    socket.send(responseTo(invite, '487 Request Terminated'), from.port, from.address)
  })
}

const options = JSON.parse(process.argv[2] ?? '') as LoadOptions
const log = createWriteStream(options.logFile)
const callers = new Callers(await openSocket(options.address, 5_060), options, (seen) => {
  const { what, callId, node, caller, status, placedAt, tookMs } = seen
  log.write(`${[what, callId, node, caller, status, placedAt, tookMs.toFixed(1)].join(' ')}\n`)
})
answerCalls(await openSocket(options.address, CALLEE_PORT), options)
const topUps = new TopUps(options.topUps, seededRandom(options.seed + 2))
const tell = (): void => void process.send?.({ ...callers.counts, topUps: topUps.counts })
tell()
setInterval(tell, COUNTS_MS)
process.on('message', (command: LoadCommand) => {
  if (command.kind === 'rate') callers.rate(command.callsPerSecond, command.nodes)
  else if (command.kind === 'finish') topUps.finish()
  else log.end(() => process.exit())
})
process.on('disconnect', () => process.exit())
