/** An INVITE until its call is dialled: identified, validated, authorized, routed. */
import { hostPort, tagOf } from '../../sip-server/message/index.ts'
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall } from '../call-machine/state.ts'
import { respondToPhone, sourceOf } from '../phones/register.ts'
import { requires100rel, respond } from '../sip-headers.ts'
import type { Answer } from '../signalling.ts'
import type { ReceivedRequest } from '../user-agent/received-request.ts'
import { replaceForOtherNode } from '../transfer/for-other-node.ts'
import { replaceParty } from '../transfer/replace-party.ts'
import { admitAndDial, onFault, planRoute, refuse } from './admission.ts'
import { identify, type Identified, isUnproven } from './identify.ts'
import { readInvite, startOf, type IncomingInvite } from './incoming-invite.ts'
import { carrierFull, rejectionFor } from './validation.ts'

export interface InboundCallDeps extends CallDeps {
  /**
   * Watches the INVITE of a call that has begun: a CANCEL reaches its leg from now on. `isOtherNode`: a node of the
   * installation has sent it, as its token proves.
   */
  readonly receive: (legId: string, request: ReceivedRequest, isOtherNode?: boolean) => void
  /**
   * A call is refused because its source is unknown. True: it gets a record, as a sample. `domain`: what it names, which no
   * tenant has.
   */
  readonly onUnknownSource: (source: ReturnType<typeof sourceOf>, domain?: string) => boolean
}

/**
 * Handles one INVITE outside any dialog. A challenge leaves no record, and neither do most calls of unknown
 * sources, which could fill the disk.
 */
export function handleInvite(
  request: ReceivedRequest,
  answer: Answer,
  deps: InboundCallDeps,
): void {
  const asked = deps.otherNodes?.read(request)
  if (asked === 'refused') {
    request.isFromStranger = true
    return respond(answer, 403, 'Forbidden')
  }
  if (asked) return replaceForOtherNode(request, answer, asked, deps)
  const identified = identify(request, deps)
  request.isFromStranger = isUnproven(identified)
  if (identified.kind === 'challenged') return respondToPhone(answer, identified.answer)
  const { origin } = identified
  const { unknownDomain } = identified
  if (request.isFromStranger && !deps.onUnknownSource(sourceOf(request), unknownDomain))
    return respond(answer, 403, 'Forbidden')
  const invite = readInvite(request, deps.newUuid(), origin, deps.routing)
  const { headers } = request
  const leg = deps.calls.beginInvited(
    { start: startOf(invite, hostPort(request.sourceAddress, request.sourcePort), deps.now()) },
    {
      callerTag: tagOf(headers['from']),
      offer: request.body || undefined,
      isReliable: requires100rel(headers['require']),
      isPhone: origin.kind === 'extension',
    },
  )
  deps.receive(leg.id, request)
  const call = deps.calls.call(invite.callUuid)
  if (call === undefined) return undefined
  return void connect(request, call, invite, strangerText(identified), deps).catch(
    onFault(call, deps),
  )
}

/** What the record of a call of an unknown source says of it. */
const strangerText = ({
  isAuthenticated,
  unknownDomain,
}: Extract<Identified, { readonly kind: 'origin' }>): string | undefined => {
  if (isAuthenticated) return 'the password is right, but From names another user than it is for'
  return unknownDomain === undefined ? undefined : `no tenant has the domain ${unknownDomain}`
}

async function connect(
  request: ReceivedRequest,
  call: LiveCall,
  invite: IncomingInvite,
  stranger: string | undefined,
  deps: InboundCallDeps,
): Promise<unknown> {
  const plan = planRoute(invite, deps)
  const { headers } = request
  const received = { headers, hasUsableContact: (headers['contact'] ?? '') !== '', stranger }
  const { isEmergency } = plan
  const isRouted = plan.route?.kind === 'candidates'
  const rejection = rejectionFor(received, { ...invite, isEmergency, isRouted }, deps)
  if (rejection) return refuse(call, rejection, deps)
  if (invite.origin.kind === 'carrier') {
    // Last of all: it counts the call. Other nodes may have to be asked.
    const admitted = deps.routing.admitCarrierCall(invite.origin.carrierId)
    const isAdmitted = typeof admitted === 'boolean' ? admitted : await admitted
    if (call.end) return refuse(call, call.end, deps)
    if (!isAdmitted) {
      const limit = deps.routing.limitOf(invite.origin.carrierId)
      return refuse(call, carrierFull(deps, limit), deps)
    }
    deps.calls.counts.arrived(call, invite.origin.carrierId)
  }
  if (headers['replaces'] !== undefined) return replaceParty(headers, call, invite, deps)
  return admitAndDial(call, invite, plan, deps)
}
