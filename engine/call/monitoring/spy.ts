/**
 * A supervisor joins a live call: the phones of an extension ring, and the one that answers is
 * connected to the node of the call, or to the audio from its media relay. The call of the
 * supervisor is not charged, and ends with the supervised call.
 */
import { partyOfNumber } from '../sip-headers.ts'
import { escapeUser } from '../../../schema/sip/index.ts'
import type { SpyRequest, SpyResult } from '../../../schema/contracts/calls.ts'
import { canSpy, renderSpyUri } from '../../../schema/rules/media.ts'
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall } from '../call-machine/state.ts'
import { inviteOfSource, phonesOf } from '../click-to-call.ts'
import type { ListenerCandidate, SpyCandidate } from '../dialing/outgoing-invite.ts'
import { admitFree, closedBy } from '../inbound/admission.ts'
import { type IncomingInvite, SPIED, startOf } from '../inbound/incoming-invite.ts'

/** How long the supervisor's phones ring. */
const RING_MS = 60_000

/** Answers before any phone rings. */
export function spy(request: SpyRequest, deps: CallDeps): SpyResult {
  const { domain, extension } = request
  const supervised = deps.calls.call(request.callUuid)
  if (supervised === undefined || supervised.end) return { kind: 'unknown_call' }
  const candidate = entranceTo(supervised, request, deps) ?? listenerTo(request, deps)
  if (candidate === undefined) return { kind: 'spy_mode_unavailable' }
  if (supervised.answeredAt === null) return { kind: 'call_not_answered' }
  const closed = closedBy(deps.calls)
  if (closed) return { kind: closed }
  const source = deps.registrar.extensionAt(domain, extension)
  if (source === undefined) return { kind: 'unknown_extension' }
  const phones = phonesOf(source, deps)
  if (phones.length === 0) return { kind: 'extension_unregistered' }

  const callUuid = deps.newUuid()
  // The record names the supervised call.
  const destination = `${SPIED}${request.callUuid}`
  const shown = { callerNumber: undefined, callerName: undefined }
  const invite = inviteOfSource({ callUuid, destination, ...shown }, source)
  const call = deps.calls.begin({ start: { ...startOf(invite, 'api', deps.now()), isOurs: true } })
  admitFree(call, invite.origin, source.tenantId, deps)
  deps.dispatch({ type: 'supervise', callUuid: request.callUuid, by: callUuid })
  const route = { kind: 'candidates', direction: 'internal', candidates: [candidate] } as const
  const connect = { invite, isEmergency: false, route }
  const shownInvite = toSupervisor(invite, supervised, extension)
  deps.dispatch({ type: 'ring', callUuid, phones, invite: shownInvite, ringMs: RING_MS, connect })
  return { kind: 'originating', callUuid }
}

/** Undefined: the node of the call does not support this kind of supervision. */
function entranceTo(
  { start, place }: LiveCall,
  { mode, side }: SpyRequest,
  { dispatcher }: CallDeps,
): SpyCandidate | undefined {
  const { setId, nodeId, node } = place
  const { spyUri: template = null, tenantId = null } =
    (setId === null ? undefined : dispatcher.setRecord(setId)) ?? {}
  if (node === null || template === null || !canSpy(template, mode, side)) return undefined
  const host = node.replace(/^sips?:/, '').replace(/;.*$/, '')
  const values = { call_uuid: start.callUuid, mode, side, node: host }
  const uri = renderSpyUri(template, values)
  return { kind: 'spy', uri, nextHop: node, tenantId, setId, nodeId, node }
}

/** Undefined: the mode is not `listen`, or no relay has the media of the call. */
function listenerTo(
  { callUuid, mode, side }: SpyRequest,
  { listening }: CallDeps,
): ListenerCandidate | undefined {
  const relay = mode === 'listen' ? listening?.relayOf(callUuid) : undefined
  if (relay === undefined) return undefined
  return { kind: 'listener', uri: `relay:${relay}`, listened: { callUuid, side } }
}

/** The phones show both parties of the call. */
function toSupervisor(
  invite: IncomingInvite,
  { start }: LiveCall,
  extension: string,
): IncomingInvite {
  const { callerNumber, calledNumber } = start
  const name = `${callerNumber} - ${calledNumber}`
  const from = partyOfNumber(calledNumber, invite.domain, name)
  return { ...invite, from, calledUser: escapeUser(extension) }
}
