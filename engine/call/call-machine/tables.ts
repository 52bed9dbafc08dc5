/**
 * The state machines of a call as tables, in the manner of RFC 3261's figures: call, attempt, leg,
 * offer and answer, transfer.
 */

/** An event without an entry changes nothing. */
export type StateTable<State extends string, Event extends string, Action extends string> = {
  readonly [state in State]: {
    readonly [event in Event]?: { readonly to: State; readonly do: readonly Action[] }
  }
}

/** A call from its INVITE to its record. */
export type CallPhase =
  /** Validated, authorized, routed. */
  | 'admitting'
  /** Click-to-call: the phones of the source ring. */
  | 'sourcing'
  | 'dialing'
  /** A phone's 3xx has sent the call outside: the call that was made for it rings. */
  | 'forwarding'
  /** The caller replaces a party of another call (RFC 3891), whose partner gets a re-INVITE. */
  | 'replacing'
  /** The callee has answered: the journal is written. */
  | 'journalling'
  /** The 200 to the caller is under way. */
  | 'accepting'
  | 'answered'
  | 'over'

export type CallEvent =
  | 'refused'
  | 'ring'
  | 'pickedUp'
  | 'dial'
  | 'forward'
  | 'calleeAnswered'
  | 'replace'
  | 'journalled'
  | 'notJournalled'
  | 'callerTaken'
  | 'callerGone'
  /** No destination has answered. */
  | 'exhausted'
  /**
   * For any reason. The time of the record is now, or, where the media has stopped, that of the
   * last packet.
   */
  | 'stop'

export type CallAction =
  | 'giveUpAttempts'
  | 'stopForwarded'
  | 'closeLegs'
  | 'refuseCaller'
  | 'journal'
  | 'acceptCaller'
  | 'startGrant'
  | 'endPeers'
  | 'store'

const over = (...actions: readonly CallAction[]) =>
  ({ to: 'over', do: [...actions, 'store'] }) as const
const stay = (to: CallPhase, ...actions: readonly CallAction[]) => ({ to, do: actions }) as const

export const callTable: StateTable<CallPhase, CallEvent, CallAction> = {
  admitting: {
    refused: over('refuseCaller'),
    ring: { to: 'sourcing', do: [] },
    dial: { to: 'dialing', do: [] },
    replace: { to: 'replacing', do: [] },
    // The authorization is under way: the record releases its reservation.
    stop: stay('admitting'),
  },
  sourcing: {
    pickedUp: { to: 'dialing', do: [] },
    exhausted: over('refuseCaller'),
    stop: over('giveUpAttempts', 'refuseCaller'),
  },
  dialing: {
    dial: stay('dialing'),
    forward: { to: 'forwarding', do: [] },
    calleeAnswered: { to: 'journalling', do: ['journal'] },
    exhausted: over('refuseCaller'),
    stop: over('giveUpAttempts', 'refuseCaller'),
  },
  forwarding: {
    calleeAnswered: { to: 'journalling', do: ['journal'] },
    exhausted: over('refuseCaller'),
    stop: over('stopForwarded', 'refuseCaller'),
  },
  replacing: {
    calleeAnswered: { to: 'journalling', do: ['journal'] },
    exhausted: over('refuseCaller'),
    stop: over('refuseCaller'),
  },
  journalling: {
    journalled: { to: 'accepting', do: ['acceptCaller'] },
    notJournalled: over('closeLegs', 'refuseCaller'),
    stop: stay('journalling', 'stopForwarded', 'closeLegs'),
  },
  accepting: {
    callerTaken: { to: 'answered', do: ['startGrant'] },
    callerGone: over('closeLegs', 'refuseCaller'),
    stop: stay('accepting', 'stopForwarded', 'closeLegs'),
  },
  answered: { stop: over('endPeers', 'closeLegs') },
  over: {},
}

/** One INVITE to one destination; it ends exactly once. */
export type AttemptState =
  /** No response yet. */
  | 'silent'
  /** No response, and 100 does not reach us: an OPTIONS asks whether the node is alive. */
  | 'probing'
  /** No response, and the destination takes no OPTIONS: it has to ring in time. */
  | 'unconfirmed'
  /** 100 or 18x received. */
  | 'ringing'
  /** Early media received: no other destination may follow. */
  | 'early'
  | 'answered'
  | 'over'

export type AttemptEvent =
  | 'response'
  | 'earlyMedia'
  | 'answered'
  | 'rejected'
  | 'unusable'
  | 'failed'
  | 'withheld'
  /** The time of the attempt is up. */
  | 'silence'
  | 'probe'
  | 'wait'
  | 'abandoned'
  | 'stopped'

export type AttemptAction =
  'startRingTimer' | 'probe' | 'stopTimer' | 'close' | 'settle' | 'endCall'

const settle = { to: 'over', do: ['stopTimer', 'settle'] } as const
const giveUp = { to: 'over', do: ['stopTimer', 'close', 'settle'] } as const
const answer = { to: 'answered', do: ['stopTimer'] } as const

const ends = {
  answered: answer,
  rejected: settle,
  unusable: settle,
  failed: settle,
  abandoned: giveUp,
  stopped: giveUp,
} as const

/** No response has come yet. */
const begins = {
  ...ends,
  response: { to: 'ringing', do: ['startRingTimer'] },
  earlyMedia: { to: 'early', do: ['startRingTimer'] },
} as const

export const attemptTable: StateTable<AttemptState, AttemptEvent, AttemptAction> = {
  silent: {
    ...begins,
    withheld: settle,
    silence: giveUp,
    probe: { to: 'probing', do: ['probe'] },
    wait: { to: 'unconfirmed', do: ['startRingTimer'] },
  },
  probing: { ...begins, silence: giveUp },
  unconfirmed: { ...begins, silence: { to: 'unconfirmed', do: ['endCall'] } },
  ringing: {
    ...ends,
    response: { to: 'ringing', do: [] },
    earlyMedia: { to: 'early', do: [] },
    silence: { to: 'ringing', do: ['endCall'] },
  },
  early: {
    ...ends,
    response: { to: 'early', do: [] },
    earlyMedia: { to: 'early', do: [] },
    silence: { to: 'early', do: ['endCall'] },
  },
  answered: {},
  over: {},
}

/**
 * One dialog of a call, from its INVITE to its BYE (RFC 3261 §12-15). A leg that is closed before
 * its dialog allows it is `cancelling` (we sent the INVITE) or `closing` (a BYE has to wait: §15).
 */
export type LegState =
  /** INVITE received, no final response yet. */
  | 'incoming'
  /** A 200 is on its way. */
  | 'accepting'
  /** 200 sent; its ACK is awaited. */
  | 'unacknowledged'
  /** INVITE handed over to the SIP server. */
  | 'calling'
  /** INVITE sent: it can be cancelled. */
  | 'proceeding'
  /** Given up: the final response is awaited. */
  | 'cancelling'
  /** 2xx with an offer received: our ACK is owed. */
  | 'offered'
  /** ACK sent. */
  | 'acknowledging'
  | 'confirmed'
  | 'closing'
  | 'terminated'

export type LegEvent =
  // Received.
  | 'sent'
  | 'provisional'
  | 'answered'
  | 'offered'
  | 'unusable'
  | 'rejected'
  | 'failed'
  | 'accepted'
  | 'gone'
  | 'acknowledged'
  | 'acknowledgeFailed'
  | 'ack'
  | 'bye'
  | 'cancelled'
  /** The SIP server is unavailable, and the dialog is lost. */
  | 'lost'
  // Wanted by the call.
  | 'accept'
  | 'reject'
  | 'acknowledge'
  | 'close'

export type LegAction =
  /** Reported to the call. */
  | 'report'
  | 'noteDialog'
  | 'keepHeaders'
  | 'cancel'
  | 'bye'
  | 'accept'
  | 'respond'
  | 'acknowledge'
  | 'abandonOffer'
  | 'release'

const report = ['report'] as const
const noteDialog = ['noteDialog', 'report'] as const
const lost = { to: 'terminated', do: [] } as const

export const legTable: StateTable<LegState, LegEvent, LegAction> = {
  incoming: {
    accept: { to: 'accepting', do: ['accept'] },
    reject: { to: 'terminated', do: ['respond'] },
    // The SIP server has answered 487 already.
    cancelled: { to: 'terminated', do: report },
  },
  accepting: {
    lost: { to: 'terminated', do: report },
    accepted: { to: 'unacknowledged', do: noteDialog },
    gone: { to: 'terminated', do: report },
    cancelled: { to: 'accepting', do: report },
    close: { to: 'closing', do: ['keepHeaders'] },
  },
  unacknowledged: {
    lost,
    ack: { to: 'confirmed', do: report },
    bye: { to: 'terminated', do: report },
    close: { to: 'closing', do: ['keepHeaders'] },
  },
  calling: {
    sent: { to: 'proceeding', do: report },
    provisional: { to: 'calling', do: report },
    answered: { to: 'confirmed', do: noteDialog },
    offered: { to: 'offered', do: noteDialog },
    unusable: { to: 'terminated', do: ['release', 'report'] },
    rejected: { to: 'terminated', do: report },
    failed: { to: 'terminated', do: report },
    close: { to: 'cancelling', do: ['keepHeaders'] },
  },
  proceeding: {
    sent: { to: 'proceeding', do: report },
    provisional: { to: 'proceeding', do: report },
    answered: { to: 'confirmed', do: noteDialog },
    offered: { to: 'offered', do: noteDialog },
    unusable: { to: 'terminated', do: ['release', 'report'] },
    rejected: { to: 'terminated', do: report },
    failed: { to: 'terminated', do: report },
    close: { to: 'cancelling', do: ['keepHeaders', 'cancel'] },
  },
  cancelling: {
    lost,
    sent: { to: 'cancelling', do: ['report', 'cancel'] },
    answered: { to: 'terminated', do: ['bye'] },
    offered: { to: 'terminated', do: ['abandonOffer'] },
    unusable: { to: 'terminated', do: ['release'] },
    rejected: { to: 'terminated', do: [] },
    failed: { to: 'terminated', do: [] },
  },
  offered: {
    lost,
    acknowledge: { to: 'acknowledging', do: ['acknowledge'] },
    close: { to: 'terminated', do: ['abandonOffer'] },
  },
  acknowledging: {
    lost,
    acknowledged: { to: 'confirmed', do: noteDialog },
    acknowledgeFailed: { to: 'terminated', do: ['release', 'report'] },
    close: { to: 'closing', do: ['keepHeaders'] },
  },
  confirmed: {
    lost,
    bye: { to: 'terminated', do: report },
    // The ACK of a re-INVITE without offer.
    ack: { to: 'confirmed', do: report },
    close: { to: 'terminated', do: ['keepHeaders', 'bye'] },
  },
  closing: {
    lost,
    accepted: { to: 'closing', do: ['noteDialog'] },
    gone: { to: 'terminated', do: [] },
    ack: { to: 'terminated', do: ['bye'] },
    acknowledged: { to: 'terminated', do: ['bye'] },
    acknowledgeFailed: { to: 'terminated', do: ['release'] },
    bye: { to: 'terminated', do: [] },
  },
  terminated: {},
}

/**
 * Offer and answer between two legs (RFC 3264, RFC 6337): at most one re-INVITE, or UPDATE with an
 * offer, is under way, in either direction (RFC 3261 §14, RFC 3311 §5.2). A transfer pauses the
 * exchange first, and sends each leg its new media itself.
 */
export type ExchangeState =
  | 'stable'
  /** The offer of one peer waits for the other one's response. */
  | 'relaying'
  /** The 200 has brought an offer; the ACK brings the answer. */
  | 'awaiting-ack'
  /** The same as the two above, but no offer follows. */
  | 'relaying-last'
  | 'awaiting-last-ack'
  /** Offers of the peers are refused. */
  | 'paused'

export type ExchangeEvent = 'offer' | 'concluded' | 'lateOffer' | 'ack' | 'pause' | 'resume'

export type ExchangeAction = 'relay' | 'refuse' | 'signalPaused'

const refuse = (to: ExchangeState) => ({ to, do: ['refuse'] }) as const

export const exchangeTable: StateTable<ExchangeState, ExchangeEvent, ExchangeAction> = {
  stable: {
    offer: { to: 'relaying', do: ['relay'] },
    pause: { to: 'paused', do: ['signalPaused'] },
  },
  relaying: {
    offer: refuse('relaying'),
    concluded: { to: 'stable', do: [] },
    lateOffer: { to: 'awaiting-ack', do: [] },
    pause: { to: 'relaying-last', do: [] },
  },
  'awaiting-ack': {
    offer: refuse('awaiting-ack'),
    ack: { to: 'stable', do: [] },
    pause: { to: 'awaiting-last-ack', do: [] },
  },
  'relaying-last': {
    offer: refuse('relaying-last'),
    concluded: { to: 'paused', do: ['signalPaused'] },
    lateOffer: { to: 'awaiting-last-ack', do: [] },
    resume: { to: 'relaying', do: [] },
  },
  'awaiting-last-ack': {
    offer: refuse('awaiting-last-ack'),
    ack: { to: 'paused', do: ['signalPaused'] },
    resume: { to: 'awaiting-ack', do: [] },
  },
  paused: {
    offer: refuse('paused'),
    pause: { to: 'paused', do: ['signalPaused'] },
    resume: { to: 'stable', do: [] },
  },
}

/**
 * Transfers (RFC 5589, RFC 3725). In a `basic` transfer a new call is made for the transferee;
 * `attended` joins two calls of the transferor; in a `replacement` an INVITE with Replaces takes
 * the place of a party, in an `early` one that of the caller of a call that still rings.
 */
export type TransferState =
  /** The new call rings, or the INVITE of its caller is being checked. */
  | 'ringing'
  /** The exchange is being paused: no re-INVITE may be under way. */
  | 'pausing'
  /** Attended: the transfer target's exchange is being paused, too. */
  | 'pausing-target'
  /** Attended: a re-INVITE gives the transfer target the transferee's media. */
  | 'offering-target'
  /** A re-INVITE gives the transferee the new media. */
  | 'moving'
  /** The transferee has the new media; the new call is not accepted yet. */
  | 'moved'
  | 'transferred'
  | 'failed'

export type TransferEvent =
  | 'answered'
  | 'begin'
  | 'paused'
  /** Attended: so is the exchange of the transferee. */
  | 'transfereePaused'
  | 'targetPaused'
  | 'targetAnswered'
  | 'moved'
  | 'taken'
  | 'refused'

export type TransferAction =
  'pause' | 'pauseTarget' | 'offerTarget' | 'move' | 'answerNewCall' | 'connect' | 'fail'

const fail = { to: 'failed', do: ['fail'] } as const

export const transferTable: StateTable<TransferState, TransferEvent, TransferAction> = {
  ringing: {
    answered: { to: 'pausing', do: ['pause'] },
    begin: { to: 'pausing', do: ['pause'] },
    refused: fail,
  },
  pausing: {
    paused: { to: 'moving', do: ['move'] },
    transfereePaused: { to: 'pausing-target', do: ['pauseTarget'] },
    refused: fail,
  },
  'pausing-target': {
    targetPaused: { to: 'offering-target', do: ['offerTarget'] },
    refused: fail,
  },
  'offering-target': {
    targetAnswered: { to: 'moving', do: ['move'] },
    refused: fail,
  },
  moving: {
    moved: { to: 'moved', do: ['answerNewCall'] },
    refused: fail,
  },
  moved: {
    taken: { to: 'transferred', do: ['connect'] },
    refused: fail,
  },
  transferred: {},
  failed: {},
}
