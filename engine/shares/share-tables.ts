/**
 * The two state machines of a share as tables. `README.md` shows them as diagrams. The exchange
 * says where the share stands between this instance and the database; the demand says what its next
 * request asks for.
 */

/** An event without an entry changes nothing. */
type Table<State extends string, Event extends string, Action extends string> = {
  readonly [state in State]: {
    readonly [event in Event]?: { readonly to: State; readonly do: readonly Action[] }
  }
}

export type ShareState =
  /** The share in memory is the stored one, and nothing is to be changed. */
  | 'stored'
  /** It is in the next statement. */
  | 'wanted'
  /** A statement with it is under way. */
  | 'asked'
  /** A statement with it is under way, and it is in the next one again. */
  | 'askedAgain'
  /** Another transaction has locked its row: statements leave it out. */
  | 'locked'

export type ShareEvent =
  | 'want'
  | 'sent'
  | 'answered'
  /** The answer is lost: the request may be stored, and is repeated. */
  | 'failed'
  | 'locked'
  | 'unlocked'
  /** Others may have taken what this instance held, and it may hold again. */
  | 'fenced'
  /** Another server may answer, which lacks the last requests. */
  | 'serverChanged'

/** The names of methods of `InstanceShare`. */
export type ShareAction =
  /** Nothing is free here until the next answer. */
  | 'void'
  /** The next answer counts, whatever its version. */
  | 'forgetStored'

const fenced = (to: ShareState) => ({ to, do: ['void', 'forgetStored'] }) as const
const serverChanged = (to: ShareState) => ({ to, do: ['forgetStored'] }) as const

export const shareTable: Table<ShareState, ShareEvent, ShareAction> = {
  stored: {
    want: { to: 'wanted', do: [] },
    fenced: fenced('wanted'),
    serverChanged: serverChanged('wanted'),
  },
  wanted: {
    sent: { to: 'asked', do: [] },
    locked: { to: 'locked', do: [] },
    fenced: fenced('wanted'),
    serverChanged: serverChanged('wanted'),
  },
  asked: {
    want: { to: 'askedAgain', do: [] },
    answered: { to: 'stored', do: [] },
    failed: { to: 'wanted', do: [] },
    fenced: fenced('askedAgain'),
    serverChanged: serverChanged('askedAgain'),
  },
  askedAgain: {
    answered: { to: 'wanted', do: [] },
    failed: { to: 'wanted', do: [] },
    fenced: fenced('askedAgain'),
    serverChanged: serverChanged('askedAgain'),
  },
  locked: {
    unlocked: { to: 'wanted', do: [] },
    fenced: fenced('locked'),
    serverChanged: serverChanged('locked'),
  },
}

export type DemandState =
  /** Asks for what is used, for the calls that wait, and for the next seconds. */
  | 'growing'
  /** Gives a part back. */
  | 'returning'
  /** Gives a part back, and asks for nothing for its own calls: those elsewhere come first. */
  | 'yielding'
  /** Gives all back that is not used, for ever. */
  | 'closing'

export type DemandEvent =
  /** Much more is held than was needed for some seconds. */
  | 'idle'
  /** A call waits at another instance. */
  | 'asked'
  /** The same, while too little is here for the call that waits here. */
  | 'outranked'
  /** A request says so to the database. */
  | 'sent'
  /** The part that was to be kept may be held by others. */
  | 'voided'
  | 'closed'

export type DemandAction =
  | 'refuseWaiting'
  /** The share is in one of the next statements. */
  | 'want'
  /** It is in the next one. */
  | 'wantAtOnce'

const closed = { to: 'closing', do: ['refuseWaiting', 'want'] } as const

export const demandTable: Table<DemandState, DemandEvent, DemandAction> = {
  growing: {
    idle: { to: 'returning', do: ['want'] },
    asked: { to: 'returning', do: ['wantAtOnce'] },
    outranked: { to: 'yielding', do: ['wantAtOnce'] },
    closed,
  },
  returning: {
    idle: { to: 'returning', do: ['want'] },
    asked: { to: 'returning', do: ['wantAtOnce'] },
    outranked: { to: 'yielding', do: ['wantAtOnce'] },
    sent: { to: 'growing', do: [] },
    voided: { to: 'growing', do: [] },
    closed,
  },
  yielding: {
    idle: { to: 'yielding', do: ['want'] },
    asked: { to: 'returning', do: ['wantAtOnce'] },
    outranked: { to: 'yielding', do: ['wantAtOnce'] },
    sent: { to: 'growing', do: [] },
    closed,
  },
  closing: {
    idle: { to: 'closing', do: ['want'] },
    asked: { to: 'closing', do: ['wantAtOnce'] },
    outranked: { to: 'closing', do: ['wantAtOnce'] },
    closed,
  },
}
