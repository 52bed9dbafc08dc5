/** Asks the operator's code about a call that has begun, in whatever way, before it is planned. */
import type { CallDeps } from '../call-deps.ts'
import type { LiveCall } from '../call-machine/state.ts'
import type { End } from '../cdr/end-reason.ts'
import { expectedDirection, unpaid } from '../inbound/admission.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import { tenantOf } from '../inbound/route.ts'
import type { CallBegins } from './facts.ts'

export type AskedInvite =
  | { readonly kind: 'goes_on'; readonly invite: IncomingInvite }
  /** A hook refuses it, or it has ended meanwhile. */
  | { readonly kind: 'ended'; readonly end: End }

/** Undefined: no hook is asked, and nothing is waited for. */
export function askInvite(
  call: LiveCall,
  invite: IncomingInvite,
  begins: CallBegins,
  deps: CallDeps,
): Promise<AskedInvite> | undefined {
  return deps.hooks?.asksInvite(invite) === true
    ? ask(call, invite, begins, deps.hooks, deps)
    : undefined
}

async function ask(
  call: LiveCall,
  invite: IncomingInvite,
  begins: CallBegins,
  hooks: NonNullable<CallDeps['hooks']>,
  deps: CallDeps,
): Promise<AskedInvite> {
  const hooked = await hooks.invite(invite, begins)
  const { callUuid } = invite
  deps.dispatch({ type: 'hooked', callUuid, ...hooked.effects })
  // The caller may have cancelled meanwhile.
  if (call.end) return { kind: 'ended', end: call.end }
  if (hooked.kind === 'goes_on') return hooked
  const { origin } = invite
  deps.dispatch({
    type: 'admit',
    callUuid,
    origin,
    direction: expectedDirection(origin),
    isEmergency: false,
    account: unpaid(tenantOf(origin, deps)),
    grantedSeconds: null,
    isFree: true,
    notes: [{ at: deps.now(), what: 'recognized', origin }],
  })
  return { kind: 'ended', end: hooked.end }
}
