/** How many messages have come and gone, by method and status. */
import type { SipMessage } from '../../../schema/sip/message.ts'
import type { CallTimes } from './call-times.ts'

/** Counts of requests by method, and of responses by method and status. */
export interface TrafficTotals {
  readonly requestsIn: ReadonlyMap<string, number>
  readonly requestsOut: ReadonlyMap<string, number>
  readonly responsesIn: ReadonlyMap<string, ReadonlyMap<number, number>>
  readonly responsesOut: ReadonlyMap<string, ReadonlyMap<number, number>>
  /** Copies that were sent for want of an answer, or because the other side sent one. */
  readonly repeatedOut: { readonly requests: number; readonly responses: number }
  readonly faulty: Readonly<Faulty>
  /** INVITEs that were refused because the tables were full. */
  readonly refusedWhenFull: number
  /** Taken although their lines end with bare line feeds. */
  readonly withLineFeeds: number
}

/** Messages that could not be used. */
interface Faulty {
  /** Not counted anywhere else; requests as far as they can be recognized. */
  unreadable: number
  unreadableRequests: number
  /** Readable, but refused as no correct request, or dropped as no correct response. */
  requests: number
  responses: number
}

/** The most frequent first. */
const methods = (
  'INVITE ACK BYE CANCEL OPTIONS REGISTER UPDATE PRACK INFO REFER MESSAGE NOTIFY SUBSCRIBE ' +
  'PUBLISH'
).split(' ')

/**
 * Methods that this server understands; all others are counted together, so that their number is
 * bounded.
 */
export const knownMethods: ReadonlySet<string> = new Set(methods)

const statusLine = 'SIP/2.0 '
const cseqField = '\r\nCSeq: '

export class Traffic implements TrafficTotals {
  readonly requestsIn = new Map<string, number>()
  readonly requestsOut = new Map<string, number>()
  readonly responsesIn = new Map<string, Map<number, number>>()
  readonly responsesOut = new Map<string, Map<number, number>>()
  readonly repeatedOut = { requests: 0, responses: 0 }
  refusedWhenFull = 0
  readonly faulty: Faulty = { unreadableRequests: 0, unreadable: 0, requests: 0, responses: 0 }
  withLineFeeds = 0

  received({ kind, method, status }: SipMessage): void {
    if (kind === 'request') countRequest(this.requestsIn, known(method))
    else countResponse(this.responsesIn, known(method), status)
  }

  /** A response that was not read further. */
  answered(method: string, status: number): void {
    countResponse(this.responsesIn, method, status)
  }

  unreadable(isRequest: boolean): void {
    this.faulty.unreadable += 1
    if (isRequest) this.faulty.unreadableRequests += 1
  }

  /** Counts a copy of a message that has left before. */
  repeated(text: string): void {
    if (text.startsWith(statusLine)) this.repeatedOut.responses += 1
    else this.repeatedOut.requests += 1
  }

  /** A message as it leaves, copies included. */
  sent(text: string): void {
    if (!text.startsWith(statusLine)) return countRequest(this.requestsOut, methodAt(text, 0))
    const number = text.indexOf(' ', text.indexOf(cseqField) + cseqField.length)
    return countResponse(this.responsesOut, methodAt(text, number + 1), Number(text.slice(8, 11)))
  }
}

/** The method at this position, compared in place: cheaper than a substring and a look-up. */
function methodAt(text: string, at: number): string {
  for (const method of methods)
    if (text.startsWith(method, at) && text.charCodeAt(at + method.length) <= 0x20) return method
  return 'other'
}

const known = (method: string): string => (knownMethods.has(method) ? method : 'other')

function countRequest(counts: Map<string, number>, method: string): void {
  counts.set(method, (counts.get(method) ?? 0) + 1)
}

function countResponse(
  counts: Map<string, Map<number, number>>,
  method: string,
  status: number,
): void {
  const byStatus = counts.get(method)
  if (byStatus) byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
  else counts.set(method, new Map([[status, 1]]))
}

/** The times of calls that come in, and of calls that go out. */
export interface CallTimesByDirection {
  readonly inbound: CallTimes
  readonly outbound: CallTimes
}
