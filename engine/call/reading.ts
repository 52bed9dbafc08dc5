/** What an INVITE says about its call, read once. */
import type { Routing } from '../routing/routing.ts'
import type { CallStart } from './call.ts'
import type { RouteQuestion } from './route.ts'
import { calledOf, callerOf, partyOf, userPart } from './sip/caller-id.ts'
import type { SipRequest } from './sip/drachtio.ts'
import type { Announced } from './legs/outgoing.ts'

export interface Reading extends Announced, RouteQuestion {
  readonly callerNumber: string
  readonly callerName: string | null
}

/** RFC 3261 §8.1.1.6: what an INVITE without Max-Forwards is taken to have. */
const DEFAULT_HOPS = 70

export function readInvite(
  request: SipRequest,
  callUuid: string,
  routing: Pick<Routing, 'recognize' | 'inboundNumber'>,
): Reading {
  const { headers, uri } = request
  const origin = routing.recognize({ address: request.source_address, port: request.source_port })
  const from = partyOf(headers['from'] ?? '')
  const caller = callerOf(headers['p-asserted-identity'], headers['from'] ?? '')
  const called = calledOf(uri)
  const calledNumber = routing.inboundNumber(origin, called.number)
  return {
    origin,
    callUuid,
    callId: headers['call-id'] ?? '',
    headers,
    body: request.body || undefined,
    from,
    callerNumber: routing.inboundNumber(origin, caller.number),
    callerName: caller.name || null,
    calledNumber,
    calledUser: calledNumber === called.number ? called.user : userPart(calledNumber),
    domain: hostWithoutPort(called.host),
    hopsLeft: hopsOf(headers['max-forwards']) - 1,
  }
}

export function startOf(request: SipRequest, reading: Reading, startedAt: number): CallStart {
  const { callUuid, callId, callerNumber, callerName, calledNumber } = reading
  const { source_address: address, source_port: port } = request
  const sourceAddress = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  return { callUuid, callId, callerNumber, callerName, calledNumber, sourceAddress, startedAt }
}

function hopsOf(maxForwards: string | undefined): number {
  const hops = Number.parseInt(maxForwards ?? '', 10)
  return Number.isNaN(hops) ? DEFAULT_HOPS : Math.min(hops, 255)
}

function hostWithoutPort(host: string): string {
  const colon = host.lastIndexOf(':')
  return colon > host.lastIndexOf(']') ? host.slice(0, colon) : host
}
