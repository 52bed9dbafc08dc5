/** Events and commands of the call machine, as values. */
import type { Callee, PhoneCandidate } from '../dialing/outgoing-invite.ts'
import type { End, CallRefusal } from '../cdr/end-reason.ts'
import type { HeaderFilter } from '../sip-headers.ts'
import type { SdpOwner, Headers, LegCommand, LegEventData } from '../signalling.ts'
import type { PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import type { CallState, CallTransfer } from '../../../schema/contracts/calls.ts'
import type { Attestation } from '../../../schema/contracts/caller-identity.ts'
import type { CallTags, SentNumbers } from '../../../schema/contracts/call-record.ts'
import type { Account } from '../../../schema/contracts/charging.ts'
import type { BoughtPrice } from '../../../schema/contracts/tariff.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { CallDestination, LimitedDestination, Route } from '../inbound/route.ts'
import type { VerifiedCaller } from '../stir/verified-caller.ts'
import type { GatewayCandidate, Origin } from '../../routing/routing.ts'
import type {
  Call,
  Forward,
  HolderRun,
  Note,
  CallLocation,
  Redirection,
  ReinviteResult,
  SourcePhones,
  World,
} from './state.ts'
import type { Direction } from '../../../schema/contracts/field-values.ts'

export type Timer =
  /** An attempt waits for a first response, or for the answer. */
  | { readonly kind: 'attempt'; readonly legId: string }
  /** Whether the instance that rings the phone is still there. */
  | { readonly kind: 'holder'; readonly legId: string }
  /** All phones of an extension have rung long enough. */
  | { readonly kind: 'ring'; readonly callUuid: string }
  | { readonly kind: 'grant'; readonly callUuid: string }
  | { readonly kind: 'grant-end'; readonly callUuid: string }
  /** The phone of click-to-call should not wait longer for its ACK. */
  | { readonly kind: 'source'; readonly callUuid: string }
  /** A re-INVITE that rings. */
  | { readonly kind: 'exchange'; readonly exchangeId: string }
  | { readonly kind: 'retry'; readonly legId: string; readonly retryId: string }
  /** A transferor that does not send BYE. */
  | { readonly kind: 'parting'; readonly legId: string }
  /** Parties of a call of the last process that have not been heard are asked again. */
  | { readonly kind: 'question'; readonly callUuid: string }

export type MachineEvent =
  | LegEventData
  | { readonly type: 'timer'; readonly timer: Timer }
  | { readonly type: 'refuse' | 'stop'; readonly callUuid: string; readonly end: End }
  | ({ readonly type: 'admit'; readonly callUuid: string } & Admission)
  /** The OCS has answered. */
  | {
      readonly type: 'charged'
      readonly callUuid: string
      readonly account: Account | null
      /** Null: without limit. */
      readonly grantedSeconds: number | null
      readonly isFree: boolean
      readonly note: Note
    }
  | ({ readonly type: 'dial'; readonly callUuid: string } & Dial)
  | ({ readonly type: 'ring'; readonly callUuid: string } & SourcePhones)
  /** The destination that is to be tried takes the call, or has as many as it may have. */
  | { readonly type: 'roomTaken'; readonly callUuid: string; readonly isTaken: boolean }
  | {
      readonly type: 'withheld'
      readonly legId: string
      readonly why: string
      readonly end: CallRefusal
    }
  /** The decision about the caller, for this destination. */
  | { readonly type: 'presented'; readonly legId: string; readonly identity: PresentedIdentity }
  /** The INVITE is about to be sent. */
  | { readonly type: 'numbered'; readonly legId: string; readonly numbers: SentNumbers }
  /** The OPTIONS to a silent node is answered, or not. */
  | { readonly type: 'probed'; readonly legId: string; readonly isThere: boolean }
  /**
   * The instance through which a phone is called is gone, or has started anew: nothing comes back
   * through it.
   */
  | { readonly type: 'holderLost'; readonly legId: string }
  /** The worker of the application that is asked is gone. */
  | { readonly type: 'applicationLost'; readonly legId: string }
  /** Where the phones of the extension are now. */
  | {
      readonly type: 'phonesFound'
      readonly callUuid: string
      readonly phones: readonly PhoneCandidate[]
    }
  | {
      readonly type: 'forwardDecided'
      readonly callUuid: string
      readonly legId: string
      readonly forward: Forward | undefined
    }
  /** Where a carrier's 3xx leads. */
  | ({ readonly type: 'redirectDecided'; readonly callUuid: string } & Redirection)
  | {
      readonly type: 'forwardStarted'
      readonly callUuid: string
      readonly to: NonNullable<Call['forwardedTo']>
    }
  | {
      readonly type: 'journalled'
      readonly callUuid: string
      readonly isStored: boolean
      /** Price of its carrier from now on. */
      readonly bought?: BoughtPrice | undefined
    }
  /** An answered call of the last run continues. */
  | { readonly type: 'resumed'; readonly callUuid: string }
  /** Its parties are asked whether they are still there. */
  | { readonly type: 'ask'; readonly callUuid: string }
  | { readonly type: 'extended'; readonly callUuid: string; readonly grantedSeconds: number }
  | { readonly type: 'notExtended'; readonly callUuid: string; readonly code: string }
  /** The operator's own code was asked before the call is admitted, or routed. */
  | ({ readonly type: 'hooked'; readonly callUuid: string } & HookEffects)
  /** A hook says whether the next destination is tried; undefined: it says nothing. */
  | {
      readonly type: 'attemptDecided'
      readonly callUuid: string
      readonly failover: boolean | undefined
    }
  /** The Identity headers of its INVITE were looked at. */
  | {
      readonly type: 'verified'
      readonly callUuid: string
      readonly verified: Pick<VerifiedCaller, 'verification' | 'verstat' | 'attestation' | 'why'>
    }
  /** An INVITE to a carrier was signed, or leaves without a signature. */
  | {
      readonly type: 'signed'
      readonly callUuid: string
      /** Undefined: we say nothing of the caller. */
      readonly attestation: Attestation | undefined
      readonly note?: Note
    }
  /** A decision for the trace of the call. */
  | { readonly type: 'noted'; readonly callUuid: string; readonly note: Note }
  /** The media of an answered call has stopped: no RTP has come since `lastPacketAt`. */
  | { readonly type: 'mediaLost'; readonly callUuid: string; readonly lastPacketAt: number }
  | { readonly type: 'supervise'; readonly callUuid: string; readonly by: string }
  | {
      readonly type: 'referAccepted'
      readonly legId: string
      readonly requestId: string
      readonly id: string
      readonly isSilent: boolean
    }
  | {
      readonly type: 'referRefused'
      readonly legId: string
      readonly requestId: string
      readonly status: number
      readonly reason: string | undefined
    }
  | {
      readonly type: 'referFailed'
      readonly legId: string
      readonly status: number
      readonly reason: string
    }
  | ({ readonly type: 'transferTo' } & BasicTransferPlan)
  | ({ readonly type: 'attend' } & AttendedPlan)
  | ({ readonly type: 'replace' } & ReplacementPlan)
  | ({ readonly type: 'replaceEarly' } & EarlyReplacementPlan)

/** A hook changes these of a call; absent ones stay. */
export interface HookEffects {
  readonly notes: readonly Note[]
  readonly calledNumber?: string
  readonly tags?: CallTags
  readonly isToBeRecorded?: boolean
}

/** A call for the transferee: its answer ends the transferor's leg. */
export interface BasicTransferPlan {
  readonly transferor: string
  readonly transferee: string
  /** The other call. */
  readonly callUuid: string
  readonly destination: string
  readonly offered: string
  readonly isReferred: boolean
}

/**
 * The transferor joins the two parties that it talks to, each in a call of its own (RFC 5589 §7).
 */
export interface AttendedPlan {
  readonly transferor: string
  readonly transferee: string
  readonly consulting: string
  readonly target: string
}

/** The caller of a call replaces a party of another one (RFC 3891). */
export interface ReplacementPlan {
  readonly callUuid: string
  readonly replaced: string
  readonly partner: string
}

/**
 * The caller of a call replaces the caller of another one that still rings, when that one is
 * answered.
 */
export interface EarlyReplacementPlan {
  readonly callUuid: string
  readonly ringing: string
}

/** The result of the admission of a call, before it is dialled. */
export interface Admission {
  readonly origin?: Origin
  readonly direction: Direction
  readonly account: Account | null
  /** Null: without limit. */
  readonly grantedSeconds: number | null
  readonly isFree: boolean
  readonly isEmergency: boolean
  readonly notes: readonly Note[]
}

/** The route of a call that is to be dialled. */
export interface Dial {
  readonly route: Route
  readonly invite: IncomingInvite
  readonly isEmergency: boolean
}

/** A report from one part of the machine to another, handled after the present step. */
export type Signal =
  | { readonly type: 'attemptOver'; readonly callUuid: string; readonly legId: string }
  | { readonly type: 'exhausted'; readonly callUuid: string; readonly end: End }
  | { readonly type: 'stop'; readonly callUuid: string; readonly end: End }
  | { readonly type: 'forward' | 'calleeAnswered'; readonly callUuid: string }
  | {
      readonly type: 'pickedUp'
      readonly callUuid: string
      readonly legId: string
      readonly offer: string | undefined
    }
  /** The calling side of a call is connected, or has left. */
  | { readonly type: 'callerTaken'; readonly callUuid: string; readonly legId: string }
  | { readonly type: 'callerGone'; readonly callUuid: string }
  | { readonly type: 'stopped'; readonly callUuid: string; readonly end: End }
  | {
      readonly type: 'reinvited'
      readonly transferId: string
      readonly step: string
      readonly result: ReinviteResult
    }
  | { readonly type: 'paused'; readonly transferId: string; readonly step: string }
  | { readonly type: 'legLeft'; readonly transferId: string; readonly legId: string }
  /** The peer of a leg is out of reach: its dialog is unknown, or it does not answer. */
  | { readonly type: 'dead'; readonly legId: string }
  /** The caller has been given the description of the leg that has answered, or has refused it. */
  | { readonly type: 'callerMoved'; readonly legId: string; readonly result: ReinviteResult }
  | { readonly type: 'media'; readonly exchangeId: string; readonly isHeld: boolean }
  | {
      readonly type: 'refer'
      readonly legId: string
      readonly requestId: string
      readonly headers: Headers
    }
  /** The called side of the new call has responded. */
  | {
      readonly type: 'transferProgress' | 'transferRefused'
      readonly transferId: string
      readonly status: number
      readonly reason: string
    }
  | {
      readonly type: 'transferAnswered'
      readonly transferId: string
      readonly sdp: string
      readonly sdpOwner: SdpOwner
    }
  | { readonly type: 'transferConnected'; readonly transferId: string }
  /** The call that a phone's 3xx has led to is over without an answer. */
  | { readonly type: 'forwardEnded'; readonly callUuid: string; readonly end: End }

export type CallCommand =
  | LegCommand
  | {
      readonly type: 'invite'
      readonly legId: string
      readonly candidate: Callee
      readonly invite: IncomingInvite
      /** The leg whose offer `invite` contains. */
      readonly sdpOwner: SdpOwner
      readonly isBranch: boolean
      /** The INVITE goes by the SIP server of this leg. Undefined: by any. */
      readonly near: string | undefined
    }
  /** The leg is over: the user agent forgets it. */
  | { readonly type: 'forgetLeg'; readonly legId: string }
  | { readonly type: 'startTimer'; readonly timer: Timer; readonly at: number }
  | { readonly type: 'stopTimer'; readonly timer: Timer }
  /** The call counts at `place` from now on, and nowhere else. */
  | {
      readonly type: 'count'
      readonly callUuid: string
      readonly before: CallLocation
      readonly place: CallLocation
    }
  /** The callee has left: the call does not count any more where it went. */
  | { readonly type: 'calleeLeft'; readonly callUuid: string }
  | {
      readonly type: 'takeRoom'
      readonly callUuid: string
      readonly destination: LimitedDestination
    }
  | { readonly type: 'probe'; readonly legId: string; readonly uri: string }
  /** Another instance of the installation does not respond. */
  | { readonly type: 'instanceSilent'; readonly name: string }
  | { readonly type: 'checkHolder'; readonly legId: string; readonly holder: HolderRun }
  | {
      readonly type: 'findPhones'
      readonly callUuid: string
      readonly domain: string
      readonly extension: string
    }
  | {
      readonly type: 'reportHealth'
      readonly destination: CallDestination
      readonly health: 'answered' | 'failed'
    }
  /** An attempt at a gateway whose route has floors of quality is over, or answered. */
  | {
      readonly type: 'measure'
      readonly destination: GatewayCandidate
      readonly isAnswered: boolean
      /** From the INVITE to the first ringing or answer; null: there was none. */
      readonly delayMs: number | null
    }
  | {
      readonly type: 'decideForward'
      readonly callUuid: string
      readonly legId: string
      readonly headers: Headers
    }
  | {
      readonly type: 'decideRedirect'
      readonly callUuid: string
      readonly headers: Headers
    }
  | {
      readonly type: 'forwardOut'
      readonly callUuid: string
      readonly by: string
      readonly invite: IncomingInvite
    }
  /** A destination has not taken the call: a hook is asked about the next one. */
  | ({ readonly type: 'askAttempt'; readonly callUuid: string } & FailedAttempt)
  /** A phone of the source is picked up. */
  | { readonly type: 'connectSource'; readonly callUuid: string; readonly offer: string }
  | { readonly type: 'journal'; readonly callUuid: string }
  /** The parties of a call of the last process are still there. */
  | { readonly type: 'goesOn'; readonly callUuid: string }
  | { readonly type: 'extend'; readonly callUuid: string; readonly grantedSeconds: number }
  | { readonly type: 'display'; readonly callUuid: string; readonly before: CallState }
  | { readonly type: 'transfer'; readonly callUuid: string; readonly transfer: CallTransfer }
  | {
      readonly type: 'refer'
      readonly legId: string
      readonly requestId: string
      readonly headers: Headers
    }
  | { readonly type: 'store'; readonly callUuid: string; readonly end: End }

/** A destination that has not taken the call. */
export interface FailedAttempt {
  readonly destination: CallDestination
  readonly remaining: readonly CallDestination[]
  /** The last response; 0: none. */
  readonly status: number
  readonly reason: string
  /** Whether the next one is tried without a decision. */
  readonly goesOn: boolean
  /** False: the caller has heard this one, so no other may be tried. */
  readonly mayGoOn: boolean
}

/** Facts from outside the machine. */
export interface MachineInputs {
  /** Milliseconds by the steady clock. */
  readonly now: number
  readonly server: SipServerState
  readonly filter: HeaderFilter
  readonly timing: Timing
  /** A hook is asked when a destination has not taken a call. Absent: none is. */
  readonly asksAttempts?: boolean
  /** Whether a request with this URI would arrive at a carrier's gateway. */
  readonly leadsToGateway?: (uri: string) => boolean
}

/** The present state of the SIP server. */
export interface SipServerState {
  /**
   * How long a received message may wait to be read, because this process is busy. Milliseconds.
   */
  readonly lagMs: number
  /** The server passes on the 100 to our INVITE. */
  readonly reportsTrying: boolean
  /** The server is another process, which may be unavailable. */
  readonly isRemote: boolean
}

export interface Timing {
  readonly nodeTimeoutMs: number
  /** The time until a node must ring where no 100 reaches us and it answers OPTIONS. */
  readonly nodeProgressTimeoutMs: number
  readonly ringTimeoutMs: number
  /** The `Retry-After` of a call that is refused because a limit is reached. */
  readonly retryAfterSeconds: number
}

/** The state of one step: an event on its way through the machine. */
export interface StepContext extends MachineInputs {
  readonly leadsToGateway: (uri: string) => boolean
  readonly world: World
  readonly commands: CallCommand[]
  /** Signals for other parts when the present step is done. */
  readonly signals: Signal[]
  /** Legs that are over. */
  readonly terminated: string[]
}
