/** Calls to extensions: the phones that ring, and the voicemail for unanswered calls. */
import type { ContactTarget } from '../../registrar/target.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { InboundTarget } from '../../routing/routing-records.ts'
import type { Origin } from '../../routing/routing.ts'
import { plainHost } from '../../sip-server/message/index.ts'
import type { VoicemailCandidate, PhoneCandidate } from '../dialing/outgoing-invite.ts'
import { gatewayBehindPhone, type WithheldDeps } from '../dialing/withheld.ts'

export interface ExtensionRouteDeps extends WithheldDeps {
  readonly registrar: Pick<Registrar, 'extensionAt' | 'tenantOf' | 'contactsOf' | 'homeDomain'>
  /** The voicemail of a tenant's PBX; undefined: there is none. */
  readonly voicemailOf: (tenantId: number) => string | undefined
}

/** All phones of one extension, called at the same time. */
export interface ExtensionDestination {
  readonly kind: 'extension'
  /** `sip:<extension>@<domain>`. */
  readonly uri: string
  readonly tenantId: number
  readonly phones: readonly PhoneCandidate[]
  readonly voicemail: VoicemailCandidate | undefined
  /** It has registered phones, but none that may be called without a price. */
  readonly leadsToGateway?: true
}

/**
 * The extension that a phone or a node dials; undefined: it dials something else. Such a call asks no
 * wallet. A phone may call its own domain by whatever name leads here; the name
 * of another domain of ours means that one's extension.
 */
export function innerExtension(
  origin: Origin,
  calledNumber: string,
  domain: string,
  deps: ExtensionRouteDeps,
): ExtensionDestination | undefined {
  if (origin.kind === 'extension') {
    const host = plainHost(domain)
    const dialled = deps.registrar.tenantOf(host) === undefined ? origin.domain : host
    return extensionAt(dialled, calledNumber, deps)
  }
  return origin.kind === 'node' ? extensionAt(domain, calledNumber, deps) : undefined
}

/** The extension that an inbound route names; undefined: it does not exist. */
export function routedExtension(
  target: Extract<InboundTarget, { readonly kind: 'extension' }>,
  calledDomain: string,
  deps: ExtensionRouteDeps,
): ExtensionDestination | undefined {
  const domain =
    target.domain ??
    (deps.registrar.extensionAt(calledDomain, target.extension)
      ? calledDomain
      : deps.registrar.homeDomain(target.tenantId))
  return domain === undefined ? undefined : extensionAt(domain, target.extension, deps)
}

/** Undefined: there is none. */
export function extensionAt(
  calledDomain: string,
  number: string,
  deps: ExtensionRouteDeps,
): ExtensionDestination | undefined {
  const record = deps.registrar.extensionAt(calledDomain, number)
  if (record === undefined) return undefined
  const { domain, extension, tenantId, isVoicemailEnabled } = record
  const voicemail = isVoicemailEnabled ? deps.voicemailOf(tenantId) : undefined
  const contacts = deps.registrar.contactsOf(domain, extension)
  // What leads to a gateway is no phone: neither calls nor messages go there without a price.
  const phones = contacts.flatMap((contact) => {
    const phone = { ...phoneAt(contact), extension, domain, tenantId }
    return gatewayBehindPhone(phone, tenantId, deps) === undefined ? [phone] : []
  })
  return {
    kind: 'extension',
    uri: `sip:${extension}@${domain}`,
    tenantId,
    phones,
    ...(phones.length === 0 && contacts.length > 0 && { leadsToGateway: true }),
    voicemail:
      voicemail === undefined
        ? undefined
        : { kind: 'voicemail', uri: voicemail, extension, domain, tenantId },
  }
}

export const phoneAt = (contact: ContactTarget) => {
  const { uri, routes, nextHop, lastHop, holder, isOnWebSocket, natAddress } = contact
  return {
    kind: 'phone' as const,
    uri,
    routes,
    nextHop,
    ...(lastHop !== undefined && { lastHop }),
    ...(holder !== undefined && { holder }),
    ...(isOnWebSocket && { isOnWebSocket }),
    ...(natAddress !== undefined && { natAddress }),
  }
}
