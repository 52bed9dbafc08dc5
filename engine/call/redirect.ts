/**
 * The 3xx of a carrier's redirect server (RFC 3261 §8.1.3.4): the call goes to those of its
 * Contacts that are gateways to which the caller's own routes lead. Where a Contact points changes
 * neither who pays nor what the call costs the payer (D411).
 */
import type { CallDeps } from './call-deps.ts'
import type { LiveCall, PassedContact, Redirection } from './call-machine/state.ts'
import { numberParameters, parametersOf } from './inbound/number-parameters.ts'
import { tenantOf } from './inbound/route.ts'
import type { Headers } from './signalling.ts'
import { calledOf } from './sip-headers.ts'
import type { GatewayCandidate } from '../routing/routing.ts'
import { sipTarget } from '../../schema/net/sip-target.ts'
import {
  noParams,
  parseNameAddr,
  qValueOf,
  readAddress,
  splitList,
} from '../../schema/sip/index.ts'

/** More Contacts of one answer are not read. */
const MAX_CONTACTS = 32
/** Gateways to which all redirections of a call lead. */
const MAX_REDIRECTIONS = 5

export function redirectionOf(
  call: LiveCall,
  headers: Headers,
  deps: Pick<CallDeps, 'routing' | 'dispatcher'>,
): Redirection {
  const gateways: GatewayCandidate[] = []
  const passedOver: PassedContact[] = []
  const tried = new Set(call.attempts.map(({ destination }) => destination))
  const left = MAX_REDIRECTIONS - (call.dialing?.redirections ?? 0)
  for (const uri of contactsIn(headers)) {
    const found = gatewayAt(call, uri, headers['identity'], deps)
    if (typeof found === 'string') passedOver.push(found)
    else if (tried.has(found.uri)) passedOver.push('loop')
    else if (gateways.length >= left) passedOver.push('too_many')
    else {
      tried.add(found.uri)
      gateways.push(found)
    }
  }
  return { gateways, passedOver }
}

/** The URIs of its Contacts, the preferred first; those of equal preference stay as they stand. */
function contactsIn(headers: Headers): readonly string[] {
  const contacts = splitList(headers['contact'] ?? '').slice(0, MAX_CONTACTS)
  return contacts
    .map((value) => ({
      uri: readAddress(value).uri.trim(),
      q: qValueOf(parseNameAddr(value) ?? { params: noParams }),
    }))
    .toSorted((one, other) => other.q - one.q)
    .map(({ uri }) => uri)
}

function gatewayAt(
  call: LiveCall,
  uri: string,
  identity: string | undefined,
  { routing, dispatcher }: Pick<CallDeps, 'routing' | 'dispatcher'>,
): GatewayCandidate | PassedContact {
  const { account, dialing } = call
  const { current, invite, isEmergency = false } = dialing ?? {}
  if (current?.kind !== 'gateway' || invite === undefined) return 'unknown_gateway'
  const place = sipTarget(uri)
  const { number, irregular } = calledOf(uri)
  if (place === undefined) return 'unknown_gateway'
  if (number === '' || irregular !== undefined) return 'no_number'
  const caller = {
    customerId: account?.customerId ?? null,
    tenantId: tenantOf(invite.origin, { dispatcher }) ?? account?.tenantId ?? null,
  }
  const read = numberParameters(uri, number, false, (rn) => routing.dialledNumber(rn))
  // An emergency call carries no parameters.
  const parameters = isEmergency ? undefined : read
  const { target } = invite
  const only = target?.kind === 'carriers' ? target.carrierIds : undefined
  const found = routing.redirected(
    {
      caller,
      dialled: invite.calledNumber,
      byTenantId: current.bought.tenantId,
      sent: current.number,
      sentFor: current.bought.dialled,
      routingNumber: parametersOf(invite)?.rn,
      isEmergency,
      only,
    },
    { ...place, number, rn: parameters?.rn },
  )
  return typeof found === 'string' ? found : { ...found, redirected: { parameters, identity } }
}
