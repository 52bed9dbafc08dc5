/** Asks what is known of a call, and decides which number a destination outside is shown. */
import type { Account } from '../../../schema/contracts/charging.ts'
import type { NumberOwner, OwnedNumbers } from '../../../schema/contracts/owned-numbers.ts'
import type { Callee, OutgoingCall } from '../dialing/outgoing-invite.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { CallDestination } from '../inbound/route.ts'
import { refused, type CallRefusal } from '../cdr/end-reason.ts'
import type { CallerPolicies } from './caller-policies.ts'
import { claimOf, divertingIn } from './claim.ts'
import {
  decideCallerIdentity,
  type IdentityDecision,
  type IdentityQuestion,
  type PresentableOwn,
} from './decide.ts'

export interface CallerIdentityDeps {
  readonly policies: Pick<CallerPolicies, 'find' | 'isEmpty'>
  readonly numbers: OwnedNumbers
  /** Whether the platform has listed a number for a tenant. */
  readonly isListed: (tenantId: number, number: string) => boolean
  /** The tenant of a dispatcher set; null: the platform's. */
  readonly tenantOfSet: (setId: number) => number | null
}

/** Who pays for the call, and whether it is one for help. */
export interface PayingCall {
  readonly account: Account | null
  readonly isEmergency: boolean
}

type Destination = Callee | CallDestination

export class CallerIdentities {
  readonly #deps: CallerIdentityDeps
  readonly #own: PresentableOwn

  constructor(deps: CallerIdentityDeps) {
    this.#deps = deps
    const { numbers } = deps
    const owns = (number: string, owner: NumberOwner): boolean => this.#owns(number, owner)
    this.#own = { find: (number) => numbers.find(number), owns }
  }

  /** Undefined: no rules say anything, and the caller is shown as `caller_id` of a carrier says. */
  decide(
    invite: IncomingInvite,
    destination: Destination,
    paying: PayingCall,
  ): IdentityDecision | undefined {
    const { policies } = this.#deps
    if (destination.kind !== 'gateway' && destination.kind !== 'domain') return undefined
    const callerId = destination.kind === 'gateway' ? destination.callerId : undefined
    if (policies.isEmpty && callerId?.mode !== 'policy') return undefined
    const question = this.#question(invite, destination, paying)
    if (question === undefined) return undefined
    const fixed = callerId?.mode === 'fixed' ? callerId.value : null
    const decided = decideCallerIdentity(question, this.#own)
    if (fixed === null) return withReason(decided, invite)
    return this.#fixed(fixed, decided, question)
  }

  /** The carrier shows its own number, whoever calls. */
  #fixed(number: string, decided: IdentityDecision, { owner }: IdentityQuestion): IdentityDecision {
    const divertedBy = decided.kind === 'presented' ? decided.identity.divertedBy : undefined
    const isOwned = this.#own.owns(number, owner)
    const unowned = owner.customerId === null && owner.tenantId === null ? 'C' : 'B'
    const identity = {
      number,
      name: '',
      isPrivate: false,
      asserted: number,
      why: 'the fixed number of the carrier',
      attestation: isOwned ? (this.#own.find(number)?.attestation ?? 'A') : unowned,
      divertedBy,
    } as const
    return { kind: 'presented', identity }
  }

  #question(
    invite: IncomingInvite,
    destination: Destination,
    { account, isEmergency }: PayingCall,
  ): IdentityQuestion | undefined {
    const { policies } = this.#deps
    const { origin } = invite
    const ofOrigin = 'customerId' in origin ? origin.customerId : null
    const customerId = account?.customerId ?? ofOrigin
    const tenantId = this.#tenantOf(invite) ?? account?.tenantId ?? null
    const extension =
      origin.kind === 'extension' ? policies.find('extension', origin.extensionId) : undefined
    const customer = policies.find('customer', customerId)
    const set = origin.kind === 'node' ? policies.find('dispatcher_set', origin.setId) : undefined
    const isGateway = destination.kind === 'gateway'
    const carrier = isGateway ? policies.find('carrier', destination.carrierId) : undefined
    const known = [extension, customer, set, carrier].filter((each) => each !== undefined)
    if (known.length === 0 && !(isGateway && destination.callerId.mode === 'policy'))
      return undefined
    return {
      claim: claimOf(invite),
      firstCaller: invite.firstCaller,
      diverting: divertingIn(invite),
      rules: known.flatMap(({ rules }) => rules ?? []),
      owner: { tenantId, customerId },
      extension: origin.kind === 'extension' ? origin.extension : undefined,
      callerNumber: extension?.number,
      defaultNumber: customer?.number,
      isEmergency,
      // An OCS that did not answer knows who pays, and we do not.
      isPlatforms:
        tenantId === null &&
        customerId === null &&
        origin.kind !== 'proxy' &&
        account?.isUnauthorizedByOcs !== true,
    }
  }

  #tenantOf({ origin }: IncomingInvite): number | null {
    if (origin.kind === 'node') return this.#deps.tenantOfSet(origin.setId)
    return 'tenantId' in origin ? origin.tenantId : null
  }

  /** A number of a tenant that no customer owns is for all of its calls. */
  #owns(number: string, owner: NumberOwner): boolean {
    const { numbers, isListed } = this.#deps
    if (numbers.isOwned(number, owner)) return true
    const row = numbers.find(number)
    if (row === undefined) return owner.tenantId !== null && isListed(owner.tenantId, number)
    // Customers of the platform share nothing: what one gave up, or nobody has yet, is no other's.
    const isShared = owner.tenantId !== null || owner.customerId === null
    return isShared && row.isActive && row.customerId === null && row.tenantId === owner.tenantId
  }
}

/** Why a call was forwarded is written by the phone that has forwarded it. */
function withReason(decided: IdentityDecision, { firstCaller }: OutgoingCall): IdentityDecision {
  if (decided.kind === 'refused' || decided.identity.divertedBy === undefined) return decided
  return { ...decided, identity: { ...decided.identity, diversionReason: firstCaller?.reason } }
}

/** The end of a call whose number may not be shown. */
export const refusedIdentity = (why: string): CallRefusal =>
  refused(403, 'Forbidden', 'caller_id_forbidden', undefined, why)
