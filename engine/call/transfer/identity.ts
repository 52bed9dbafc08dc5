/** The identity of a party of a call: the account and rights of its transfers. Pure. */
import type { Registrar } from '../../registrar/registrar.ts'
import type { ExtensionOrigin, Origin } from '../../routing/routing.ts'
import type { Dispatcher } from '../../dispatcher/dispatcher.ts'
import type { LiveCall, Side } from '../call-machine/state.ts'
import { originOf } from '../inbound/admission.ts'
import { servedTenant } from '../inbound/route.ts'
import { isOfSupervisor } from '../inbound/incoming-invite.ts'

export interface Identity {
  readonly origin: Origin
  /** The number that it calls under. */
  readonly number: string
  readonly name: string
}

type CallerFacts = Pick<LiveCall, 'origin' | 'start' | 'account'>

/**
 * Undefined: the party may not start calls here. A carrier may not: its customers could call
 * everywhere at the expense of the parties that they have called. A supervisor in its own call may
 * not either: only that phone may hear it.
 */
export function identityOf(
  call: CallerFacts & Pick<LiveCall, 'destination'>,
  side: Side,
  { registrar }: { readonly registrar: Pick<Registrar, 'extensionAt'> },
): Identity | undefined {
  if (side === 'caller') return callerIdentity(call)
  if (isOfSupervisor(call.start)) return undefined
  const { destination, start } = call
  if (destination?.kind === 'node') {
    const { nodeId, setId } = destination
    return { origin: { kind: 'node', nodeId, setId }, number: start.calledNumber, name: '' }
  }
  if (destination?.kind !== 'extension') return undefined
  const [extension = '', domain = ''] = destination.uri.slice('sip:'.length).split('@')
  const record = registrar.extensionAt(domain, extension)
  return record && extensionIdentity(originOf(record))
}

export function callerIdentity({ origin, start, account }: CallerFacts): Identity | undefined {
  if (isOfSupervisor(start)) return undefined
  if (origin?.kind === 'extension') return extensionIdentity(origin)
  if (origin?.kind === 'proxy') {
    const tenantId = servedTenant(origin, account)
    if (tenantId === null) return undefined
    const narrowed = { kind: 'proxy', tenantIds: [tenantId] } as const
    return { origin: narrowed, number: start.callerNumber, name: start.callerName ?? '' }
  }
  if (origin?.kind !== 'node' && origin?.kind !== 'trusted') return undefined
  return { origin, number: start.callerNumber, name: start.callerName ?? '' }
}

const extensionIdentity = (origin: ExtensionOrigin): Identity => ({
  origin,
  number: origin.extension,
  name: origin.displayName,
})

/** Whether two identities are one and the same party: only that party may join its two calls. */
export const isSame = (one: Identity, other: Identity): boolean =>
  partyKeyOf(one) === partyKeyOf(other)

/** A text that identifies the party, the same on every instance. */
export function partyKeyOf({ origin, number }: Identity): string {
  switch (origin.kind) {
    case 'extension':
      return `extension ${origin.extensionId}`
    case 'node':
      return `set ${origin.setId}`
    case 'proxy':
      // A proxy serves several users, which may not join each other's calls.
      return `proxy ${origin.tenantIds[0]} ${number}`
    case 'trusted':
    case 'carrier':
    case 'unknown':
    default:
      return origin.kind
  }
}

/** Whether an INVITE of this origin may take the place of a party in a call of `tenantId`. */
export function mayReplace(
  origin: Origin,
  tenantId: number | null,
  { dispatcher }: { readonly dispatcher: Pick<Dispatcher, 'setRecord'> },
): boolean {
  switch (origin.kind) {
    case 'extension':
      return origin.tenantId === tenantId
    case 'node': {
      const tenant = dispatcher.setRecord(origin.setId)?.tenantId ?? null
      return tenant === null || tenant === tenantId
    }
    case 'proxy':
      return tenantId !== null && origin.tenantIds.includes(tenantId)
    case 'trusted':
      return true
    case 'carrier':
    case 'unknown':
    default:
      return false
  }
}
