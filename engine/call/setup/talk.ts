/** An answered call until its end, and the record of every call. */
import type { Charging } from '../../../schema/contracts/charging.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { Call } from '../call.ts'
import { GrantTimer, type GrantTimerDeps } from '../grant-timer.ts'
import { callRecord } from '../cdr/cdr.ts'
import type { End } from '../cdr/end-reason.ts'
import type { Log } from '../srf/srf-client.ts'

export interface TalkDeps extends GrantTimerDeps {
  readonly charging: Charging
  readonly calls: ActiveCalls
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

export async function talk(call: Call, ended: Promise<End>, deps: TalkDeps): Promise<End> {
  const answeredAt = call.answeredAt ?? deps.now()
  const grant = new GrantTimer(deps, call, answeredAt)
  const end = await ended
  grant.stop()
  return end
}

/** Resolves when the record is stored and the call forgotten. */
export async function store(call: Call, end: End, deps: TalkDeps): Promise<void> {
  const record = callRecord(call, end, deps.now())
  // Whoever calls again now must not find the limits taken by a call that waits for the disk.
  deps.calls.ended(call)
  if (record.denialCode === 'storage_unavailable' && !deps.calls.unstored.mayWait(call))
    return deps.calls.finish(call)
  try {
    await deps.charging.report(record)
  } catch (error) {
    deps.log('error', 'a call record could not be stored', { record, error })
  }
  deps.calls.finish(call, record)
  deps.log('info', 'call', {
    callUuid: record.callUuid,
    direction: record.direction,
    caller: record.callerNumber,
    called: record.calledNumber,
    disposition: record.disposition,
    sipCode: record.sipCode,
    hangupCause: record.hangupCause,
    hangupBy: record.hangupBy,
    billsec: record.billsec,
    node: record.node,
    carrier: record.carrier,
    source: record.sourceAddress,
    denialCode: record.denialCode,
    attempts: record.attempts.length,
  })
}
