/**
 * An attended transfer whose other call another node has (RFC 5589 §7.3): this node calls that one for the transferee,
 * with Replaces, and there the transferee takes the place of the transferor. Each of the two calls keeps its record and
 * its account on its node. What connects the nodes has a record of its own on both, and is free: no destination is
 * called by it.
 */
import type { Replaces } from '../../sip-server/message/index.ts'
import type { CallDeps } from '../call-deps.ts'
import type { LiveLeg } from '../call-machine/live.ts'
import { admitFree, dial, refuse } from '../inbound/admission.ts'
import { type Identity, partyOf } from './identity.ts'
import type { Target } from './refer-request.ts'
import { begin, inviteFor, presented, rejectionFor, transfersBeforeOf } from './transfer-call.ts'

export interface AttendedTransfer {
  readonly transferor: LiveLeg
  readonly transferee: LiveLeg
  readonly target: Target
  readonly payer: Identity
  readonly replaces: Replaces
}

/** False: there is no other node that could have the dialog. */
export function attendAtOtherNode(transfer: AttendedTransfer, deps: CallDeps): boolean {
  const { transferor, transferee, target, payer, replaces } = transfer
  const { callUuid: itsUuid } = transferee
  const transfersBefore = transfersBeforeOf(transfer, deps)
  const asked = { party: partyOf(payer), transfersBefore, callUuid: itsUuid }
  const candidates = deps.otherNodes?.candidates(replaces, asked) ?? []
  if (candidates.length === 0) return false
  const tenantId = deps.calls.call(transferor.callUuid)?.account?.tenantId ?? null
  const plan = { transferor, transferee, target, payer, isReferred: true, tenantId }
  const invite = inviteFor(plan, deps.newUuid())
  const { callUuid } = invite
  const route = { kind: 'candidates', direction: 'internal', candidates } as const
  const routePlan = { isEmergency: false, route, tenantId }
  const call = begin(plan, invite, deps)
  deps.dispatch({
    type: 'transferTo',
    transferor: transferor.id,
    transferee: transferee.id,
    callUuid,
    destination: target.number,
    offered: invite.body ?? '',
    isReferred: true,
  })
  const rejection = rejectionFor(call, routePlan, deps)
  if (rejection) refuse(call, rejection, deps)
  else {
    admitFree(call, payer.origin, tenantId, deps)
    dial(presented(plan, invite, routePlan, deps), route, false, deps)
  }
  return true
}
