/** Click-to-call: the phones of an extension ring first; who picks up is connected to a number. */
import type { OriginateRequest, OriginateResult } from '../../../schema/contracts/calls.ts'
import type { ExtensionRecord } from '../../registrar/extension-directory.ts'
import type { Announced } from '../dialing/outgoing-invite.ts'
import { closedBy } from '../inbound/validation.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import { admit, freeRoute, type AdmissionDeps } from '../inbound/admission.ts'
import { reach } from '../setup/reach.ts'
import { userPart } from '../sip/caller-id.ts'
import type { Headers } from '../srf/drachtio.ts'
import { callFromSource, phonesOf, readSource, startOfSource, type SourceDeps } from './source.ts'

export interface OriginateDeps extends AdmissionDeps, SourceDeps {
  readonly calls: SourceDeps['calls']
}

/** Resolves before any phone rings; what becomes of the call is told by its record. */
export async function originate(
  request: OriginateRequest,
  deps: OriginateDeps,
): Promise<OriginateResult> {
  const { domain, extension } = request
  const closed = closedBy(deps.calls)
  if (closed) return { kind: closed }
  const source: ExtensionRecord | undefined = deps.registrar.extensionAt(domain, extension)
  if (source === undefined) return { kind: 'unknown_extension' }
  const phones = phonesOf(source, deps)
  if (phones.length === 0) return { kind: 'extension_unregistered' }

  const reading = readSource({ ...request, callUuid: deps.newUuid() }, source)
  const call = deps.calls.begin(startOfSource(reading, deps.now()))
  const free = freeRoute(reading, deps)
  const refusal = await admit(call, reading, free, deps)
  if (refusal?.kind === 'refused') {
    deps.calls.finish(call)
    return { kind: 'denied', code: refusal.code }
  }
  const { ringMs } = request
  const announced = toSource(request, reading)
  void callFromSource(
    {
      ...{ phones, announced, ringMs },
      connect: (phone) => reach(phone, call, { ...reading, body: phone.offer }, free, deps),
    },
    call,
    deps,
  )
  return { kind: 'originating', callUuid: reading.callUuid }
}

/** The destination as the caller of the source's phones. */
function toSource(request: OriginateRequest, reading: Reading): Announced {
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
