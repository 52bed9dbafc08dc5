/**
 * A SipCore on a virtual network with virtual time: what it sends and tells is collected, what it
 * receives is injected. One UDP and one TCP listener at 198.51.100.10:5060, one application.
 */
import type { PingAnswer } from '../../engine/sip-server/application.ts'
import { decodeCommand } from '../../engine/sip-server/wire/command.ts'
import { encodeEvent } from '../../engine/sip-server/wire/event.ts'
import { createHash } from 'node:crypto'
import { SipCore } from '../../engine/sip-server/core/core.ts'
import type { CoreOptions } from '../../engine/sip-server/core/parts.ts'
import type { SipMessage } from '../../schema/sip/message.ts'
import type { Output } from '../../engine/sip-server/core/outbox.ts'
import type { Flow, HopTarget, Listener } from '../../engine/sip-server/flow.ts'
import type { RequestRoute } from '../../engine/sip-server/index.ts'
import { type CallLimits, defaultLimits } from '../../engine/sip-server/options.ts'
import { defaultTimers, type Timers } from '../../engine/sip-server/transaction/machine.ts'
import { readEvent, type WireEvent } from './wire-events.ts'

export const udp: Listener = {
  protocol: 'udp',
  address: '198.51.100.10',
  port: 5060,
  advertisedHost: '198.51.100.10',
  advertisedPort: 5060,
}
const tcp: Listener = { ...udp, protocol: 'tcp' }

export const caller: Flow = {
  listener: udp,
  address: '203.0.113.7',
  port: 5060,
  connectionId: 0,
}
export const callee: Flow = { ...caller, address: '192.0.2.20' }
export const tcpCaller: Flow = { ...caller, listener: tcp, port: 40_000, connectionId: 7 }

/** A place that a lookup finds. */
export const targetAt = (
  address: string,
  protocol: HopTarget['protocol'] = 'udp',
  port = 5060,
): HopTarget => ({ protocol, address, port })

export interface SentMessage {
  readonly at: number
  readonly text: string
  readonly flow: Flow
  readonly reference: string
}

/** A payload that the application received. */
export interface Delivered extends WireEvent {
  readonly clientId: number
  /** As it was delivered. */
  readonly payload: string
}

export class VirtualServer {
  readonly core: SipCore
  now = 1_000_000
  readonly sent: SentMessage[] = []
  readonly delivered: Delivered[] = []
  readonly other: Output[] = []
  /** Call details (`cdr:…`), which are not among `delivered`. */
  readonly details: Delivered[] = []
  #commands = 0
  #clientId = 1
  readonly #isInProcess: boolean

  constructor(
    options: {
      timers?: Partial<Timers>
      limits?: Partial<CallLimits>
      listeners?: readonly Listener[]
      minSessionSeconds?: number
      refusesCall?: (invite: SipMessage) => boolean
      /** Any others. */
      more?: Partial<CoreOptions>
      routeRequest?: CoreOptions['routeRequest']
      graceMs?: number
      isInProcess?: boolean
    } = {},
  ) {
    let tokens = 0
    this.#isInProcess = options.isInProcess ?? false
    this.core = new SipCore({
      listeners: () => options.listeners ?? [udp, tcp],
      timers: { ...defaultTimers, ...options.timers },
      limits: { ...defaultLimits, ...options.limits },
      minSessionSeconds: options.minSessionSeconds ?? 90,
      refusesCall: options.refusesCall ?? (() => false),
      routeRequest: options.routeRequest,
      graceMs: options.graceMs,
      secret: 'cymru',
      sameSecret: (given, expected) => given === expected,
      seal: (text) => createHash('md5').update(text).digest('hex'),
      token: () => `tok${++tokens}`,
      version: 'v0.9.99-test',
      log: () => undefined,
      ...options.more,
    })
    this.#connect()
  }

  /** The application that `command` speaks for. */
  get clientId(): number {
    return this.#clientId
  }

  /** The application goes, and another one comes in its place. */
  reconnect(): void {
    this.disconnect(this.#clientId)
    this.#clientId += 1
    this.#connect()
  }

  #connect(): void {
    this.core.clientConnected(this.#clientId, this.#isInProcess)
    this.command('authenticate|cymru|')
    for (const verb of ['invite', 'options', 'message', 'refer', 'subscribe', 'notify', 'info'])
      this.command(`route|${verb}`)
    this.delivered.length = 0
  }

  receive(text: string, flow: Flow = caller): void {
    this.core.receive(text, flow, this.now)
    this.#drain()
  }

  /** Sends one wire payload without its id; answers with the id that the reply will quote. */
  command(payload: string, clientId = this.#clientId): string {
    this.#commands += 1
    const id = `c${this.#commands}`
    this.core.command(clientId, decodeCommand(`${id}|${payload}`), this.now)
    this.#drain()
    return id
  }

  /** Something else happens to the core. */
  drive(happens: (core: SipCore, now: number) => void): void {
    happens(this.core, this.now)
    this.#drain()
  }

  /** Pings `target`; undefined: that was not possible. What is answered comes into the list. */
  ping(target: string): readonly PingAnswer[] | undefined {
    const answers: PingAnswer[] = []
    const isSent = this.core.ping(target, (answer) => void answers.push(answer), this.now)
    this.#drain()
    return isSent ? answers : undefined
  }

  disconnect(clientId: number): void {
    this.core.clientDisconnected(clientId, this.now)
    this.#drain()
  }

  /** Answers the lookups of `host` that are under way. */
  resolved(host: string, targets: readonly HopTarget[]): void {
    for (const output of this.other.splice(0)) {
      if (output.kind === 'resolve' && output.question.host === host)
        this.core.resolved(output.reference, targets, this.now)
      else this.other.push(output)
    }
    this.#drain()
  }

  /** Says what becomes of the requests that wait for it. */
  routed(route: RequestRoute | undefined): void {
    for (const output of this.other.splice(0))
      if (output.kind === 'await-route') this.core.routed(output.transactionId, route, this.now)
      else this.other.push(output)
    this.#drain()
  }

  sendFailed(reference: string): void {
    this.core.sendFailed(reference, 'no route', this.now)
    this.#drain()
  }

  connectionClosed(flow: Flow): void {
    this.core.connectionClosed(flow, this.now)
    this.#drain()
  }

  /** Moves time forward, stopping at every deadline on the way. */
  advance(ms: number): void {
    const end = this.now + ms
    for (;;) {
      const next = this.core.nextDeadline()
      if (next === undefined || next > end) break
      this.now = Math.max(this.now, next)
      this.core.handleTimeout(this.now)
      this.#drain()
    }
    this.now = end
  }

  /** Takes what was sent since the last call. */
  takeSent(): SentMessage[] {
    return this.sent.splice(0)
  }

  takeDelivered(): Delivered[] {
    return this.delivered.splice(0)
  }

  /** First lines of what was sent since the last call. */
  takeStartLines(): string[] {
    return this.takeSent().map(({ text }) => text.slice(0, text.indexOf('\r\n')))
  }

  /** Who got what was delivered since the last call of `takeDelivered`. */
  get deliveredTo(): number[] {
    return this.delivered.map(({ clientId }) => clientId)
  }

  #note(clientId: number, payload: string): void {
    const delivered = { clientId, payload, ...readEvent(payload) }
    ;(delivered.kind.startsWith('cdr:') ? this.details : this.delivered).push(delivered)
  }

  #drain(): void {
    for (let output = this.core.nextOutput(); output; output = this.core.nextOutput()) {
      if (output.kind === 'send') this.sent.push({ ...output, at: this.now })
      else if (output.kind === 'deliver')
        this.#note(output.clientId, encodeEvent(output.event, 'e'))
      else if (output.kind === 'pinged') output.done(output.answer)
      else this.other.push(output)
    }
  }
}

/** Builds a SIP message; `lines` are whole header lines without line ends. */
export function sip(startLine: string, lines: readonly string[], body = ''): string {
  const type = body === '' ? [] : ['Content-Type: application/sdp']
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  return [startLine, ...lines, ...type, length, '', body].join('\r\n')
}

export const sdp = 'v=0\r\no=- 1 1 IN IP4 203.0.113.7\r\ns=-\r\n'

/** One call from `caller`; every field can be replaced by a later line of the same name. */
export function requestOf(
  method: string,
  options: {
    uri?: string
    branch?: string
    via?: string
    toTag?: string
    fromTag?: string
    callId?: string
    cseq?: number
    extra?: readonly string[]
    body?: string
  } = {},
): string {
  const tag = options.toTag === undefined ? '' : `;tag=${options.toTag}`
  const via =
    options.via ?? `SIP/2.0/UDP 203.0.113.7:5060;branch=${options.branch ?? `z9hG4bK-${method}-1`}`
  return sip(
    `${method} ${options.uri ?? 'sip:18005551212@198.51.100.10'} SIP/2.0`,
    [
      `Via: ${via}`,
      'Max-Forwards: 70',
      `From: <sip:alice@203.0.113.7>;tag=${options.fromTag ?? 'f1'}`,
      `To: <sip:18005551212@198.51.100.10>${tag}`,
      `Call-ID: ${options.callId ?? 'c1@203.0.113.7'}`,
      `CSeq: ${options.cseq ?? 1} ${method}`,
      'Contact: <sip:alice@203.0.113.7:5060>',
      ...(options.extra ?? []),
    ],
    options.body ?? '',
  )
}

/** A response to a request that the server sent, as its peer would build it. */
export function responseOf(
  request: string,
  status: number,
  options: { toTag?: string; extra?: readonly string[]; body?: string } = {},
): string {
  const copied = request.split('\r\n').filter((line) => /^(Via|From|Call-ID|CSeq):/.test(line))
  const to = header(request, 'To')
  const tagged =
    to.includes(';tag=') || options.toTag === undefined ? to : `${to};tag=${options.toTag}`
  return sip(
    `SIP/2.0 ${status} Reason`,
    [...copied, `To: ${tagged}`, ...(options.extra ?? [])],
    options.body ?? '',
  )
}

export function header(text: string, name: string): string {
  const head = text.slice(0, text.indexOf('\r\n\r\n'))
  const line = head.split('\r\n').find((candidate) => candidate.startsWith(`${name}: `))
  return line?.slice(name.length + 2) ?? ''
}

export const tagIn = (value: string): string => /;tag=([^;]+)/.exec(value)?.[1] ?? ''
