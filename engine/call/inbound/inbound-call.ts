/** One call from INVITE to record, in the order it happens. */
import type { Call } from '../call.ts'
import type { Outcome } from '../cascade.ts'
import type { End } from '../cdr/end-reason.ts'
import { cutStatus, reasonHeader } from '../cdr/end-reason.ts'
import { objectionTo } from './validation.ts'
import type { Reading } from './incoming-invite.ts'
import { readInvite, startOf } from './incoming-invite.ts'
import { retryAfter, type RouteDeps } from './route.ts'
import { recognize, type RecognizeDeps } from './identify.ts'
import { respondToPhone, sourceOf } from '../phones/register.ts'
import type { Answer, SipRequest } from '../srf/drachtio.ts'
import { Invite } from '../legs/invite.ts'
import { respond } from '../sip/answers.ts'
import { admit, freeRoute } from './admission.ts'
import { reach, type ReachDeps } from '../setup/reach.ts'
import { store, talk, type TalkDeps } from '../setup/talk.ts'
import { takePlace } from '../transfer/replacement.ts'

export interface InboundCallDeps extends ReachDeps, TalkDeps, RecognizeDeps {
  readonly routing: RouteDeps['routing'] & RecognizeDeps['routing']
  readonly registrar: RouteDeps['registrar'] & RecognizeDeps['registrar']
  /** A call is refused because its source is unknown. True: it gets a record, as a sample. */
  readonly onUnknownSource: (source: ReturnType<typeof sourceOf>) => boolean
  readonly newUuid: () => string
}

/**
 * Handles one INVITE outside any dialog. Resolves when its record is stored; a challenge has none, and
 * neither have most calls of unknown sources: strangers could fill the disk.
 */
export async function handleInboundCall(
  request: SipRequest,
  answer: Answer,
  deps: InboundCallDeps,
): Promise<void> {
  const recognized = recognize(request, deps)
  if (recognized.kind === 'challenged') return respondToPhone(answer, recognized.answer)
  const { origin } = recognized
  const isStranger = origin.kind === 'unknown' && recognized.isAuthenticated !== true
  if (isStranger && !deps.onUnknownSource(sourceOf(request)))
    return respond(answer, 403, 'Forbidden')
  const callUuid = deps.newUuid()
  const reading = readInvite(request, callUuid, origin, deps.routing)
  const call = deps.calls.begin(startOf(request, reading, deps.now()))
  call.near = request.agent
  const invite = new Invite(request, answer, ({ reason }) =>
    call.stop({ kind: 'cancelled', reason }),
  )
  const end = await outcomeOf(invite, call, reading, deps).catch((error: unknown) =>
    broken(invite, call, error, deps),
  )
  await store(call, end, deps)
}

/** A bug ends one call, not the process. */
function broken(invite: Invite, call: Call, error: unknown, deps: InboundCallDeps): End {
  deps.log('error', 'a call failed', { callUuid: call.start.callUuid, error })
  const end: End = { kind: 'refused', status: 500, reason: 'Server Internal Error', code: 'fault' }
  call.stop(end)
  refuse(invite, end, deps)
  return end
}

async function outcomeOf(
  invite: Invite,
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<End> {
  const outcome = await connect(invite, call, reading, deps)
  if (outcome.kind === 'answered') return talk(call, outcome.ended, deps)
  refuse(invite, outcome.end, deps)
  return outcome.end
}

async function connect(
  invite: Invite,
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<Outcome> {
  const free = freeRoute(reading, deps)
  const { isEmergency } = free
  const objection = objectionTo(invite, { ...reading, isEmergency }, deps)
  if (!objection && invite.headers['replaces'] !== undefined)
    return takePlace(invite, call, reading, deps)
  const refusal = objection ?? (await admit(call, reading, free, deps))
  if (refusal) return { kind: 'over', end: refusal }
  call.invite = invite
  return reach(invite, call, reading, free, deps)
}

function refuse(invite: Invite, end: End, deps: InboundCallDeps): void {
  switch (end.kind) {
    case 'refused':
    case 'rejected':
      return invite.refuse(end.status, end.reason, end.headers)
    case 'no-answer':
      return invite.refuse(480, 'Temporarily Unavailable')
    case 'cut': {
      const retry = end.by === 'system' ? retryAfter(deps) : {}
      const headers = { Reason: reasonHeader(end), ...retry }
      return invite.refuse(cutStatus(end.by), undefined, headers)
    }
    case 'cancelled':
    case 'hung-up':
      // Who has hung up himself hears nothing of it; who gave way to another one does.
      return invite.refuse(487, 'Request Terminated')
  }
}
