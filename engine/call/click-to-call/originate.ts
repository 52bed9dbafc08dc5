/** Click-to-call: the phones of an extension ring first; the one that is picked up is connected to a number. */
import { partyOfNumber } from '../sip/caller-id.ts'
import { escapeUser } from '../../sip-server/message/index.ts'
import type { OriginateRequest, OriginateResult } from '../../../schema/contracts/calls.ts'
import type { CallDeps } from '../call-deps.ts'
import { admit, planRoute } from '../inbound/admission.ts'
import { startOf, type IncomingInvite } from '../inbound/incoming-invite.ts'
import { closedBy } from '../inbound/validation.ts'
import type { Headers } from '../signalling.ts'
import { inviteOfSource, phonesOf } from './source.ts'

/** Resolves before any phone rings; the record tells the result of the call. */
export async function originate(
  request: OriginateRequest,
  deps: CallDeps,
): Promise<OriginateResult> {
  const { domain, extension, ringMs } = request
  const closed = closedBy(deps.calls)
  if (closed) return { kind: closed }
  const source = deps.registrar.extensionAt(domain, extension)
  if (source === undefined) return { kind: 'unknown_extension' }
  const phones = phonesOf(source, deps)
  if (phones.length === 0) return { kind: 'extension_unregistered' }

  const invite = inviteOfSource({ ...request, callUuid: deps.newUuid() }, source)
  const { callUuid } = invite
  const call = deps.calls.begin({ start: { ...startOf(invite, 'api', deps.now()), isOurs: true } })
  const plan = planRoute(invite, deps)
  const refusal = await admit(call, invite, plan, deps)
  if (refusal?.kind === 'refused') {
    deps.calls.finish(call)
    return { kind: 'denied', code: refusal.code }
  }
  const { isEmergency, route } = plan
  const connect = { invite, isEmergency, ...(route && { route }) }
  deps.dispatch({
    type: 'ring',
    callUuid,
    phones,
    invite: toSource(request, invite),
    ringMs,
    connect,
  })
  return { kind: 'originating', callUuid }
}

/** The destination as the caller of the source's phones. */
function toSource(request: OriginateRequest, invite: IncomingInvite): IncomingInvite {
  const { destination, autoAnswer, domain } = request
  const from = partyOfNumber(destination, domain)
  const headers = autoAnswer ? pickUp : {}
  return { ...invite, headers, body: undefined, from, calledUser: escapeUser(request.extension) }
}

/** RFC 5373 has no phones; these two have nearly all of them. */
const pickUp: Headers = {
  'alert-info': '<http://127.0.0.1>;info=alert-autoanswer;delay=0',
  'call-info': '<sip:localhost>;answer-after=0',
}
