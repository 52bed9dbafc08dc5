/** Click-to-call: the phones of an extension ring first; who picks up is connected to a number. */
import type { ExtensionRecord } from '../../registrar/extension-directory.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { Call } from '../call.ts'
import type { Outcome } from '../cascade.ts'
import type { Announced, PhoneCandidate } from '../legs/outgoing.ts'
import { isOverloaded } from '../objection.ts'
import type { Reading } from '../reading.ts'
import type { End } from '../record/end-reason.ts'
import { admit, freeRoute, type AdmissionDeps, type FreeRoute } from '../setup/admission.ts'
import { reach, type ReachDeps } from '../setup/reach.ts'
import { store, talk, type TalkDeps } from '../setup/talk.ts'
import { userPart } from '../sip/caller-id.ts'
import type { Headers } from '../sip/drachtio.ts'
import { ringSource } from './ring-source.ts'
import { WaitingPhone } from './waiting-phone.ts'

export interface OriginateRequest {
  /** In small letters. */
  readonly domain: string
  readonly extension: string
  readonly destination: string
  /** What the called side is shown; undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
  /** The phone is asked to pick up by itself. */
  readonly autoAnswer: boolean
  /** How long the extension's phones ring. */
  readonly ringMs: number
}

export type OriginateResult =
  | { readonly kind: 'originating'; readonly callUuid: string }
  | { readonly kind: 'unknown_extension' | 'extension_unregistered' | 'draining' | 'overload' }
  /** Nobody pays for it, or nobody may call there; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

export interface OriginateDeps extends AdmissionDeps, ReachDeps, TalkDeps {
  readonly calls: ActiveCalls
  readonly registrar: Pick<Registrar, 'extensionAt' | 'contactsOf' | 'homeDomain'>
  readonly newUuid: () => string
}

/** Resolves before any phone rings; what becomes of the call is told by its record. */
export async function originate(
  request: OriginateRequest,
  deps: OriginateDeps,
): Promise<OriginateResult> {
  const { domain, extension } = request
  if (deps.calls.isDraining) return { kind: 'draining' }
  if (isOverloaded(deps.calls)) return { kind: 'overload' }
  const source = deps.registrar.extensionAt(domain, extension)
  if (source === undefined) return { kind: 'unknown_extension' }
  const phones = phonesOf(source, deps)
  if (phones.length === 0) return { kind: 'extension_unregistered' }

  const reading = readRequest(request, source, deps.newUuid())
  const call = deps.calls.begin(startOf(reading, deps.now()))
  const free = freeRoute(reading, deps)
  const refusal = await admit(call, reading, free, deps)
  if (refusal?.kind === 'refused') {
    deps.calls.finish(call)
    return { kind: 'denied', code: refusal.code }
  }
  void run({ request, phones, reading, free }, call, deps)
  return { kind: 'originating', callUuid: reading.callUuid }
}

function phonesOf(
  { domain, extension }: ExtensionRecord,
  deps: OriginateDeps,
): readonly PhoneCandidate[] {
  return deps.registrar.contactsOf(domain, extension).map(({ uri, routes, nextHop }) => ({
    ...{ kind: 'phone', uri, routes, nextHop, extension, domain },
  }))
}

interface Plan {
  readonly request: OriginateRequest
  readonly phones: readonly PhoneCandidate[]
  readonly reading: Reading
  readonly free: FreeRoute
}

async function run(plan: Plan, call: Call, deps: OriginateDeps): Promise<void> {
  const end = await outcomeOf(plan, call, deps).catch((error: unknown): End => {
    deps.log('error', 'a call failed', { callUuid: call.start.callUuid, error })
    return { kind: 'refused', status: 500, reason: 'Server Internal Error', code: 'fault' }
  })
  // Whoever waits on the phone hears that it is over.
  call.stop(end)
  await store(call, end, deps)
}

async function outcomeOf(plan: Plan, call: Call, deps: OriginateDeps): Promise<End> {
  if (call.stopped) return call.stopped
  const { reading, request, phones, free } = plan
  const source = await ringSource(phones, toSource(plan), request.ringMs, call, deps)
  if (source.kind === 'over') return source.end
  const phone = new WaitingPhone(call, source, deps)
  const offered = { ...reading, body: phone.offer }
  const outcome: Outcome = await reach(phone, call, offered, free, deps)
  return outcome.kind === 'answered' ? talk(call, outcome.ended, deps) : outcome.end
}

/** The destination as the caller of the source's phones. */
function toSource({ request, reading }: Plan): Announced {
  const { destination, autoAnswer, domain } = request
  const from = { name: '', user: userPart(destination), host: domain, number: destination }
  const headers = autoAnswer ? pickUp : {}
  return { ...reading, headers, body: undefined, from, calledUser: userPart(request.extension) }
}

/** RFC 5373 has no phones; these two have nearly all of them. */
const pickUp: Headers = {
  'alert-info': '<http://127.0.0.1>;info=alert-autoanswer;delay=0',
  'call-info': '<sip:localhost>;answer-after=0',
}

function readRequest(
  { destination, callerNumber, callerName }: OriginateRequest,
  source: ExtensionRecord,
  callUuid: string,
): Reading {
  const { extensionId, tenantId, customerId, domain, extension, displayName } = source
  const number = callerNumber ?? extension
  const name = callerName ?? (callerNumber === undefined ? displayName : '')
  return {
    origin: {
      ...{ kind: 'extension', extensionId, tenantId, customerId },
      ...{ domain, extension, displayName },
    },
    ...{ callUuid, callId: callUuid, domain },
    headers: {},
    body: undefined,
    from: { name, user: userPart(number), host: domain, number },
    callerNumber: number,
    callerName: name || null,
    calledNumber: destination,
    calledUser: userPart(destination),
    hopsLeft: 70,
  }
}

const startOf = (reading: Reading, startedAt: number) => {
  const { callUuid, callId, callerNumber, callerName, calledNumber } = reading
  return {
    callUuid,
    callId,
    callerNumber,
    callerName,
    calledNumber,
    sourceAddress: 'api',
    isOurs: true,
    startedAt,
  }
}
