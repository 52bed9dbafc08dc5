/** Calls that the application makes: for whom, and where they may go. Pure. */
import { refused } from '../cdr/end-reason.ts'
import type { LiveCall } from '../call-machine/state.ts'
import type { RoutePlan } from '../inbound/admission.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import { type RouteDeps, tenantOf } from '../inbound/route.ts'
import type { Dispatcher } from '../../dispatcher/dispatcher.ts'
import { ownMark } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'
import type { Origin } from '../../routing/routing.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { plainHost } from '../../../schema/sip/index.ts'
import { isPrivateHeader } from './private-headers.ts'

/**
 * Where `call` has come from, in which the application calls: a phone or a node calls as if it had
 * dialled; for any other call its payer calls. Undefined: in none; the number in From names the
 * payer. `ended`: in one that is over, so nobody is known who pays: its caller has written From.
 */
export function applicationOrigin(call: LiveCall | 'ended' | undefined): Origin {
  if (call === 'ended')
    return { kind: 'application', tenantId: null, customerId: null, mayNamePayer: false }
  const { origin, account } = call ?? {}
  if (origin?.kind === 'extension' || origin?.kind === 'node') return origin
  const tenantOfCarrier = origin?.kind === 'carrier' ? origin.tenantId : null
  const namesNobody = origin?.kind === 'carrier' && origin.payer !== 'from_number'
  return {
    kind: 'application',
    tenantId: account?.tenantId ?? tenantOfCarrier,
    customerId: account?.customerId ?? null,
    mayNamePayer: !namesNobody,
  }
}

/**
 * The address of a node means that node, where the call in which the application calls may reach
 * it. Any other host that is neither a domain of ours nor one that may be called is only an
 * address.
 *
 * @param uri the Request-URI.
 */
export function applicationInvite(
  invite: IncomingInvite,
  uri: string,
  madeIn: LiveCall | 'ended' | undefined,
  deps: Pick<RouteDeps, 'registrar' | 'domains' | 'dispatcher'> & OwnNodes,
): IncomingInvite {
  const { registrar, domains } = deps
  const host = plainHost(invite.domain)
  const isMeant = registrar.tenantOf(host) !== undefined || domains.isAllowed(host)
  const headers = withoutMarks(invite.headers)
  const read = { ...invite, headers, domain: isMeant ? invite.domain : '' }
  // Nobody knows any more whose call it was that is over, and so which nodes it reaches.
  const called = isMeant || madeIn === 'ended' ? undefined : sipTarget(uri)
  const node = called && deps.dispatcher.nodeCalled(called, tenantOf(invite.origin, deps))
  if (node === undefined) return read
  const { setId, nodeId } = node
  return { ...read, target: { kind: 'set', setId, nodeId } }
}

interface OwnNodes {
  readonly dispatcher: Pick<Dispatcher, 'nodeCalled'>
}

/** An application may pass on what it got: the mark of the call that it was asked about, too. */
function withoutMarks(headers: Headers): Headers {
  const passed = Object.entries(headers).filter(
    ([name, value]) => !isPrivateHeader(name) && ownMark({ [name]: value }) === undefined,
  )
  return Object.fromEntries(passed)
}

/**
 * Whether nobody is known who pays for the call, which leaves the tenant. A carrier's call that
 * comes in reaches a node without a payer, and so does an application in it.
 */
export const isUnpaid = ({ origin, target }: IncomingInvite, { route }: RoutePlan): boolean =>
  origin.kind === 'application' &&
  route === undefined &&
  target?.kind !== 'set' &&
  origin.customerId === null &&
  !origin.mayNamePayer

export const noPayer = refused(403, 'Forbidden', 'unknown_caller')
