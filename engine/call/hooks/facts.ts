/** The operator's code is told this about a call. Pure. */
import type { CallCost, CallRecord } from '../../../schema/contracts/call-record.ts'
import type {
  HookAnsweredCall,
  HookCall,
  HookCandidate,
  HookEndedCall,
  HookParty,
  HookRecord,
  HookSource,
} from '../../../schema/contracts/hooks.ts'
import type { Origin } from '../../routing/routing.ts'
import type { LiveCall } from '../call-machine/state.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { CallDestination } from '../inbound/route.ts'
import type { Headers } from '../signalling.ts'

/** How a call begins: by a request from an address, or by another part of this platform. */
export type CallBegins =
  | { readonly kind: 'request'; readonly address: string; readonly port: number }
  | { readonly kind: 'api' | 'forward' | 'transfer' }

export function hookCallOf(
  invite: IncomingInvite,
  begins: CallBegins,
  tenantId: number | null,
  customer: HookParty | undefined,
): HookCall {
  const { origin } = invite
  return {
    callUuid: invite.callUuid,
    callId: invite.callId,
    from: invite.callerNumber,
    fromName: invite.callerName,
    to: invite.calledNumber,
    domain: invite.domain,
    source: sourceBy(origin, begins, tenantId),
    ...(customer && { customer }),
    ...(origin.kind === 'carrier' && { carrier: { id: origin.carrierId, name: origin.name } }),
    tenantId,
    ...provedFacts(invite),
    headers: shownHeaders(invite.headers),
  }
}

/** Only of the caller that a carrier has sent: a forward is of who forwards. */
function provedFacts({ origin, verified }: IncomingInvite) {
  if (origin.kind !== 'carrier' || verified === undefined) return undefined
  const { verification, attestation } = verified
  return attestation === null ? { verification } : { verification, attestation }
}

function sourceBy(origin: Origin, begins: CallBegins, tenantId: number | null): HookSource {
  const kind = begins.kind === 'api' || begins.kind === 'forward' ? begins.kind : kindOf(origin)
  const { address, port } = begins.kind === 'request' ? begins : nowhere
  return { kind, address, port, ...namedBy(origin), tenantId }
}

const nowhere = { address: '', port: 0 }

/** Unknown sources are refused before any hook is asked. */
const kindOf = ({ kind }: Origin): HookSource['kind'] => (kind === 'unknown' ? 'trusted' : kind)

function namedBy(origin: Origin): Pick<HookSource, 'id' | 'name'> {
  switch (origin.kind) {
    case 'carrier':
      return { id: origin.carrierId, name: origin.name }
    case 'node':
      return { id: origin.nodeId, name: null }
    case 'extension':
      return { id: origin.extensionId, name: `${origin.extension}@${origin.domain}` }
    case 'proxy':
    case 'trusted':
    case 'unknown':
    default:
      return { id: null, name: null }
  }
}

/** A password's digest is nobody's business. */
const secret = new Set(['authorization', 'proxy-authorization'])

function shownHeaders(headers: Headers): Readonly<Record<string, string>> {
  const shown: Record<string, string> = {}
  for (const [spelled, value] of Object.entries(headers)) {
    const name = spelled.toLowerCase()
    if (!secret.has(name)) shown[name] = value
  }
  return shown
}

export function candidateFacts(destination: CallDestination): HookCandidate {
  const { uri } = destination
  switch (destination.kind) {
    case 'gateway':
      return { kind: 'gateway', uri, name: destination.carrierName, id: destination.carrierId }
    case 'agent':
      return { kind: 'agent', uri, name: destination.name, id: destination.agentId }
    case 'node':
      return { kind: 'node', uri, name: null, id: destination.nodeId }
    case 'extension':
      return { kind: 'extension', uri, name: uri.slice('sip:'.length), id: null }
    case 'domain':
    case 'spy':
    case 'listener':
    case 'other-node':
    default:
      return { kind: 'domain', uri, name: null, id: null }
  }
}

export function answeredFacts(call: LiveCall): HookAnsweredCall {
  const { callUuid, callerNumber, calledNumber } = call.start
  const answered = call.attempts.findLast(({ status }) => status >= 200 && status < 300)
  return {
    callUuid,
    from: callerNumber,
    to: calledNumber,
    destination: answered?.destination ?? '',
    answeredAt: (call.answeredAt ?? call.start.startedAt) + call.stampOffsetMs,
    tags: call.tags ?? {},
  }
}

export const endedFacts = (record: CallRecord): HookEndedCall => ({
  callUuid: record.callUuid,
  from: record.callerNumber,
  to: record.calledNumber,
  disposition: record.disposition,
  sipCode: record.sipCode,
  hangupBy: record.hangupBy,
  billsec: record.billsec,
  tags: record.tags ?? {},
})

/** `cost` undefined: another system charges. */
export const recordFacts = (record: CallRecord, cost: CallCost | undefined): HookRecord => ({
  ...endedFacts(record),
  customerId: record.customerId,
  tenantId: record.tenantId,
  carrier: record.carrier,
  costMicros: cost?.costMicros ?? null,
  currency: cost?.currency ?? record.currency,
})
