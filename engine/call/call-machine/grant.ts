/** A call is kept within what was granted: more is asked for in time, and the call ends when there is no more. */
import { cause, type End } from '../cdr/end-reason.ts'
import type { StepContext } from './protocol.ts'
import type { Call } from './state.ts'

/** More is asked for this long before the grant ends; half the grant when it is shorter than twice that. */
const GRANT_LEAD_MS = 10_000

/** The call is answered, or has got more. */
export function startGrant({ commands, now }: StepContext, call: Call): void {
  const { grantedSeconds, answeredAt, start } = call
  if (grantedSeconds === null) return
  if (isLimited(call)) return endWithGrant({ commands, now }, call, grantedSeconds)
  const grantedMs = grantedSeconds * 1_000
  const leadMs = Math.min(GRANT_LEAD_MS, grantedMs / 2)
  const timer = { kind: 'grant', callUuid: start.callUuid } as const
  commands.push({ type: 'startTimer', timer, at: (answeredAt ?? now) + grantedMs - leadMs })
}

/** The OCS is asked within this time whether a call may go on whose grant ran out while no process had it. */
const RESUME_MS = 2_000

/** A call of the last run goes on. */
export function resumeGrant(context: StepContext, call: Call): void {
  const { now, commands } = context
  const { grantedSeconds, answeredAt, start } = call
  if (grantedSeconds === null || answeredAt === null) return
  const usedMs = now - answeredAt
  if (usedMs < grantedSeconds * 1_000 || isLimited(call)) return startGrant(context, call)
  const { callUuid } = start
  const timer = { kind: 'grant-end', callUuid } as const
  commands.push({ type: 'startTimer', timer, at: now + RESUME_MS })
  commands.push({ type: 'extend', callUuid, grantedSeconds: Math.ceil(usedMs / 1_000) })
}

export function stopGrant({ commands }: StepContext, { grantedSeconds, start, answeredAt }: Call): void {
  if (grantedSeconds === null || answeredAt === null) return
  const { callUuid } = start
  for (const kind of ['grant', 'grant-end'] as const)
    commands.push({ type: 'stopTimer', timer: { kind, callUuid } })
}

/** The end of the grant stays set until the OCS answers: a late answer ends the call, too. */
export function askForMore(context: StepContext, call: Call): void {
  const { grantedSeconds, start } = call
  if (grantedSeconds === null) return
  endWithGrant(context, call, grantedSeconds)
  context.commands.push({ type: 'extend', callUuid: start.callUuid, grantedSeconds })
}

function endWithGrant(
  { commands, now }: Pick<StepContext, 'commands' | 'now'>,
  { answeredAt, start }: Call,
  grantedSeconds: number,
): void {
  const timer = { kind: 'grant-end', callUuid: start.callUuid } as const
  commands.push({ type: 'startTimer', timer, at: (answeredAt ?? now) + grantedSeconds * 1_000 })
}

const TIME_LIMIT = 'time_limit'
/** The OCS has answered, with no more than there was. */
const NO_MORE = 'insufficient_funds'
/** It has not said whether there is more: for the record that is no lack of money. */
const UNANSWERED = 'ocs_unreachable'

/** The call ends then, however much more its payer has. Both fields are saved: a restart does not lift it. */
export function limitGrant(call: Call, maxSeconds: number): void {
  call.grantedSeconds = Math.min(call.grantedSeconds ?? maxSeconds, maxSeconds)
  call.grantDenial = TIME_LIMIT
}

const isLimited = ({ grantDenial }: Pick<Call, 'grantDenial'>): boolean =>
  grantDenial === TIME_LIMIT

/** The grant has run out. Without an extension both legs hear of funds, whatever the reason (SPECIFICATION.md §13.2). */
export function grantEnd(call: Call): End {
  const { grantDenial: code = UNANSWERED } = call
  return { kind: 'cut', by: 'system', code, cause: isLimited(call) ? cause.normal : cause.noCredit }
}

export function extended(context: StepContext, call: Call, grantedSeconds: number): void {
  if (isLimited(call)) return
  if (call.phase !== 'answered') return
  if (grantedSeconds <= (call.grantedSeconds ?? Infinity)) {
    call.grantDenial = NO_MORE
    return
  }
  call.grantDenial = undefined
  stopGrant(context, call)
  call.grantedSeconds = grantedSeconds
  startGrant(context, call)
}
