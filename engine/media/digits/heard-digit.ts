/** What rtpengine tells of one RFC 4733 event in RTP (`--dtmf-log-dest`): JSON, one datagram each. Pure. */
import { digitOf, type Digit } from '../gate/digits.ts'

export interface HeardDigit {
  /** The ng call-id. */
  readonly session: string
  /** The leg whose party has sent it, or in whose place we had it played. */
  readonly from: string
  readonly digit: Digit
}

/** Undefined: it is nothing of the kind. */
export function heardDigitIn(datagram: Buffer): HeardDigit | undefined {
  const told = parsed(datagram)
  const { callid: session, source_tag: from, event, duration } = told
  if (typeof session !== 'string' || typeof from !== 'string') return undefined
  if (typeof event !== 'number' || typeof duration !== 'number') return undefined
  const digit = digitOf(event, duration)
  return digit && { session, from, digit }
}

function parsed(datagram: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(datagram.toString('utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
