/**
 * Looks up what a decision names. A call reaches what its own tenant has and what belongs to all;
 * the webhook of a tenant reaches no more, whatever call asks it.
 */
import type { Dispatcher } from '../../dispatcher/dispatcher.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { Routing } from '../../routing/routing.ts'
import { plainHost } from '../../../schema/sip/index.ts'
import { type RouteDeps, tenantOf } from '../inbound/route.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { ReachedBy } from './decision.ts'

/** Finds records by id or name, of all tenants. */
export interface NamedRecords {
  readonly setsNamed: Dispatcher['setsNamed']
  readonly carriersNamed: Routing['carriersNamed']
  readonly agentsNamed: Routing['agentsNamed']
  readonly extensionsNamed: Registrar['extensionsNamed']
}

type ReachDeps = Pick<RouteDeps, 'routing' | 'dispatcher' | 'registrar' | 'domains'>

/** Null: it belongs to the platform, and to all tenants. */
type Owner = number | null

interface Owned {
  readonly tenantId: Owner
}

/** @param decider the tenant whose webhook has decided; null: the platform's own code. */
export function reachOf(
  invite: Pick<IncomingInvite, 'origin' | 'domain'>,
  decider: Owner,
  records: NamedRecords,
  deps: ReachDeps,
): ReachedBy {
  const { origin } = invite
  const caller = tenantOf(origin, deps)
  const isReached = ({ tenantId: owner }: Owned): boolean =>
    owner === null ||
    ((caller === null || owner === caller) &&
      (decider === null || owner === decider) &&
      (origin.kind !== 'proxy' || origin.tenantIds.includes(owner)))
  const tenantId = caller ?? decider
  // A name may be that of several: the tenant's is meant, or else the platform's.
  const chosen = <T extends Owned>(found: readonly T[]): T | undefined => {
    const reached = found.filter(isReached)
    return reached.find((each) => each.tenantId === tenantId) ?? reached.at(0)
  }
  return {
    tenantId,
    dialled: (number) => deps.routing.dialledNumber(number),
    isEmergency: (number) => deps.routing.isEmergencyNumber(number),
    setId: (named) => chosen(records.setsNamed(named))?.setId,
    carrierId: (named) => chosen(records.carriersNamed(named))?.carrierId,
    agentId: (named) => chosen(records.agentsNamed(named))?.agentId,
    extension: (named) => {
      const [extension = '', home] = named.split('@')
      const domains = home === undefined ? homesOf(invite, tenantId, deps) : [plainHost(home)]
      const found = domains.map((domain) => deps.registrar.extensionAt(domain, extension))
      const record = found.find((each) => each !== undefined && isReached(each))
      if (record !== undefined) return { extension, domain: record.domain }
      // Carriers and trusted sources dial no domain of a tenant: the only one that has it is meant.
      const [only, other] = home === undefined ? records.extensionsNamed(extension, isReached) : []
      if (other !== undefined) return 'ambiguous'
      return only && { extension, domain: only.domain }
    },
    whyNot: (host) => {
      const isOurs = deps.registrar.tenantOf(host) !== undefined || deps.domains.isOwn(host)
      if (isOurs) return 'uri leads back to this platform: name an extension, an agent or a set'
      return decider === null || deps.domains.isAllowed(host)
        ? undefined
        : 'uri names a domain that the platform has not allowed'
    },
  }
}

/** The domains in which an extension without one is looked for, in this order. */
function homesOf(
  { origin, domain }: Pick<IncomingInvite, 'origin' | 'domain'>,
  tenantId: Owner,
  { registrar }: ReachDeps,
): readonly string[] {
  const own = origin.kind === 'extension' ? origin.domain : undefined
  return [own, plainHost(domain), registrar.homeDomain(tenantId)].flatMap((each) => each ?? [])
}
