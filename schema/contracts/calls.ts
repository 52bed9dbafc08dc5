/** Live calls, calls that ended a moment ago, and what the API may do to calls. */
import type { CallRecord, CallTags } from './call-record.ts'
import type { Direction } from './field-values.ts'

export type CallState = 'DIALING' | 'RINGING' | 'EARLY' | 'ACTIVE' | 'HELD'

/** How a call takes part in a transfer. */
export interface CallTransfer {
  readonly state: 'transferring' | 'transferred' | 'failed'
  /** The other call: the one that is made to the destination, or the one that it was made for. */
  readonly callUuid: string
  readonly destination: string
  /** The SIP status of the failure; null: it did not fail. */
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
  /** The tenant does not see what it costs. */
  readonly isPaidByPlatform: boolean
  readonly customerId: number | null
  readonly setId: number | null
  /** The node's destination, such as `sip:10.0.0.5:5060;transport=udp`. */
  readonly node: string | null
  /** The instance that has it. */
  readonly instance: string
  readonly carrier: string | null
  /** Tags that a hook has set; absent: none. */
  readonly tags?: CallTags | undefined
  /** Undefined: it was not part of a transfer. */
  readonly transfer?: CallTransfer | undefined
  /** `address:port` of the peer of each leg; null: nothing received from it yet. */
  readonly peers: { readonly caller: string | null; readonly callee: string | null }
}

/** The part of an ended call that events and telemetry show. */
export type EndedCall = Pick<
  CallRecord,
  | ('callUuid' | 'callerNumber' | 'calledNumber' | 'direction' | 'tenantId' | 'isPaidByPlatform')
  | ('startedAt' | 'answeredAt' | 'endedAt' | 'billsec')
  | ('disposition' | 'sipCode' | 'hangupCause' | 'hangupBy' | 'denialCode' | 'denialText')
  | ('quality' | 'tags' | 'verification' | 'verstat' | 'attestation')
>

export interface CallsPort {
  list(): readonly ActiveCall[]
  find(callUuid: string): ActiveCall | undefined
  /** The uuid of the call that has a leg with this SIP Call-ID. */
  uuidOf(callId: string): string | undefined
  /** A call that ended a moment ago. */
  recent(callUuid: string): EndedCall | undefined
  /** Sends BYE, CANCEL or a final response on both legs, with this Q.850 cause. */
  hangUp(callUuid: string, cause: number): 'ending' | 'not_found' | 'already_ending'
  countByNode(nodeId: number): number
  countByCarrier(carrierId: number): number
  countByAgent(agentId: number): number
}

export interface OriginateRequest {
  /** The domain in small letters. */
  readonly domain: string
  readonly extension: string
  readonly destination: string
  /** The number shown to the called side; undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
  /** Asks the phone to answer by itself. */
  readonly autoAnswer: boolean
  /** How long the extension's phones ring. */
  readonly ringMs: number
  /**
   * A test call: it goes to the gateways of this carrier only, and ends after `TEST_CALL_SECONDS`.
   */
  readonly testedCarrierId?: number
}

/** The longest that a test call is answered. */
export const TEST_CALL_SECONDS = 30

/** A call of which Tollgate itself is the caller. */
export interface TestCallRequest {
  /** The number of a customer, or an extension. Either pays as if it had called. */
  readonly from:
    | { readonly kind: 'number'; readonly number: string }
    | { readonly kind: 'extension'; readonly domain: string; readonly extension: string }
  readonly destination: string
  /** An answered call ends after so long; at most `TEST_CALL_SECONDS`. */
  readonly maxSeconds: number
}

/** Why no call begins now, as its record's `denial_code`. */
export type ClosedCode = 'draining' | 'overload' | Unserved

/** Nothing can be stored; or another process has taken over the name of this instance. */
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
  /**
   * The transferee: it is connected to the destination; the other party leaves when that answers.
   */
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
  /** The supervisor's; in small letters. */
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

// ---- recordings of calls -----------------------------------------------------------------

/** The recording rule of an extension. */
export type CallRecording = 'always' | 'never' | 'on_demand'

export type RecordingAction = 'start' | 'stop'

export type RecordingResult =
  | { readonly kind: 'recording' | 'stopped' }
  | {
      readonly kind:
        | ('unknown_call' | 'call_not_answered')
        /** No extension of the call allows it. */
        | 'recording_not_allowed'
        /** Its media does not go through a relay. */
        | 'call_not_anchored'
        /** Nothing is set up to record. */
        | 'recording_unavailable'
        /** The relay did not do it. */
        | 'relay_failed'
    }

export interface RecordingsPort {
  /** Relay, folder and spool are set. */
  readonly isAvailable: boolean
  /** Whether this call is being recorded at the moment. */
  isRecording(callUuid: string): boolean
  control(callUuid: string, action: RecordingAction): Promise<RecordingResult>
}

/** A finished file. */
export interface RecordedCall {
  readonly callUuid: string
  readonly tenantId: number | null
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly durationMs: number
  readonly bytes: number
  /** The digest in small hexadecimal digits. */
  readonly sha256: string
}

/** A finished recording as events and webhooks show it. */
export const recordingView = ({ callUuid, durationMs, bytes, sha256 }: RecordedCall) => ({
  call_uuid: callUuid,
  /** Seconds. */
  duration: Math.round(durationMs / 1_000),
  bytes,
  sha256,
})

// ---- the trace of a call: its SIP messages and decisions ---------------------------------

export interface TraceMessage {
  readonly kind: 'message'
  /** Milliseconds UTC. */
  readonly at: number
  readonly direction: 'received' | 'sent'
  /** Its Call-ID. */
  readonly leg: string
  readonly transport: string
  /** `address:port`: of the peer; of a message that was sent by UDP, ours. */
  readonly address: string
  readonly text: string
}

export type TraceEntry =
  | TraceMessage
  | {
      readonly kind: 'decision'
      readonly at: number
      readonly what: string
      readonly detail: Readonly<Record<string, unknown>>
    }

/** The peer of a leg. */
export interface LegPeer {
  /** Whether it sent or received the INVITE; null: the trace has no INVITE of the leg. */
  readonly role: 'caller' | 'called' | null
  /**
   * The name of a carrier, an extension or an agent; otherwise as in the INVITE. Null: not known.
   */
  readonly name: string | null
  /** `address:port` of the source of its first message; null: the trace has no message of it. */
  readonly address: string | null
}

export interface Trace {
  readonly tenantId: number | null
  /** The tenant does not see what it costs. */
  readonly isPaidByPlatform?: boolean
  /** Call-IDs, the caller's first. */
  readonly legs: readonly string[]
  /** One per leg. */
  readonly peers: readonly LegPeer[]
  /** Messages and decisions in the order of time. */
  readonly entries: readonly TraceEntry[]
  /** False: the first messages were dropped. */
  readonly isComplete: boolean
}

/** The requested mode: listen, whisper to one party, or talk to both. */
export type SpyMode = 'listen' | 'whisper' | 'barge'

/** The party that hears a whisper. */
export type SpySide = 'caller' | 'callee' | 'both'
