/** The record of one ended call (CDR) as the code sees it; `cdr` is how it is stored. */
export type Disposition = 'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION'

/** One candidate that was tried. Times are milliseconds UTC; status 0: no answer of any kind. */
export interface Attempt {
  readonly destination: string
  readonly status: number
  readonly reason: string
  readonly startedAt: number
  readonly endedAt: number
}

export interface CallRecord {
  readonly callUuid: string
  readonly callId: string
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly callerNumber: string
  readonly callerName: string | null
  readonly calledNumber: string
  readonly startedAt: number
  readonly answeredAt: number | null
  readonly endedAt: number
  readonly postDialDelayMs: number | null
  /** Whole seconds that are charged: from answer to end, rounded up; 0 when never answered. */
  readonly billsec: number
  readonly disposition: Disposition
  readonly sipCode: number
  readonly hangupCause: string
  readonly hangupBy: 'caller' | 'callee' | 'system' | 'api'
  readonly denialCode: string | null
  readonly setId: number | null
  readonly node: string | null
  readonly carrier: string | null
  readonly attempts: readonly Attempt[]
  readonly tenantId: number | null
  readonly customerId: number | null
  readonly ratePrefix: string | null
  readonly currency: string | null
  readonly sourceAddress: string
  readonly isRecovered: boolean
  readonly isUnauthorizedByOcs: boolean
}
