/** The ways that one request may take, in order, and what changes in it from way to way. */
import type { Flow, HopQuestion, Listener } from '../../flow.ts'
import { byteLength } from '../../message/decode.ts'
import type { SipMessage } from '../../message/message.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import { viaOf, type Composed } from '../compose.ts'
import { advertised, chooseListener, flowsTo, flowTo, hopOf, transportParam } from '../next-hop.ts'
import type { Stack } from '../stack.ts'

/** RFC 3261 §18.1.1: where the path MTU is not known, larger requests need congestion control. */
const maxDatagramBytes = 1_300

/** A peer without TCP that drops instead of refusing costs a large request this long. */
const connectMs = 1_000

/** How long a target is avoided after it was silent or failed. */
const avoidMs = 30_000

/** At most this long by the word of a 503. */
const maxRetryAfterMs = 300_000

/** How long a peer that refused TCP, which only the size asked for, is taken at its word. */
const noTcpMs = 600_000

/** Until when a target is avoided that has failed, or refused with 503 (RFC 3261 §21.5.4). */
export function avoidUntil(flow: Flow, refusal: SipMessage | undefined, now: number): number {
  if (refusal === undefined) return now + (flow.connectMs === undefined ? avoidMs : noTcpMs)
  const seconds = Number.parseInt(refusal.get('Retry-After') ?? '0', 10)
  return now + Math.min(maxRetryAfterMs, (Number.isNaN(seconds) ? 0 : seconds) * 1_000)
}

/** Looks a host up; `found` is called once, later: the avoided ways are last, none: it is not reached. */
export function lookUp(
  stack: Stack,
  question: HopQuestion,
  found: (flows: readonly Flow[], now: number) => void,
): void {
  stack.resolve(question, (targets, now) => {
    const flows = flowsTo(stack.options.listeners(), question.host, targets)
    found(stack.avoided.sorted(flows, now), now)
  })
}

/** A large request tries TCP before UDP, unless the transport was asked for or TCP failed lately. */
export function waysOf(
  stack: Stack,
  composed: Composed,
  flows: readonly Flow[],
  now: number,
): readonly Flow[] {
  if (composed.target === '' || !wantsTcp(composed.target, composed.sent.text)) return flows
  return flows.flatMap((flow) => [...byTcp(stack, flow, now), flow])
}

/** Too large for a datagram, and the URI of the next hop asks for no transport. */
export const wantsTcp = (target: string, text: string): boolean =>
  isLarge(text) && hopOf(target)?.isExplicit !== true

const isLarge = (text: string): boolean =>
  // Three bytes are the most that a UTF-16 unit takes.
  text.length * 3 > maxDatagramBytes && byteLength(text) > maxDatagramBytes

export const isSamePlace = (one: Flow, other: Flow): boolean =>
  one.address === other.address && one.port === other.port

/** The same place by TCP, unless that failed lately. */
export function byTcp(
  stack: Stack,
  { listener, address, port }: Flow,
  now: number,
): readonly Flow[] {
  if (listener.protocol !== 'udp') return []
  const tcp = chooseListener(stack.options.listeners(), 'tcp', address)
  if (tcp === undefined) return []
  const flow = { ...flowTo(tcp, address, port), connectMs }
  return stack.avoided.isAvoided(flow, now) ? [] : [flow]
}

export interface Retargeted {
  readonly sent: SentRequest
  readonly contact: string
}

/**
 * The same request for another way: a branch of its own (RFC 3263 §4.3), Via and Contact of the
 * listener that it leaves by. Everything that the application was told of it stays.
 */
export function retarget(
  { sent, contact }: Retargeted,
  from: Listener,
  to: Listener,
  branch: string,
): Retargeted {
  const via = viaOf(to, branch)
  const { text } = sent
  const start = text.indexOf('\r\nVia: ') + '\r\nVia: '.length
  const moved = text.slice(0, start) + via + text.slice(start + sent.via.length)
  const newContact = from === to ? contact : contactAt(contact, from, to)
  return {
    sent: {
      ...sent,
      via,
      branch,
      text: moved.replace(`\r\nContact: ${contact}\r\n`, () => `\r\nContact: ${newContact}\r\n`),
    },
    contact: newContact,
  }
}

/** A Contact that names one listener, naming another; one of the application's own choice stays. */
function contactAt(contact: string, from: Listener, to: Listener): string {
  const place = advertised(from)
  const at = contact.indexOf(place)
  if (at === -1) return contact
  const rest = contact.slice(at + place.length).replace(/^;transport=\w+/i, '')
  return contact.slice(0, at) + advertised(to) + transportParam(to) + rest
}
