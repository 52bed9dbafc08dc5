/** Identifies the caller (SPECIFICATION.md §10.1): a phone by its password, any other source by its address. */
import type { PhoneAnswer, Registrar } from '../../registrar/registrar.ts'
import type { ExtensionOrigin, Origin, Routing } from '../../routing/routing.ts'
import type { SipRequest } from '../signalling.ts'
import { sourceOf } from '../phones/register.ts'

export interface IdentifyDeps {
  readonly routing: Pick<Routing, 'recognize'>
  readonly registrar: Pick<Registrar, 'authenticate' | 'claimedTenant'>
}

export type Identified =
  | {
      readonly kind: 'origin'
      readonly origin: Origin
      /** A phone with a right password that may not call like this: known, although its origin is not. */
      readonly isAuthenticated?: true
      /** The domain that a stranger names, which no tenant has. */
      readonly unknownDomain?: string | undefined
    }
  /** A phone that has to authenticate first: not a call yet, so it leaves no record. */
  | { readonly kind: 'challenged'; readonly answer: PhoneAnswer }

export function identify(request: SipRequest, deps: IdentifyDeps): Identified {
  const { method, headers } = request
  const source = sourceOf(request)
  const byAddress = deps.routing.recognize(source)
  const isOthersPhone = isPhoneOfOthers(request, byAddress, deps)
  // A node brings calls of phones that have registered with it, and has asked for their passwords.
  if (byAddress.kind === 'node' && !isOthersPhone) return { kind: 'origin', origin: byAddress }
  // A carrier may write any user of our domain in From, but not one that is an extension.
  const caller = deps.registrar.authenticate(
    { method, headers, source },
    byAddress.kind === 'carrier' && !isOthersPhone,
  )
  switch (caller.kind) {
    case 'stranger':
      return { kind: 'origin', origin: byAddress, unknownDomain: caller.domain }
    case 'extension':
      return { kind: 'origin', origin: originOf(caller.extension) }
    case 'refused':
    default:
      return caller.answer.status === 407
        ? { kind: 'challenged', answer: caller.answer }
        : { kind: 'origin', origin: { kind: 'unknown' }, isAuthenticated: true }
  }
}

/** Whether its sender has neither a known address nor shown that it gets what is sent to its address. */
export const isUnproven = (identified: Identified): boolean =>
  identified.kind === 'challenged'
    ? identified.answer.isToStranger === true
    : identified.origin.kind === 'unknown' && identified.isAuthenticated !== true

/**
 * Whether a request that comes from a tenant's node or carrier names an extension of another tenant: a tenant
 * may write the address of a phone that is not its own, and would get the calls of that phone.
 */
function isPhoneOfOthers(
  { headers }: SipRequest,
  source: Origin,
  { registrar }: IdentifyDeps,
): boolean {
  const owner = source.kind === 'node' || source.kind === 'carrier' ? source.tenantId : undefined
  if (owner === undefined || owner === null) return false
  const claimed = registrar.claimedTenant({ headers })
  return claimed !== undefined && claimed !== owner
}

/** An extension as the origin of a call. */
export function originOf(record: Omit<ExtensionOrigin, 'kind'>): ExtensionOrigin {
  const { extensionId, tenantId, customerId, domain, extension, displayName } = record
  return { kind: 'extension', extensionId, tenantId, customerId, domain, extension, displayName }
}
