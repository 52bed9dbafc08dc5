/** Digits in SIP INFO, as phones write them: `application/dtmf-relay` and `application/dtmf`. Pure. */
import type { Headers, LegCommandOf } from '../../call/signalling.ts'
import type { NgRequest } from '../relay/relays.ts'
import type { Session } from './session.ts'

export interface Digit {
  readonly code: string
  readonly durationMs: number
}

/** What phones send that say no duration, and what the relay plays. */
const duration = { default: 160, least: 40, most: 5_000 }

/** Undefined: the body is none, or of another kind. */
export function digitIn(headers: Headers, body: string | undefined): Digit | undefined {
  const type = /^application\/dtmf(-relay)?\s*(?:;|$)/i.exec(headers['content-type'] ?? '')
  if (type === null || body === undefined) return undefined
  const isPlain = type[1] === undefined
  const text = isPlain ? body.trim() : /^signal\s*=\s*(\S+)\s*$/im.exec(body)?.[1]
  const code = text && codeOf(text)
  if (!code) return undefined
  const said = Number(/^duration\s*=\s*(\d{1,5})\s*$/im.exec(body)?.[1] ?? duration.default)
  return { code, durationMs: bounded(said) }
}

const bounded = (ms: number): number => Math.min(Math.max(ms, duration.least), duration.most)

/** RFC 4733 §3.2. Undefined: an event that is no digit. */
export function digitOf(event: number, ms: number): Digit | undefined {
  const code = '0123456789*#ABCD'[event]
  return code === undefined ? undefined : { code, durationMs: bounded(Math.round(ms)) }
}

/** As phones write it. */
export const infoOf = ({
  code,
  durationMs,
}: Digit): Omit<LegCommandOf<'request'>, 'legId' | 'transactionId'> => ({
  type: 'request',
  method: 'INFO',
  sdpOwner: undefined,
  noAck: false,
  headers: { 'Content-Type': 'application/dtmf-relay' },
  body: `Signal=${code}\r\nDuration=${durationMs}\r\n`,
})

/** RFC 4733 §3.2: 10 and 11 are `*` and `#`, 12 to 15 the letters; some phones write the number. */
function codeOf(text: string): string | undefined {
  if (/^[0-9*#A-D]$/i.test(text)) return text.toUpperCase()
  return /^1[0-5]$/.test(text) ? '*#ABCD'[Number(text) - 10] : undefined
}

/** In the place of `from`, towards the other party. */
export const playOf = ({ id }: Session, from: string, { code, durationMs }: Digit): NgRequest => ({
  command: 'play DTMF',
  'call-id': id,
  'from-tag': from,
  code,
  duration: durationMs,
})
