/** Click-to-call: the phones of an extension ring first; the one that is picked up is connected to a number. */
import { partyOfNumber } from '../sip/caller-id.ts'
import { escapeUser } from '../../sip-server/message/index.ts'
import {
  TEST_CALL_SECONDS,
  type OriginateRequest,
  type OriginateResult,
} from '../../../schema/contracts/calls.ts'
import type { ExtensionRecord } from '../../registrar/extension-directory.ts'
import type { CallDeps } from '../call-deps.ts'
import { admit, planRoute, type RoutePlan } from '../inbound/admission.ts'
import { startOf, type IncomingInvite } from '../inbound/incoming-invite.ts'
import { closedBy } from '../inbound/validation.ts'
import type { Headers } from '../signalling.ts'
import { inviteOfSource, phonesOf } from './source.ts'
import { testRoute, whyNotTested } from './test-call.ts'

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

  const destination = deps.routing.dialledNumber(request.destination)
  const invite = inviteOfSource({ ...request, destination, callUuid: deps.newUuid() }, source)
  const { callUuid } = invite
  const call = deps.calls.begin({ start: { ...startOf(invite, 'api', deps.now()), isOurs: true } })
  const denied = (code: string): OriginateResult => {
    deps.calls.finish(call)
    return { kind: 'denied', code }
  }
  const { testedCarrierId } = request
  // Before a wallet is asked: what is reserved for a call that does not begin is not used.
  const notTested =
    testedCarrierId === undefined ? undefined : whyNot(invite, testedCarrierId, source, deps)
  if (notTested !== undefined) return denied(notTested)
  const plan = testedCarrierId === undefined ? planRoute(invite, deps) : charged
  const refusal = await admit(call, invite, plan, deps)
  if (refusal?.kind === 'refused') return denied(refusal.code)
  const { isEmergency } = plan
  const payer = call.account?.customerId ?? null
  const route =
    testedCarrierId === undefined ? plan.route : testRoute(invite, testedCarrierId, payer, deps)
  const connect = { invite, isEmergency, ...(route && { route }) }
  deps.dispatch({
    type: 'ring',
    callUuid,
    phones,
    invite: toSource(request, invite),
    ringMs,
    connect,
    ...(testedCarrierId !== undefined && { maxSeconds: TEST_CALL_SECONDS }),
  })
  return { kind: 'originating', callUuid }
}

/** A test call is never free: it has no route before its payer. */
const charged: RoutePlan = { isEmergency: false, route: undefined, tenantId: null }

/** Why such a test call is refused, as far as its payer is known before charging. */
function whyNot(
  invite: IncomingInvite,
  carrierId: number,
  { customerId }: Pick<ExtensionRecord, 'customerId'>,
  deps: CallDeps,
): string | undefined {
  const why = whyNotTested(invite, deps)
  if (why !== undefined) return why
  const route = testRoute(invite, carrierId, customerId, deps)
  return route.kind === 'refused' && 'code' in route.end ? (route.end.code ?? undefined) : undefined
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
