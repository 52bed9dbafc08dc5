/** Answers the questions of the SIP server: who is let in, and where requests may go. */
import type { ActiveCalls } from './call/active-calls.ts'
import type { CallControl } from './call/app.ts'
import { type DialogWayDeps, mayFollow } from './call/dialog-way.ts'
import { type InDialogDeps, refusalInDialog } from './call/in-dialog-source.ts'
import { calledOf } from './call/sip-headers.ts'
import { headersOf } from './call/user-agent/received-request.ts'
import type { Dispatcher } from './dispatcher/dispatcher.ts'
import type { FloodGuard } from './flood-guard/flood-guard.ts'
import type { PeerInstances } from './registrar/hop/peer-instances.ts'
import type { PhoneHop } from './registrar/hop/phone-hop.ts'
import type { Registrar } from './registrar/registrar.ts'
import { ownMachineCheck } from './routing/own-places.ts'
import type { Routing } from './routing/routing.ts'
import type { TrustedSources } from './routing/trusted-sources.ts'
import type { UnpricedCalls } from './routing/unpriced-calls.ts'
import type { SipDecisions } from './sip-service.ts'

interface SipDecisionsDeps {
  readonly calls: ActiveCalls
  readonly control: Pick<CallControl, 'inviteRefused'>
  readonly dispatcher: Pick<Dispatcher, 'setRecord'>
  readonly guard: FloodGuard
  /** Undefined: there are no other instances. */
  readonly hop: Pick<PhoneHop, 'read'> | undefined
  readonly peers: Pick<PeerInstances, 'has'> | undefined
  /** Proxies in front of WebSockets, which speak for many. */
  readonly proxies: TrustedSources
  readonly registrar: Registrar
  readonly routing: Routing
  readonly unpriced: Pick<UnpricedCalls, 'mayReach'>
  /** Whether an address is that of a carrier, a node, another instance or a trusted network. */
  readonly isKnown: (address: string, port: number) => boolean
  /** Whether an address is inside the platform, where others do not reach it. */
  readonly isInner: (address: string) => boolean
}

export function sipDecisions(deps: SipDecisionsDeps): SipDecisions {
  const { calls, control, guard, hop, proxies, registrar, routing, unpriced, isKnown } = deps
  const inDialog = inDialogDeps(deps)
  const dialogWay = dialogWayDeps(deps)
  return {
    admit: ({ listener: { protocol }, address, port }, packet) =>
      guard.admit({ protocol, address, port }, packet),
    admitRequest: (source, method, userAgent) => guard.admitRequest(source, method, userAgent),
    sourceStatus: ({ address, port }) => {
      if (isKnown(address, port) || proxies.has(address)) return 'known'
      return guard.isProven(address) ? 'proven' : 'stranger'
    },
    isUrgent: (uri) => routing.isEmergencyNumber(calledOf(uri).number),
    mayReach: unpriced.mayReach,
    onRefusedInvite: (invite) => control.inviteRefused({ ...invite, headers: headersOf(invite) }),
    onRegisteredFlowClosed: ({ listener: { protocol }, address, port }) =>
      registrar.connectionClosed({ protocol, address, port }),
    readToken: (request) => hop?.read(request),
    admitInDialog: (request, dialog) => refusalInDialog(request, dialog, inDialog),
    mayFollow: (way) => mayFollow(way, dialogWay),
    correlationOf: (callId) => calls.uuidOf(callId),
  }
}

const inDialogDeps = ({
  calls,
  guard,
  peers,
  registrar,
  routing,
}: SipDecisionsDeps): InDialogDeps => ({
  calls,
  routing,
  registrar,
  isInstance: (address) => peers?.has(address) === true,
  onRefused: ({ protocol, sourceAddress: address, sourcePort: port, method }, callUuid) =>
    guard.refusedInCall({ protocol, address, port }, method, callUuid),
})

const dialogWayDeps = ({
  calls,
  dispatcher,
  guard,
  peers,
  routing,
  isInner,
}: SipDecisionsDeps): DialogWayDeps => ({
  calls,
  routing,
  isInstance: (address) => peers?.has(address) === true,
  isInner,
  isOwnMachine: (address) => ownMachineCheck()(address),
  tenantOfSet: (setId) => dispatcher.setRecord(setId)?.tenantId ?? null,
  onRefused: ({ routes: [to], target, ...party }, callUuid) =>
    guard.wayNotFollowed(party, to ?? target, callUuid),
})
