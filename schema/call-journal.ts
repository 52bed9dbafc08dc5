/** Answered calls that have not ended, kept so that a crash loses none of them. */
import type { CallRecord } from './call-record.ts'

/** Everything of a call's record that is known once it is answered. */
export type OpenCall = Omit<
  CallRecord,
  | 'answeredAt'
  | 'endedAt'
  | 'billsec'
  | 'disposition'
  | 'sipCode'
  | 'hangupCause'
  | 'hangupBy'
  | 'isRecovered'
> & { readonly answeredAt: number }
