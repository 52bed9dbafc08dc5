/**
 * The state of all live calls as plain values: any part of it can be written as JSON and read back.
 * Only the modules of this folder write it; all others see it as `Readonly`.
 */
import type { Attestation, PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import type {
  Attempt as AttemptRecord,
  CallRecord,
  CallTags,
  SentNumbers,
} from '../../../schema/contracts/call-record.ts'
import type { BoughtPrice } from '../../../schema/contracts/tariff.ts'
import type { CallState, CallTransfer } from '../../../schema/contracts/calls.ts'
import type { Account, Verdict } from '../../../schema/contracts/charging.ts'
import type { Direction } from '../../../schema/contracts/field-values.ts'
import type { HookDecisions, HookFallback, HookName } from '../../../schema/contracts/hooks.ts'
import type { AttemptState, CallPhase, ExchangeState, LegState, TransferState } from './tables.ts'
import type { End } from '../cdr/end-reason.ts'
import type { Callee, PhoneCandidate } from '../dialing/outgoing-invite.ts'
import type { CallStart, IncomingInvite } from '../inbound/incoming-invite.ts'
import type { CallDestination, Reached, Route } from '../inbound/route.ts'
import type { VerifiedCaller } from '../stir/verified-caller.ts'
import type { SdpOwner, Headers } from '../signalling.ts'
import type { RedirectRefusal } from '../../routing/redirects.ts'
import type { GatewayCandidate, Origin } from '../../routing/routing.ts'
import { ReleasingMap } from '../../../schema/sip/index.ts'
import type { StreamQuality } from '../../../schema/contracts/field-values.ts'

export type Side = 'caller' | 'callee'

/** The node, carrier or agent at which a call counts. */
export interface CallLocation {
  readonly setId: number | null
  readonly nodeId: number | null
  /** The node's destination, such as `sip:10.0.0.5:5060;transport=udp`. */
  readonly node: string | null
  readonly carrierId: number | null
  readonly carrier: string | null
  readonly agentId: number | null
}

export const nowhere: CallLocation = {
  setId: null,
  nodeId: null,
  node: null,
  carrierId: null,
  carrier: null,
  agentId: null,
}

/**
 * The most notes of one call: a phone may report every few seconds, and request transfers again and
 * again.
 */
export const MAX_NOTES = 100

/** A decision about a call, for its trace. */
export type Note = {
  /** Milliseconds. */
  readonly at: number
} & (
  | { readonly what: 'recognized'; readonly origin: Origin }
  | { readonly what: 'charged'; readonly verdict: Verdict }
  | { readonly what: 'routed'; readonly route: Route }
  | { readonly what: 'transfer'; readonly transfer: CallTransfer }
  /** The phone of a party has reported the quality of a stream. */
  | { readonly what: 'reported'; readonly by: Side; readonly stream: StreamQuality }
  | ({ readonly what: 'hook' } & HookNote)
  /** Header rules of a carrier have changed an INVITE of it, or one to it. */
  | {
      readonly what: 'ruled'
      readonly direction: 'in' | 'out'
      readonly carrier: string
      readonly rules: readonly number[]
    }
  /** The caller was verified by its Identity headers. */
  | ({ readonly what: 'verified' } & Pick<VerifiedCaller, 'verification' | 'why'> & {
        readonly attestation: Attestation | null
      })
  /** An INVITE to a carrier was signed, or (`why`) was not. */
  /** A carrier has redirected the call. */
  | ({ readonly what: 'redirected'; readonly carrier: string } & RedirectionNote)
  | {
      readonly what: 'signed'
      readonly carrier: string
      readonly attestation: Attestation | null
      readonly why: string | null
    }
)

interface RedirectionNote {
  /** URIs of the gateways that are tried. */
  readonly gateways: readonly string[]
  readonly passedOver: readonly PassedContact[]
}

/** Where a 3xx of a carrier leads. */
export interface Redirection {
  /** In the order in which they are tried. */
  readonly gateways: readonly GatewayCandidate[]
  /** Why the other Contacts lead nowhere, the preferred one first. */
  readonly passedOver: readonly PassedContact[]
}

export type PassedContact = RedirectRefusal | 'no_number' | 'loop' | 'too_many'

/** How the operator's own code was asked about a call, and what it has decided. */
export interface HookNote {
  readonly hook: HookName
  /** The file or the webhook. */
  readonly by: string
  /** Absent: it has failed. */
  readonly decision?: HookDecisions[keyof HookDecisions]
  /** Why it has failed, or what of its decision has no effect. */
  readonly failed?: string
  /** The tenant whose webhook it is; absent: the code is the platform's. */
  readonly tenantId?: number | null
  /** How the call goes on after a failure. */
  readonly fallback?: HookFallback
}

/** The party that calls, until the answer. */
export type Calling =
  /**
   * An INVITE that was received. `replacedBy`: the transfer by which another party replaces the
   * caller.
   */
  | { readonly kind: 'invite'; readonly legId: string; replacedBy?: string }
  /** A phone that was rung first (RFC 3725). */
  | {
      readonly kind: 'source'
      legId?: string
      offer: string
      remoteSdp: string
      /** The leg of the called side. */
      remoteSdpOwner?: SdpOwner
      /** The SDP of the last re-INVITE to the phone. */
      sentSdp?: string
      isWanted: boolean
    }
  /** The party of another call that is transferred to this one. */
  | { readonly kind: 'transferee'; readonly transferId: string }
  /** The caller of a call that a phone has forwarded. */
  | { readonly kind: 'forwarded'; readonly callUuid: string }

/** How an attempt ended. */
export type AttemptResult =
  | { readonly kind: 'answered' }
  /** A final response. `isFinal`: no other destination may be tried, whatever the status. */
  | {
      readonly kind: 'rejected'
      readonly status: number
      readonly reason: string
      readonly headers: Headers
      readonly isFinal: boolean
      /** All headers of a 3xx. */
      readonly redirect?: Headers
      /** The caller gets it as it is. */
      readonly isVerbatim?: true
    }
  /** The application has not taken the call: the next destination is tried. */
  | { readonly kind: 'continued' }
  /** No response of any kind in time. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isConnectionLost?: true }
  /** The INVITE was withheld; `end` has the reason. */
  | { readonly kind: 'withheld'; readonly end: End & { readonly kind: 'refused' } }
  /** The end of the call has the reason. */
  | { readonly kind: 'stopped' }

/** One run of another instance. */
export interface HolderRun {
  readonly name: string
  /** Undefined: it is not known which one. */
  readonly run: number | undefined
}

/** One INVITE to one destination. */
export interface InviteAttempt {
  readonly legId: string
  readonly destination: string
  readonly isNode: boolean
  /** One of several parallel attempts: no early media, and only one 180. */
  readonly isBranch: boolean
  readonly startedAt: number
  readonly timeoutMs: number
  state: AttemptState
  /** The first ringing, early media or answer; undefined: none yet. */
  progressAt?: number
  endedAt: number
  /** The last response of any kind; 0: none. */
  status: number
  reason: string
  /** The descriptions before the answer: one for each early dialog. */
  early?: readonly EarlyDialog[]
  result?: AttemptResult | undefined
  /** The caller as the destination is shown it; absent: no rules say anything. */
  presented?: PresentedIdentity | undefined
  /** Both numbers as they were sent; absent: nothing was sent. */
  sent?: SentNumbers | undefined
  /** The instance to which the INVITE goes. */
  readonly holder?: string | undefined
  /** The run of that instance which has the call; absent: it is not known. */
  readonly holderRun?: number | undefined
  /** The phone of an extension that is called through it. */
  readonly phone?: { readonly domain: string; readonly extension: string } | undefined
  /** The INVITE to a phone of the source may be repeated with an offer. */
  readonly candidate?: Callee | undefined
  readonly isOffering?: boolean
}

/**
 * Descriptions that a destination gives before its answer: each fork has a dialog of its own (RFC
 * 3261 §12.1).
 */
export interface EarlyDialog {
  readonly tag: string
  /** Its answer to our offer. */
  readonly first: string
  /** Description that holds now. */
  readonly sdp: string
  /** How often it has described itself anew (RFC 3311). */
  readonly updates: number
}

/** A call that a phone's 3xx sends elsewhere. `route` undefined: outside, and a payer is needed. */
export interface Forward {
  readonly invite: IncomingInvite
  readonly route: Route | undefined
}

/** How long a call looks for a destination. */
export interface HuntingLimits {
  readonly attempts: number
  readonly seconds: number
}

/** Destinations tried one after the other. */
export interface Dialing {
  readonly purpose: 'source' | 'destination'
  readonly invite: IncomingInvite
  readonly isEmergency: boolean
  /** Extensions that the call has come to by forwarding. */
  readonly visited: readonly string[]
  /** When the first destination was tried. */
  readonly startedAt: number
  /** INVITEs so far: those to one destination count as one. */
  tries: number
  /** The strictest limits of the carriers that were tried; absent: there are none. */
  limits?: HuntingLimits | undefined
  /** A 3xx of a carrier waits for a decision. */
  redirect?: (AttemptResult & { readonly kind: 'rejected' }) | undefined
  /** Gateways to which redirections have led. */
  redirections?: number
  /** Still to be tried. */
  candidates: readonly CallDestination[]
  current?: CallDestination | undefined
  /** The attempts for `current`. */
  attempts: InviteAttempt[]
  /** The end that the caller gets when no other destination is left. */
  last: End
  /** The `last` of a 3xx that has led on: the caller gets it only if no target says more. */
  ledOn?: End | undefined
  /** The best result of an extension's phones, while its voicemail is tried. */
  beforeVoicemail?: AttemptResult | undefined
  /** The phones are looked for again, as an instance is lost through which one was called. */
  isAskingPhones?: boolean | undefined
  /** How often they were. */
  searches?: number
  /** A 3xx waits for a decision. */
  isAskingForward?: boolean | undefined
  forward?: Forward | undefined
  /** A hook is asked whether the next destination is tried; without an answer, as this says. */
  asked?: { readonly goesOn: boolean } | undefined
  /** The last refusal of a source's phone. */
  refusal?: { readonly status: number; readonly reason: string }
}

/** The callee has answered; the caller has no 200 yet. */
export interface Answering {
  readonly sdp: string
  readonly sdpOwner: SdpOwner
  /** The dialog, and the version of its description. */
  readonly by?: string | undefined
  readonly headers: Headers
}

/** The word of signatures about the caller of a call, for its record. */
export type CallProof = Pick<CallRecord, 'verification' | 'verstat' | 'attestation'>

export interface Call {
  start: CallStart
  /** The instance that has it. */
  readonly instance: string
  /**
   * Added to a time of the call it gives milliseconds UTC, by the machine's clock when the call
   * began.
   */
  readonly stampOffsetMs: number
  phase: CallPhase
  display: CallState
  direction: Direction
  calling: Calling
  /** Whether a Request with `From` of this tag is the caller's (RFC 3891 §3, early dialogs). */
  callerTag: string
  /** The offer of the caller; undefined: the INVITE had none. */
  offer?: string | undefined
  /** The account that pays; known after the authorization. */
  account: Account | null
  /** A customer of another tenant may not be charged; null: any customer. */
  payerTenantId: number | null
  origin?: Origin | undefined
  /** The destination that is being called, or was reached. */
  destination?: Reached | undefined
  dialing?: Dialing | undefined
  /** Click-to-call: where the phone that is picked up is connected. */
  connect?: PendingDial | undefined
  answering?: Answering | undefined
  /** The forwarded call that has been answered, and waits for this call's caller. */
  acceptFor?: string | undefined
  /** The call that a phone's 3xx has led to, and its attempt in the record. */
  forwardedTo?:
    | {
        readonly callUuid: string
        readonly destination: string
        readonly startedAt: number
      }
    | undefined
  legs: { caller?: string | undefined; callee?: string | undefined }
  /** Legs of parties that were transferred away, until they hang up. */
  departing: string[]
  transfer?: CallTransfer | undefined
  /** The INVITE takes the place of a party of another call. */
  replacement?: string | undefined
  /** Transfers that end with this call, or change it. */
  transferIds: string[]
  /** Calls that end with this one. */
  supervisedBy: string[]
  /** The leg whose server new legs go by, where there are several SIP servers. */
  near?: string | undefined
  /** The extension that has sent this call to the outside, as a SIP URI. */
  forwardedBy?: string | undefined
  /** How many transfers, one after the other, have led to this call. */
  transfersBefore: number
  /** How many transfers of its parties have failed. */
  failedTransfers: number
  place: CallLocation
  attempts: AttemptRecord[]
  /** Call-IDs, the caller's first. */
  callIds: string[]
  notes: Note[]
  /** `address:port` of the peer of each leg; null: not known yet. */
  peers: { caller: string | null; callee: string | null }
  /** The call is not charged. */
  isFree: boolean
  isEmergency: boolean
  /** Price of its carrier; absent: no carrier has answered it, or its price is not known. */
  bought?: BoughtPrice | undefined
  /** The whole grant since the answer; null: without limit. */
  grantedSeconds: number | null
  /** Why there is no more. */
  grantDenial?: string | undefined
  /** Milliseconds; null: not yet, or never. */
  firstProgressAt: number | null
  answeredAt: number | null
  /** The last process has left it, and whether its parties are still there is not known. */
  doubt?: Doubt | undefined
  /** Why the call is over, as soon as it is; the first reason counts. */
  end?: End | undefined
  /** Tags that a hook has set. */
  tags?: CallTags | undefined
  /** Undefined: there are no signatures, and nobody has looked for them. */
  proof?: CallProof | undefined
  /** A hook has said whether it is recorded; undefined: the rules say it. */
  isToBeRecorded?: boolean | undefined
  /** Headers of the BYEs that end it. */
  byeHeaders: Headers
  /** How many legs it has had. */
  legCount: number
}

/**
 * A call of the last process whose parties have not been heard since (`doubt.ts`). Times by the
 * steady clock.
 */
export interface Doubt {
  /** When it was known to go on, for the last time: if it has ended, its record ends there. */
  aliveAt: number
  /** This process has had it since then. */
  readonly since: number
  /** Its grant runs out, or has: more is asked for when the parties are heard. */
  isUnpaid?: boolean
  /** Its parties are heard, after the end of its grant: more is asked for. */
  isAsking?: boolean
}

/** The purpose of a request in a dialog, which decides what its response does. */
export type Purpose =
  /** Passes on a request of the peer of `from`. */
  | {
      readonly kind: 'relayed'
      readonly requestId: string
      readonly from: string
      readonly method: string
      readonly offer?: string
      /** A provisional response has come. */
      readonly isRinging?: boolean
    }
  | { readonly kind: 'reinvite'; readonly reinvite: Reinvite }
  | { readonly kind: 'notify' }
  /** Whether the peer is still there. `isOffer`: it is asked by a re-INVITE. */
  | { readonly kind: 'question'; isOffer?: true }
  /** New media for the phone of click-to-call. */
  | { readonly kind: 'source' }

/** A re-INVITE of our own. */
export interface Reinvite {
  /** Undefined: the peer makes one. */
  readonly offer?: string
  readonly sdpOwner?: SdpOwner
  readonly tries: number
  /** The transfer that gets the result. */
  readonly transferId?: string
  readonly step: string
}

export type ReinviteResult =
  /** The leg's media is its answer; or its offer, which the leg's `owedAnswer` waits for. */
  | { readonly kind: 'answered' }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }

/** The subscription of a REFER (RFC 3515 §2.4): NOTIFYs about the transfer. */
export interface Subscription {
  /** Which of the dialog's subscriptions: the number of the REFER. */
  readonly id: string
  readonly isSilent: boolean
  isSending: boolean
  last: number
  /** The latest state that has not been sent; older ones are dropped. */
  waiting?:
    { readonly status: number; readonly reason: string; readonly isLast: boolean } | undefined
}

/** One dialog of a call: the caller's, or the called side's. */
export interface Leg {
  readonly id: string
  readonly callUuid: string
  readonly isUac: boolean
  side: Side
  state: LegState
  /** The peer is a phone: its identity headers do not pass. */
  isPhone: boolean
  /** Headers that are not sent to the peer, in lower case. */
  withheld?: readonly string[] | undefined
  /** Its caller requires reliable provisional responses (RFC 3262). */
  isReliable?: boolean | undefined
  /** An answer to its offer has gone out reliably. */
  hasAnsweredReliably?: boolean | undefined
  /**
   * The first answer to the offer of its INVITE, which counts for the caller (RFC 3261 §13.2.1),
   * and whose it is.
   */
  shownAnswer?: { readonly by: string | undefined; readonly sdp: string } | undefined
  /** The called side is not the one that was shown, or has moved: a re-INVITE follows the ACK. */
  owesMove?: boolean | undefined
  callId: string
  localTag: string
  remoteTag: string
  /** The last SDP received from the peer; empty if there was none. */
  media: string
  /** The last SDP sent to the peer. */
  lastSdpSent: string
  /** The peer gets descriptions of several parties, as if they were one. */
  hasOwnOrigin: boolean
  /** Headers of a CANCEL or BYE that waits until it is allowed. */
  closing?: Headers | undefined
  exchangeId?: string | undefined
  /** The transfer by which the party leaves: its BYE does not end the call. */
  excusedBy?: string | undefined
  /** The offer that the next ACK answers. */
  awaitedAck?:
    { readonly kind: 'first-offer' | 'relayed' | 'replacement'; readonly id: string } | undefined
  /** The transaction of our re-INVITE whose 2xx has an offer and waits for the ACK. */
  owedAnswer?: string | undefined
  subscription?: Subscription | undefined
  /** Our requests that wait for their responses. */
  pending: Record<string, Purpose>
  /** Re-INVITEs that wait for another one to end. */
  retries: Record<string, Reinvite>
  /** The last process has left the leg, and its peer has not been heard since. */
  isUnheard?: boolean | undefined
  requestCount: number
}

/** Offer and answer between two legs (RFC 3264): the only owner of the right to offer. */
export interface Exchange {
  readonly id: string
  readonly legs: readonly [string, string]
  state: ExchangeState
  /** The leg whose re-INVITE is under way, and its transaction on the other leg. */
  inviting?: { readonly from: string; readonly transactionId: string } | undefined
  /** The transfer that waits until no re-INVITE is under way. */
  waiting?: { readonly transferId: string; readonly step: string } | undefined
}

export interface Transfer {
  readonly id: string
  readonly kind: 'basic' | 'attended' | 'replacement' | 'early'
  state: TransferState
  /** The leg that leaves; of a replacement, the leg that is replaced. */
  readonly transferor: string
  /**
   * The leg that gets another peer; of an early replacement known when the ringing call is
   * answered.
   */
  transferee: string
  /** Attended: the transferor's second leg, and the party that it consulted. */
  readonly consulting?: string
  readonly target?: string
  /** Basic and both replacements: the other call. */
  readonly newCall?: string
  /** Early replacement: the call whose caller is replaced. */
  readonly ringing?: string
  /** The dialled number. */
  readonly destination: string
  /** The SDP that was offered to the called side. */
  readonly offered: string
  /** The REFER asked for it: the transferor sends BYE itself when NOTIFY reports success. */
  readonly isReferred: boolean
  /** The description of the new party for the transferee. */
  body?: string | undefined
  /** The leg of the new party. */
  party?: SdpOwner
  /** Legs that have ended during the transfer. */
  endedLegs: string[]
  /** The transferee has the new media. */
  isMoved: boolean
  refusal?: { readonly status: number; readonly reason: string }
}

/** All live calls, their legs and what connects them. */
export interface World {
  /** The instance that has them. */
  readonly instance: string
  readonly calls: ReleasingMap<string, Call>
  readonly legs: ReleasingMap<string, Leg>
  readonly exchanges: ReleasingMap<string, Exchange>
  readonly transfers: ReleasingMap<string, Transfer>
  transferCount: number
}

export const emptyWorld = (instance: string): World => ({
  instance,
  calls: new ReleasingMap(),
  legs: new ReleasingMap(),
  exchanges: new ReleasingMap(),
  transfers: new ReleasingMap(),
  transferCount: 0,
})

/** The phones of an extension that are rung first. */
export interface SourcePhones {
  readonly phones: readonly PhoneCandidate[]
  /** The INVITE that they get. */
  readonly invite: IncomingInvite
  readonly ringMs: number
  readonly connect: PendingDial
  /** The longest that the call is answered; absent: as long as it is paid for. */
  readonly maxSeconds?: number
}

/**
 * The call that is dialled when a phone of the source is picked up. `route` undefined: it depends
 * on the payer.
 */
export interface PendingDial {
  readonly invite: IncomingInvite
  readonly route?: Route
  readonly isEmergency: boolean
}

/** The state of calls as all others see it: to be read, never written. */
type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T

export type LiveCall = Frozen<Call>
export type LiveLeg = Frozen<Leg>
