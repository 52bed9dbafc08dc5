/** Events from the SIP side and commands to it, as plain values; `user-agent/` implements them. */

/**
 * Header values by lower-case name, except `X-…`, `P-…` (but not `P-Asserted-…`) and `Diversion`,
 * which keep the sender's spelling. Repeated headers are one value, joined with commas. Without Via
 * and Content-Length.
 */
export type Headers = Record<string, string>

/** A request that was received outside any dialog. */
export interface SipRequest {
  readonly method: string
  readonly uri: string
  readonly body: string
  readonly headers: Headers
  /** `udp`, `tcp`, `tls`, `ws` or `wss`; a real drachtio-server reports `tcp` for the last two. */
  readonly protocol: string
  readonly sourceAddress: string
  readonly sourcePort: number
}

export interface SendOptions {
  readonly headers?: Headers | undefined
  readonly body?: string | undefined
}

/** The response that we may give to a received request. */
export interface Answer {
  readonly finalResponseSent: boolean
  /** `reason` undefined: the usual one. */
  send(status: number, reason: string | undefined, options: SendOptions): void
}

/** A response to an INVITE of ours. */
export interface SipResponse {
  readonly status: number
  readonly reason: string
  readonly headers: Headers
  readonly body: string | undefined
  /** `address:port` of the sender. */
  readonly peer: string
}

/** The identifiers of a dialog (RFC 3261 §12). */
export interface DialogIds {
  readonly callId: string
  readonly localTag: string
  readonly remoteTag: string
  /** The peer's first session description. */
  readonly media: string
}

/** Events of a leg. */
export type LegEventData = { readonly legId: string } &
  /** `heldMs`: how long it has waited for a media relay. */
  (
    | { readonly type: 'sent'; readonly callId: string; readonly heldMs?: number }
    | { readonly type: 'provisional'; readonly response: SipResponse }
    /**
     * Before its answer the called side has described itself anew (RFC 3311), in the dialog with
     * this tag.
     */
    | { readonly type: 'redescribed'; readonly tag: string; readonly sdp: string }
    | { readonly type: 'answered'; readonly response: SipResponse; readonly dialog: DialogIds }
    /** The INVITE had no offer: this one waits for our ACK. */
    | { readonly type: 'offered'; readonly response: SipResponse; readonly offer: string }
    /** Answered, but no dialog can be formed from it. */
    | { readonly type: 'unusable'; readonly response: SipResponse }
    | { readonly type: 'rejected'; readonly response: SipResponse }
    /** `isConnectionLost`: the SIP server is unavailable; the destination may be well. */
    | { readonly type: 'failed'; readonly reason: string; readonly isConnectionLost?: true }
    /** Our 200 has gone out. `isRelayed`: its description is that of a media relay. */
    | { readonly type: 'accepted'; readonly dialog: DialogIds; readonly isRelayed?: true }
    /** The caller is gone. */
    | { readonly type: 'gone' }
    /** Our ACK of an offer has gone out. */
    | { readonly type: 'acknowledged'; readonly dialog: DialogIds }
    | { readonly type: 'acknowledgeFailed' }
    | { readonly type: 'ack'; readonly body: string | undefined }
    /** `isOurs`: the SIP server sent it, because an ACK or a refresh is missing. */
    | { readonly type: 'bye'; readonly headers: Headers; readonly isOurs: boolean }
    | { readonly type: 'cancelled'; readonly reason: string | undefined }
    /** The SIP server is unavailable, and the dialog is lost. */
    | { readonly type: 'lost' }
    | {
        readonly type: 'request'
        readonly requestId: string
        readonly method: string
        readonly headers: Headers
        readonly body: string | undefined
      }
    | {
        readonly type: 'response'
        readonly transactionId: string
        readonly response: SipResponse
        /** A 2xx to a re-INVITE without offer: its ACK is ours to send. */
        readonly owesAck: boolean
      }
    /** The question (`ask`) goes out as a re-INVITE with an offer. */
    | { readonly type: 'offering'; readonly transactionId: string }
    /** The request was not sent. `isUnknownDialog`: there is no such dialog any more. */
    | {
        readonly type: 'requestFailed'
        readonly transactionId: string
        readonly isUnknownDialog: boolean
      }
  )

/** An INVITE of ours. */
export interface InviteToSend {
  readonly uri: string
  /** The next hop. Undefined: its Route decides, or else its Request-URI. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  /** Undefined: the callee makes the offer. */
  readonly body: string | undefined
  readonly credentials: DigestLogin | undefined
  /** Headers that the INVITE which answers a challenge has anew; absent: it is the same. */
  readonly renewed?: () => Headers | Promise<Headers>
}

/** A user name and a password that answer digest challenges. */
export interface DigestLogin {
  readonly username: string
  readonly password: string
  /** The only realm that is answered; null: any. */
  readonly realm: string | null
}

export type LegCommandOf<T extends LegCommand['type']> = Extract<LegCommand, { readonly type: T }>

/**
 * The leg whose peer a session description describes. Undefined: it is our own, or there is none.
 */
export type SdpOwner = string | undefined

/** Commands for the peer of a leg. */
export type LegCommand = { readonly legId: string } & (
  | { readonly type: 'cancel'; readonly headers: Headers }
  /** 200 to its INVITE. */
  | {
      readonly type: 'accept'
      readonly sdp: string
      readonly sdpOwner: SdpOwner
      readonly headers: Headers
    }
  | {
      readonly type: 'respond'
      readonly status: number
      readonly reason?: string | undefined
      readonly headers: Headers
      readonly body?: string | undefined
      readonly sdpOwner?: SdpOwner
    }
  /** ACK with our answer to its offer. */
  | { readonly type: 'acknowledge'; readonly sdp: string; readonly sdpOwner: SdpOwner }
  /** ACK and BYE for an offer that is no longer needed. */
  | { readonly type: 'abandonOffer' }
  /** BYE for a 2xx from which no dialog can be formed. */
  | { readonly type: 'release' }
  | { readonly type: 'bye'; readonly headers: Headers }
  | {
      readonly type: 'request'
      readonly transactionId: string
      readonly method: string
      readonly headers: Headers
      readonly body: string | undefined
      readonly sdpOwner: SdpOwner
      /** Leaves the ACK of an INVITE without body to `acknowledgeReinvite`. */
      readonly noAck: boolean
    }
  /** Asks the peer, in the dialog, whether it is still there; nothing of the session changes. */
  | { readonly type: 'ask'; readonly transactionId: string }
  | {
      readonly type: 'acknowledgeReinvite'
      readonly transactionId: string
      readonly body: string | undefined
      readonly sdpOwner: SdpOwner
    }
  | {
      readonly type: 'answerRequest'
      readonly requestId: string
      readonly status: number
      readonly reason?: string | undefined
      readonly headers?: Headers
      readonly body?: string | undefined
      readonly sdpOwner?: SdpOwner
    }
)
