/**
 * A supervisor joins a live call: the phones of an extension ring, and who picks up is connected to
 * where the call's node lets somebody in. The node mixes the media; no wallet is asked. The call of
 * the supervisor ends with the one that it is about.
 */
import type { SpyRequest, SpyResult } from '../../../schema/contracts/calls.ts'
import { canSpy, renderSpyUri } from '../../../schema/rules/spy-uri.ts'
import { Bridge } from '../bridge.ts'
import type { Call } from '../call.ts'
import { cascade, type Outcome } from '../cascade.ts'
import type { SpyCandidate } from '../dialing/outgoing-invite.ts'
import { closedBy } from '../inbound/validation.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import { cause } from '../cdr/end-reason.ts'
import { unpaid } from '../inbound/admission.ts'
import { userPart } from '../sip/caller-id.ts'
import {
  callFromSource,
  phonesOf,
  readSource,
  startOfSource,
  type SourceDeps,
} from '../click-to-call/source.ts'
import type { WaitingPhone } from '../originate/waiting-phone.ts'

/** How long the supervisor's phones ring. */
const RING_MS = 60_000

/** Answers before any phone rings. */
export function spy(request: SpyRequest, deps: SourceDeps): SpyResult {
  const { domain, extension } = request
  const spied = deps.calls.call(request.callUuid)
  if (spied === undefined || spied.stopped) return { kind: 'unknown_call' }
  const candidate = entranceTo(spied, request, deps)
  if (candidate === undefined) return { kind: 'spy_mode_unavailable' }
  if (spied.answeredAt === null) return { kind: 'call_not_answered' }
  const closed = closedBy(deps.calls)
  if (closed) return { kind: closed }
  const source = deps.registrar.extensionAt(domain, extension)
  if (source === undefined) return { kind: 'unknown_extension' }
  const phones = phonesOf(source, deps)
  if (phones.length === 0) return { kind: 'extension_unregistered' }

  const callUuid = deps.newUuid()
  // The record tells which call it was about.
  const destination = `spy:${request.callUuid}`
  const reading = readSource(
    { callUuid, destination, callerNumber: undefined, callerName: undefined },
    source,
  )
  const call = begin(reading, source.tenantId, deps)
  const forget = spied.whenStopped(() => {
    call.stop({ kind: 'cut', by: 'system', cause: cause.normal, code: 'spied_call_ended' })
  })
  const connect = (phone: WaitingPhone) => join(phone, call, spied, { candidate, reading }, deps)
  const announced = toSupervisor(reading, spied, extension)
  void callFromSource({ phones, announced, ringMs: RING_MS, connect }, call, deps).then(forget)
  return { kind: 'originating', callUuid }
}

/** Undefined: the call is on no node of a set that lets anybody in, or not so. */
function entranceTo(
  { start, place }: Call,
  { mode, side }: SpyRequest,
  { dispatcher }: SourceDeps,
): SpyCandidate | undefined {
  const { setId, node } = place
  const { spyUri: template = null, tenantId = null } =
    (setId === null ? undefined : dispatcher.setRecord(setId)) ?? {}
  if (node === null || template === null || !canSpy(template, mode, side)) return undefined
  const host = node.replace(/^sips?:/, '').replace(/;.*$/, '')
  const values = { call_uuid: start.callUuid, mode, side, node: host }
  return { kind: 'spy', uri: renderSpyUri(template, values), nextHop: node, tenantId }
}

/** Nobody pays for it. */
function begin(reading: Reading, tenantId: number, deps: SourceDeps): Call {
  const call = deps.calls.begin(startOfSource(reading, deps.now()))
  call.isFree = true
  call.account = unpaid(tenantId)
  call.direction = 'internal'
  call.notes.push({ at: deps.now(), what: 'recognized', origin: reading.origin })
  deps.calls.started(call)
  return call
}

/** The phones show who talks to whom. */
function toSupervisor(reading: Reading, { start }: Call, extension: string) {
  const { callerNumber, calledNumber } = start
  const name = `${callerNumber} - ${calledNumber}`
  const from = { name, user: userPart(calledNumber), host: reading.domain, number: calledNumber }
  return { ...reading, from, calledUser: userPart(extension) }
}

interface Entrance {
  readonly candidate: SpyCandidate
  readonly reading: Reading
}

function join(
  phone: WaitingPhone,
  call: Call,
  { place }: Call,
  { candidate, reading }: Entrance,
  deps: SourceDeps,
): Promise<Outcome> {
  deps.calls.place(call, { ...place, carrierId: null, carrier: null, agentId: null })
  const attempt = async () => {
    const announced = { ...reading, body: phone.offer }
    const bridge = new Bridge(deps, call, phone, announced, candidate.uri)
    const result = await bridge.run(candidate)
    call.attempts.push(bridge.record)
    return result
  }
  return cascade([candidate], attempt, () => call.stopped)
}
