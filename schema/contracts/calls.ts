/** Live calls, calls that ended a moment ago, and what the API may do to calls. */
import type { CallRecord } from '../call-record.ts'
import type { Direction } from './field-values.ts'
import type { SpyMode, SpySide } from '../rules/spy-uri.ts'

export type CallState = 'DIALING' | 'RINGING' | 'EARLY' | 'ACTIVE' | 'HELD'

/** How a call takes part in a transfer. */
export interface CallTransfer {
  readonly state: 'transferring' | 'transferred' | 'failed'
  /** The other call: the one that is made to the destination, or the one that it was made for. */
  readonly callUuid: string
  readonly destination: string
  /** Why it failed, as a SIP status; null: it did not. */
  readonly sipCode: number | null
}

/** A live call. */
export interface ActiveCall {
  readonly callUuid: string
  readonly state: CallState
  readonly direction: Direction
  readonly callerNumber: string
  readonly calledNumber: string
  /** Milliseconds by the steady clock. */
  readonly startedAt: number
  readonly answeredAt: number | null
  /** Added to the two times above, this gives milliseconds UTC. */
  readonly stampOffsetMs: number
  readonly tenantId: number | null
  readonly customerId: number | null
  readonly setId: number | null
  /** The node's destination, such as `sip:10.0.0.5:5060;transport=udp`. */
  readonly node: string | null
  /** The node of Tollgate that has it. */
  readonly instance: string
  readonly carrier: string | null
  /** Undefined: it was not part of a transfer. */
  readonly transfer?: CallTransfer | undefined
  /** `address:port` of the peer of each leg; null: nothing received from it yet. */
  readonly peers: { readonly caller: string | null; readonly callee: string | null }
}

/** A call that is over, as far as its record tells. */
export type EndedCall = Pick<
  CallRecord,
  | ('callUuid' | 'callerNumber' | 'calledNumber' | 'direction' | 'tenantId')
  | ('startedAt' | 'answeredAt' | 'endedAt' | 'billsec')
  | ('disposition' | 'sipCode' | 'hangupCause' | 'hangupBy' | 'denialCode' | 'denialText')
  | 'quality'
>

export interface CallsPort {
  list(): readonly ActiveCall[]
  find(callUuid: string): ActiveCall | undefined
  /** A call that ended a moment ago. */
  recent(callUuid: string): EndedCall | undefined
  /** Sends BYE, CANCEL or a final response on both legs, with this Q.850 cause. */
  hangUp(callUuid: string, cause: number): 'ending' | 'not_found' | 'already_ending'
  countByNode(nodeId: number): number
  countByCarrier(carrierId: number): number
  countByAgent(agentId: number): number
}

export interface OriginateRequest {
  /** In small letters. */
  readonly domain: string
  readonly extension: string
  readonly destination: string
  /** What the called side is shown; undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
  /** Asks the phone to answer by itself. */
  readonly autoAnswer: boolean
  /** How long the extension's phones ring. */
  readonly ringMs: number
  /** A test call: it goes to the gateways of this carrier only, and ends after `TEST_CALL_SECONDS`. */
  readonly testedCarrierId?: number
}

/** The longest that a test call is answered. */
export const TEST_CALL_SECONDS = 30

/** Why no call begins now, as its record's `denial_code`. */
export type ClosedCode = 'draining' | 'overload' | Unserved

/** Nothing can be stored; or another process has taken over the name of this node. */
export type Unserved = 'storage_unavailable' | 'node_fenced'

export type OriginateResult =
  | { readonly kind: 'originating'; readonly callUuid: string }
  | { readonly kind: 'unknown_extension' | 'extension_unregistered' }
  | { readonly kind: ClosedCode }
  /** Not paid for, or not allowed; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

export interface TransferRequest {
  readonly callUuid: string
  readonly destination: string
  /** The transferee: it is connected to the destination; the other party leaves when that answers. */
  readonly moved: 'caller' | 'callee'
}

export type TransferResult =
  | { readonly kind: 'transferring'; readonly callUuid: string }
  | {
      readonly kind:
        | ('not_found' | 'not_answered' | 'already_ending' | 'transfer_in_progress')
        /** Neither party may start calls here: there is no payer. */
        | 'not_transferable'
    }
  /** Not paid for, or not allowed; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

export interface SpyRequest {
  readonly callUuid: string
  /** Of the supervisor; in small letters. */
  readonly domain: string
  readonly extension: string
  readonly mode: SpyMode
  /** The party that hears a whisper. */
  readonly side: SpySide
}

export type SpyResult =
  /** `callUuid` of the supervisor's own call. */
  | { readonly kind: 'originating'; readonly callUuid: string }
  | { readonly kind: 'unknown_call' | 'call_not_answered' | 'spy_mode_unavailable' }
  | { readonly kind: 'unknown_extension' | 'extension_unregistered' }
  | { readonly kind: ClosedCode }
