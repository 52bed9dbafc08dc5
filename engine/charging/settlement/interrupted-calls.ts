/** The records of calls that a crash interrupted. */
import { billedSeconds, type CallRecord } from '../../../schema/contracts/call-record.ts'
import { carrierCostOf } from '../pricing/carrier-cost.ts'
import type { CutCall, UnansweredCall } from '../../../schema/journal/journal-entries.ts'

/** The call ended at its last heartbeat and lasted at least a second. */
export const recoveredRecord = ({ call: { bought, ...call }, talkedMs }: CutCall): CallRecord => ({
  ...call,
  endedAt: call.answeredAt + talkedMs,
  billsec: billedSeconds(talkedMs),
  carrierCost: carrierCostOf(bought, billedSeconds(talkedMs)),
  disposition: 'ANSWERED',
  sipCode: 200,
  ...interrupted,
})

/** The end of its ringing is not known. */
export const unansweredRecord = ({ call }: UnansweredCall): CallRecord => ({
  ...call,
  answeredAt: null,
  endedAt: call.startedAt,
  billsec: 0,
  disposition: 'FAILED',
  sipCode: 500,
  ...interrupted,
})

const interrupted = {
  hangupCause: 'PROCESS_RESTART',
  hangupBy: 'system',
  isRecovered: true,
} as const
