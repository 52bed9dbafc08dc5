/** Whether the INVITE of a simulated call to a candidate would be signed, and as what. */
import type { SimulatedPayment, SimulatedSignature } from '../../../schema/contracts/engine.ts'
import type { OwnedNumbers } from '../../../schema/contracts/owned-numbers.ts'
import type { StirPort } from '../../../schema/contracts/stir.ts'
import { tenantOfCall } from '../cdr/cdr.ts'
import { type DialFacts, inviteFor } from '../dialing/outgoing-invite.ts'
import { unpaid } from '../inbound/admission.ts'
import { type IncomingInvite, startOf } from '../inbound/incoming-invite.ts'
import type { CallDestination } from '../inbound/route.ts'
import type { HeaderFilter } from '../sip-headers.ts'
import { callToSign } from './call-signer.ts'
import { noStir } from './no-stir.ts'

interface ForeseenSignatureDeps {
  readonly stir?: Pick<StirPort, 'canSign'> | undefined
  readonly ownedNumbers?: OwnedNumbers | undefined
  readonly filter: HeaderFilter
  /** Milliseconds UTC. */
  readonly wallNow: () => number
}

/** Null: the candidate wants no signature. */
export function foreseenSignature(
  destination: CallDestination,
  invite: IncomingInvite,
  facts: DialFacts,
  payment: SimulatedPayment,
  { stir = noStir, ownedNumbers, filter, wallNow: now }: ForeseenSignatureDeps,
): SimulatedSignature | null {
  if (destination.kind !== 'gateway' || destination.isSigned !== true) return null
  const payer = payment.kind === 'asked' ? payment.payer : null
  const account = payer && { ...unpaid(payer.tenantId), customerId: payer.customerId }
  const { origin } = invite
  const start = startOf(invite, '', now())
  const call = { account, origin, start, stampOffsetMs: 0 }
  const outgoing = inviteFor(destination, invite, filter, false, facts)
  const asked = callToSign(call, invite, outgoing, { ownedNumbers, now })
  return asked !== undefined && stir.canSign(tenantOfCall(call)) ? asked.attestation : 'unsigned'
}
