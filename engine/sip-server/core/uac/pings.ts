/**
 * OPTIONS that ask whether a target is there (RFC 3261 §11), for applications that ask thousands of
 * times a second. The trick of the bench `probes`: one is text out of a template; the transaction
 * begins when the answer is late (Timer E); and of a response in the usual form no more is read
 * than shows what it answers.
 */
import type { Flow } from '../../flow.ts'
import { composeRequest, type SipMessage } from '../../../../schema/sip/message.ts'
import { ReleasingMap } from '../../../../schema/sip/releasing-map.ts'
import type { PingAnswer, PingDone } from '../../application.ts'
import type { ClientFailure, ClientUser } from '../../transaction/machine.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import type { CoreParts } from '../parts.ts'
import type { ComposedRequest } from '../request-writer.ts'

/**
 * The request to one target: what stands before the branch, up to the end of the Call-ID, and
 * behind that.
 */
interface Template {
  readonly flow: Flow
  readonly toBranch: string
  readonly toCallId: string
  readonly rest: string
}

/** When there are more, all are made anew. */
const maxTemplates = 10_000

/** The usual form of a response to one: the Via first, and the names of headers in full. */
const usualForm =
  /^SIP\/2\.0 ([2-6]\d\d) ([^\r\n]*)\r\nVia: SIP\/2\.0\/UDP [^\r\n,]*;branch=(z9hG4bKping-\w+)[;\r]/

export class Pings {
  readonly #parts: CoreParts
  /** The keys are targets; undefined: one takes more than a ping. */
  readonly #templates = new Map<string, Template | undefined>()
  /** Pings whose answer is not late yet, by branch. */
  readonly #open = new ReleasingMap<string, Ping>()

  constructor(parts: CoreParts) {
    this.#parts = parts
  }

  /** False: nothing was sent, because it does not go to an address by UDP. */
  send(target: string, done: PingDone, now: number): boolean {
    if (!this.#templates.has(target)) this.#prepare(target)
    const template = this.#templates.get(target)
    if (template === undefined) return false
    const { transactions, ids } = this.#parts
    const branch = `z9hG4bKping-${ids.token()}`
    const { flow, toBranch, toCallId, rest } = template
    const text = toBranch + branch + toCallId + `-${ids.next()}` + rest
    const ping = new Ping(this, text, flow, branch, done)
    this.#open.set(branch, ping)
    transactions.send(text, flow, branch)
    ping.late = transactions.deadlines.start(ping, 'late', transactions.timers.t1Ms, now)
    return true
  }

  /**
   * Whether a received text answers one of them in the usual form; all others pass the checks of
   * every response.
   */
  takes(text: string): boolean {
    if (this.#open.size === 0) return false
    const [, status, reason = '', branch = ''] = usualForm.exec(text) ?? []
    const ping = this.#open.get(branch)
    if (ping === undefined || !isWhole(text)) return false
    this.#parts.traffic.answered('OPTIONS', Number(status))
    this.#settle(ping, { status: Number(status), reason })
    return true
  }

  /** Whether the response belongs to one of them (RFC 3261 §17.1.3). */
  receive(response: SipMessage): boolean {
    const ping = this.#open.get(response.via?.branch ?? '')
    if (ping === undefined || response.method !== 'OPTIONS') return false
    const { status, reason } = response
    if (status < 200) ping.provisional = response
    else this.#settle(ping, { status, reason })
    return true
  }

  sendFailed(reference: string): void {
    this.#open.get(reference)?.onFailure('transport')
  }

  get size(): number {
    return this.#open.size
  }

  /** T1 has passed: it is repeated from now on. */
  late(ping: Ping, now: number): void {
    const { branch, text, flow, provisional } = ping
    this.#open.delete(branch)
    const request = { method: 'OPTIONS', branch, text }
    this.#parts.transactions.takeUp(request, flow, ping, provisional, now)
  }

  answered(done: PingDone, answer: PingAnswer): void {
    this.#parts.outbox.push({ kind: 'pinged', done, answer })
  }

  ended(branch: string): void {
    this.#open.delete(branch)
    this.#parts.transactions.endClient(branch)
  }

  #settle(ping: Ping, answer: PingAnswer): void {
    ping.late?.cancel()
    this.#open.delete(ping.branch)
    this.answered(ping.done, answer)
  }

  /**
   * A target that needs a listener or a connection may have one later; one that needs more than a
   * ping never changes.
   */
  #prepare(target: string): void {
    const composed = this.#parts.writer.outOfDialog(target, composeRequest('OPTIONS', target, {}))
    if ('problem' in composed || composed.target === '') return
    if (this.#templates.size >= maxTemplates) this.#templates.clear()
    this.#templates.set(target, templateOf(composed))
  }
}

function templateOf({ flow, sent, question }: ComposedRequest): Template | undefined {
  if (question !== undefined || flow.listener.protocol !== 'udp') return undefined
  const [toBranch = '', behindBranch = ''] = sent.text.split(sent.branch)
  const end = behindBranch.indexOf('\r\n', behindBranch.indexOf(sent.callId))
  const [toCallId, rest] = [behindBranch.slice(0, end), behindBranch.slice(end)]
  return { flow, toBranch, toCallId, rest }
}

/** RFC 3261 §8.2.6.2: what every response repeats, besides the Via. */
const isWhole = (text: string): boolean =>
  text.includes('\r\nCSeq: 1 OPTIONS\r\n') &&
  text.includes('\r\nCall-ID: ') &&
  text.includes('\r\nFrom: ') &&
  text.includes('\r\nTo: ') &&
  text.endsWith('\r\n\r\n')

class Ping implements ClientUser {
  readonly #pings: Pings
  readonly text: string
  readonly flow: Flow
  readonly branch: string
  readonly done: PingDone
  late: Deadline<'late'> | undefined
  provisional: SipMessage | undefined

  constructor(pings: Pings, text: string, flow: Flow, branch: string, done: PingDone) {
    this.#pings = pings
    this.text = text
    this.flow = flow
    this.branch = branch
    this.done = done
    this.late = undefined
    this.provisional = undefined
  }

  onTimer(_name: 'late', now: number): void {
    this.#pings.late(this, now)
  }

  onResponse({ status, reason }: SipMessage): void {
    if (status >= 200) this.#pings.answered(this.done, { status, reason })
  }

  /** A failure is that of any other request (RFC 3261 §8.1.3.1). */
  onFailure(failure: ClientFailure): void {
    const [status, reason] =
      failure === 'timeout'
        ? ([408, 'Request Timeout'] as const)
        : ([503, 'Service Unavailable'] as const)
    this.late?.cancel()
    this.#pings.answered(this.done, { status, reason })
    this.#pings.ended(this.branch)
  }

  onTerminated(): void {
    this.#pings.ended(this.branch)
  }
}
